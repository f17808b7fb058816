"""Warnings that point at the user's own line."""

import sys
import warnings

_INSIDE = {"torch", "weightdecay"}


def warn(message: str) -> None:
    """Warn at the nearest calling line outside weightdecay and torch, which wraps our methods."""
    frame, level = sys._getframe(1), 3
    while frame.f_back is not None and _package(frame.f_back.f_globals) in _INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__")).partition(".")[0]
