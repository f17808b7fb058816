"""Where a run is trained: what may change its bits but is not part of its configuration."""

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


@cache
def source() -> str:
    """Return a hash of the package's own files, which exist even without git."""
    found = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        found.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


@cache
def commit() -> str:
    """Return the commit of the package's files, with "+" if they differ from it, or "unknown".

    Git must track the files: a package installed inside another repository does not belong to that
    repository's commit.
    """
    known = _git("ls-files", "--", "__init__.py")
    head, changed = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--", ".")
    if not known or not head or changed is None:
        return "unknown"
    return head + ("+" if changed else "")


def _git(*arguments: str) -> str | None:
    try:
        process = subprocess.run(  # noqa: S603 - our own arguments
            ["git", "-C", str(_PACKAGE), *arguments],  # noqa: S607 - whichever git there is
            capture_output=True,
            check=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()
