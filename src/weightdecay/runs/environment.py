"""Where a run is trained: what may change its bits and is no part of its configuration."""

import hashlib
import platform
import subprocess
from functools import cache
from pathlib import Path

import torch

import weightdecay
from weightdecay.records import Environment

_PACKAGE = Path(weightdecay.__file__).parent


def environment(device: torch.device) -> Environment:
    """Return the environment of what is trained on a device of this process."""
    return Environment(
        device=_device(device),
        torch=str(torch.__version__),  # of a class of torch's own
        python=platform.python_version(),
        version=weightdecay.__version__,
        commit=_commit(),
        source=_source(),
    )


def _device(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "cpu":  # torch chooses its kernels by what the processor can do
        return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    return str(device)


@cache
def _source() -> str:
    """Return a hash of the package's own files, which are there even where git is not."""
    found = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        found.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


@cache
def _commit() -> str:
    """Return the commit that the package's files are of, "+" if they differ, or "unknown".

    A package that is installed into somebody else's checkout is not of their commit: git must know
    its files.
    """
    known = _git("ls-files", "--", "__init__.py")
    head, changed = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--", ".")
    if not known or not head or changed is None:
        return "unknown"
    return head + ("+" if changed else "")


def _git(*words: str) -> str | None:
    try:
        told = subprocess.run(  # noqa: S603 - words of ours
            ["git", "-C", str(_PACKAGE), *words],  # noqa: S607 - whichever git there is
            capture_output=True,
            check=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip()
