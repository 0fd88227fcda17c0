"""Exceptions, warnings and the status codes of a path: the words in which the package says that something is wrong."""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "DivergenceWarning",
    "ModelError",
    "SgdsdeError",
    "ShapeError",
    "TooLargeError",
    "OK",
    "DIVERGED",
    "NOT_CONVERGED",
    "INTERRUPTED",
    "STEP_SIZE",
    "STATUS_WORDS",
]


class SgdsdeError(Exception):
    """Base class of every error that this package raises on purpose."""


class ArgumentError(SgdsdeError, ValueError):
    """An argument has a value that cannot be used; the message names it, what it was and what was wanted."""


class ShapeError(ArgumentError):
    """An array, or what a user's function returned, has the wrong shape."""


class ModelError(SgdsdeError, ValueError):
    """A user's function or model cannot be evaluated, compiled, or does not do what it declares."""


class TooLargeError(SgdsdeError, MemoryError):
    """What was asked to be kept does not fit into memory; the message says how large it is and what to use instead."""


class DivergenceWarning(UserWarning):
    """Some paths left the finite numbers and were stopped; the message counts them."""


# Status of one path. Compiled code writes these numbers; zero must stay "all is well".
OK = 0
DIVERGED = 1
NOT_CONVERGED = 2
INTERRUPTED = 3
STEP_SIZE = 4

STATUS_WORDS = {
    OK: "reached the end",
    DIVERGED: "left the finite numbers",
    NOT_CONVERGED: "an implicit step or a projection did not converge",
    INTERRUPTED: "interrupted before the end",
    STEP_SIZE: "step_size gave no usable step",
}
