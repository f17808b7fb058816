"""The device that a person names, if torch has it here."""

import torch

from weightdecay import checks


def device_of(name: str) -> torch.device:
    """Return a device; one that cannot be had is refused before anything is trained on it."""
    try:
        device = torch.device(name)
        if device.type == "cuda":  # counting GPUs takes none of their memory
            if not (device.index or 0) < torch.cuda.device_count():
                raise RuntimeError  # noqa: TRY301
        else:
            torch.empty(0, device=device)
    # torch raises the first where it was built without a kind of device, the second where a kind
    # has no tensors, and the last for a name it does not know.
    except (AssertionError, NotImplementedError, RuntimeError) as error:
        said = f"`device` must be one that torch has here ({', '.join(_here())}), got {name!r}."
        raise ValueError(f"{said} {checks.did_you_mean(name, _here())}".rstrip()) from error
    return device


def _here() -> list[str]:
    """Return the devices that most people would name."""
    gpus = torch.cuda.device_count()
    others = ["mps"] if torch.backends.mps.is_available() else []
    return ["cpu", *["cuda"] * bool(gpus), *(f"cuda:{n}" for n in range(gpus)), *others]
