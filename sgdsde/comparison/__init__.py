"""Runs measured against each other: two dynamics at one time, one method on finer and finer grids.

Offers `compare` (difference, standard error, effect size, z, Kolmogorov-Smirnov) and `strong_order`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgdsde.comparison.comparing import compare as compare
    from sgdsde.comparison.distributions import ks_two_sample as ks_two_sample
    from sgdsde.comparison.order import OrderResult as OrderResult
    from sgdsde.comparison.order import strong_order as strong_order
    from sgdsde.comparison.result import Comparison as Comparison

_NAMES = {
    "Comparison": "result",
    "OrderResult": "order",
    "compare": "comparing",
    "ks_two_sample": "distributions",
    "strong_order": "order",
}

__all__ = ["Comparison", "OrderResult", "compare", "ks_two_sample", "strong_order"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'sgdsde.comparison' has no attribute {name!r}")
    value = getattr(import_module(f"sgdsde.comparison.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
