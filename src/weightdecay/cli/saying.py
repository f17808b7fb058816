"""What is printed: what a terminal would obey is shown to it as text.

Names, reasons and messages come from files that others wrote, and may hold escape sequences.
"""

import re
import sys
from typing import TextIO

# Controls but for tab and newline, those of eight bits too, and bytes of a file's name that
# would be such.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\udc80-\udc9f]")


def say(text: str, *, file: TextIO | None = None, flush: bool = False) -> None:
    r"""Print a text, its control characters as in \x1b."""
    print(_OBEYED.sub(_shown, text), file=sys.stdout if file is None else file, flush=flush)


def _shown(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]) & 0xFF:02x}"
