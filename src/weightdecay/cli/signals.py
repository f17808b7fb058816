"""Ctrl-C and SIGTERM: the first one asks to save and stop, the second one stops at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_STOPS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def graceful_stop(*, alone: bool = True) -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether to stop. A second signal raises KeyboardInterrupt.

    Processes that share a training cannot stop one by one: with `alone` False, a signal stops this
    process at once.
    """
    asked: list[bool] = []

    def ask(*_: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(True)

    here = alone and threading.current_thread() is threading.main_thread()
    before = {sign: signal.signal(sign, ask) for sign in _STOPS} if here else {}
    try:
        yield lambda: bool(asked)
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
