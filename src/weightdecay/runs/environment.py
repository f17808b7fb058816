"""Where a run is trained: what may change its bits but is not part of its configuration."""

import platform

import torch

import weightdecay
from weightdecay.records import Environment
from weightdecay.records.package import commit, source


def environment(device: torch.device) -> Environment:
    """Return the environment of runs trained on a device of this process."""
    return Environment(
        device=_device(device),
        torch=str(torch.__version__),  # a subclass of str
        python=platform.python_version(),
        version=weightdecay.__version__,
        commit=commit(),
        source=source(),
    )


def _device(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "cpu":  # torch chooses kernels by the capability of the processor
        return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    return str(device)
