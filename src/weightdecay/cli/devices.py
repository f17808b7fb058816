"""The device that a person names, if torch has it here."""

import torch


def device_of(name: str) -> torch.device:
    """Return a device; one that cannot be had is refused before anything is trained on it."""
    try:
        device = torch.device(name)
        if device.type == "cuda":  # counting GPUs takes none of their memory
            if not (device.index or 0) < torch.cuda.device_count():
                raise RuntimeError(f"there are {torch.cuda.device_count()} GPUs")  # noqa: TRY301
        else:
            torch.empty(0, device=device)
    # torch raises the first where it was built without a kind of device, the second where a kind
    # has no tensors, and the last for a name it does not know.
    except (AssertionError, NotImplementedError, RuntimeError) as error:
        raise ValueError(
            f"`device` must be one that torch has here, as cpu or cuda:0 may be, got {name!r}: "
            f"{str(error).splitlines()[0][:120]}"
        ) from error
    return device
