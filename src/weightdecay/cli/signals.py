"""Ctrl-C and SIGTERM: the first asks, so that work can be saved; the second one stops."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_STOPS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopped_gently(*, alone: bool = True) -> Iterator[Callable[[], bool]]:
    """Give what says whether a stop was asked for; asked a second time, a KeyboardInterrupt.

    Processes that share a training cannot stop one by one: where it is not alone, each stops at
    once.
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
