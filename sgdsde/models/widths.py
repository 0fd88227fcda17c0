"""The widths [inputs, …, outputs] of a network, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError

__all__ = ["read_widths"]


def read_widths(dims: Any, least: int = 2) -> tuple[int, ...]:
    """dims as a tuple of at least `least` positive integers."""
    wanted = {2: "two widths [inputs, …, outputs]", 3: "three widths [inputs, hidden, …, outputs]"}[least]
    if isinstance(dims, (str, bytes)) or not isinstance(dims, (Sequence, np.ndarray)) or len(dims) < least:
        raise ArgumentError(f"dims must hold at least {wanted}, got {_check.show(dims)}")
    return tuple(_check.count(f"dims[{k}]", n) for k, n in enumerate(dims))
