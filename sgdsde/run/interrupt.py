"""Ctrl-C as a request: the run ends at the next safe place and returns what is done."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

__all__ = ["Interrupt"]


class Interrupt:
    """While open, the first Ctrl-C sets `asked`; the second one raises KeyboardInterrupt as usual.

    Signals reach only the main thread, so elsewhere this does nothing.
    """

    def __init__(self) -> None:
        self.asked = False
        self._old: Any = None

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            self._old = signal.getsignal(signal.SIGINT)
            if callable(self._old):
                signal.signal(signal.SIGINT, self._handle)
            else:
                self._old = None
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *error: Any) -> None:
        if self._old is not None:
            signal.signal(signal.SIGINT, self._old)
