"""Progress of a run: a line on standard error, or the user's own function."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from sgdsde._errors import ArgumentError

__all__ = ["Line", "Report", "reporter"]

Report = Callable[[float], None]


def reporter(progress: Any, label: str = "") -> Report | None:
    """`progress=` of `solve`: None or False (silent), True (a line on standard error), a function of the fraction."""
    if progress is None or progress is False:
        return None
    if progress is True:
        return Line(label)
    if not callable(progress):
        raise ArgumentError(f"progress must be True, False or a function of the fraction done, got {progress!r}")
    return progress


class Line:
    """One line that rewrites itself; on something that is not a terminal, a line now and then."""

    def __init__(self, label: str) -> None:
        self.label = f"{label}: " if label else ""
        self.begin = time.monotonic()
        self.shown = 0.0

    def __call__(self, done: float) -> None:
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        pause = 0.1 if terminal else 5.0
        if done < 1.0 and now - self.shown < pause:
            return
        self.shown = now
        spent = now - self.begin
        left = f", {spent * (1 - done) / done:.0f} s left" if 0 < done < 1 else ""
        filled = int(30 * done)
        bar = "█" * filled + "·" * (30 - filled)
        end = "\n" if done >= 1.0 or not terminal else ""
        print(
            f"{chr(13) if terminal else ''}{self.label}{bar} {100 * done:3.0f} %  {spent:.1f} s{left}   ",
            end=end,
            file=sys.stderr,
            flush=True,
        )

    def break_off(self) -> None:
        """The run ends early: leave the line as it is."""
        if self.shown and sys.stderr.isatty():
            print(file=sys.stderr, flush=True)
