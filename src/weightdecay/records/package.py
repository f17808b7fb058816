"""Which version of this package trained a run: a hash of its files, and their commit."""

import hashlib
import subprocess
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


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
