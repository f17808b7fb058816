"""Output in encodings that lack some characters, such as a Windows pipe: λ becomes lambda.

This concerns printed text only. Files are always UTF-8.
"""

import codecs
import io
import unicodedata
from typing import TextIO

_HANDLER = "weightdecay.spelled"
_SPELLINGS = (
    {"α": "alpha", "β": "beta", "ε": "eps", "η": "eta", "θ": "theta", "λ": "lambda"}
    | {"π": "pi", "σ": "sigma", "χ": "chi", "√": " sqrt ", "∞": "inf", "½": "1/2"}
    | {"−": "-", "–": "-", "—": "-", "·": "*", "×": "x", "±": "+/-", "∝": "~", "≈": "~"}
    | {"≤": "<=", "≥": ">=", "→": "->", "′": "'", "‘": "'", "’": "'", "“": '"', "”": '"'}
)


def spell_out(stream: TextIO) -> None:
    """Let a stream spell out the characters that its encoding lacks, instead of raising."""
    if isinstance(stream, io.TextIOWrapper):
        codecs.register_error(_HANDLER, _spelled)
        stream.reconfigure(errors=_HANDLER)


def _spelled(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace the first character that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    if "\udc80" <= character <= "\udcff":  # a byte of a file's name that is not text
        return bytes([ord(character) - 0xDC00]), error.start + 1
    raised = _is_raised(character) and not _is_raised(error.object[error.start - 1 : error.start])
    return "^" * raised + _plain(character), error.start + 1


def _plain(character: str) -> str:
    """Return a character in ASCII: as listed, else without accent or superscript, else "?"."""
    parts = unicodedata.normalize("NFKD", character)
    spelled = (_SPELLINGS.get(part, part if part.isascii() else "") for part in parts)
    return _SPELLINGS.get(character) or "".join(spelled) or "?"


def _is_raised(character: str) -> bool:
    return bool(character) and unicodedata.decomposition(character).startswith("<super>")
