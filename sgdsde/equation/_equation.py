"""What the runner asks of an equation: sizes, calculus, noise kind and compiled kernels. SDE and SGD both answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

__all__ = ["Equation", "Kernels", "Problem"]


class Kernels(NamedTuple):
    """Compiled functions of one equation and the arrays they read (signatures in `sgdsde._abi`)."""

    increment: Any
    correction: Any | None
    p: np.ndarray
    data: np.ndarray
    work: tuple[int, int] = (0, 0)
    """Scratch in doubles that increment and correction need: (fixed, per path)."""


class Equation(Protocol):
    """An equation at a known state: what the runner integrates. It pickles, without what was compiled."""

    dim: int
    """Number of components d."""
    noise_dim: int
    """Number of Brownian motions m (0: none)."""
    noise: str
    """'additive', 'scalar', 'diagonal', 'commutative' or 'general'."""
    calculus: str
    """'ito' or 'stratonovich'; 'discrete' for a recursion that is not a differential equation."""
    block: int | None
    """Paths side by side that suit this equation; None lets the runner choose from d and m."""

    def kernels(self, *, correction: bool = False) -> Kernels:
        """Compiled kernels; `correction=True` makes one by column differences where the equation has none."""


@runtime_checkable
class Problem(Protocol):
    """What a person hands to `solve`: binding it to a start gives an `Equation`, or one clear error."""

    def bind(self, t0: float, y0: np.ndarray, args: Sequence[Any] | None = None) -> Equation:
        """Evaluate once in Python at t0 and y0 of shape (d,), check shapes and values, and settle m.

        `args` replaces the problem's own arguments. Raises ShapeError or ModelError.
        """
