"""The device named on the command line."""

import torch

from weightdecay import checks


def device_of(name: str) -> torch.device:
    """Return a torch device, or raise if torch does not have it on this machine."""
    try:
        device = torch.device(name)
        if device.type == "cuda":  # counting GPUs allocates no memory on them
            if not (device.index or 0) < torch.cuda.device_count():
                raise RuntimeError  # noqa: TRY301
        else:
            torch.empty(0, device=device)
    # torch raises AssertionError for a kind of device it was built without, NotImplementedError
    # for one that has no tensors, and RuntimeError for a name it does not know.
    except (AssertionError, NotImplementedError, RuntimeError) as error:
        message = f"`device` must be one that torch has here ({', '.join(_here())}), got {name!r}."
        raise ValueError(f"{message} {checks.did_you_mean(name, _here())}".rstrip()) from error
    return device


def _here() -> list[str]:
    """Return the devices of this machine that most people would name."""
    gpus = torch.cuda.device_count()
    others = ["mps"] if torch.backends.mps.is_available() else []
    return ["cpu", *["cuda"] * bool(gpus), *(f"cuda:{n}" for n in range(gpus)), *others]
