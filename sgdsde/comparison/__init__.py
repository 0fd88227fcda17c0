"""Runs measured against each other: two dynamics at one time, one method on finer and finer grids.

Offers `compare` (difference, standard error, effect size, z, Kolmogorov-Smirnov), `strong_order` and `weak_order`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgdsde.comparison.averages import autocorrelation_time as autocorrelation_time
    from sgdsde.comparison.averages import batch_means as batch_means
    from sgdsde.comparison.comparing import compare as compare
    from sgdsde.comparison.distributions import ks_two_sample as ks_two_sample
    from sgdsde.comparison.fluctuation import FluctuationDissipation as FluctuationDissipation
    from sgdsde.comparison.order import strong_order as strong_order
    from sgdsde.comparison.order_result import OrderResult as OrderResult
    from sgdsde.comparison.order_result import WeakOrderResult as WeakOrderResult
    from sgdsde.comparison.result import Comparison as Comparison
    from sgdsde.comparison.wasserstein import Wasserstein as Wasserstein
    from sgdsde.comparison.wasserstein import wasserstein_two_sample as wasserstein_two_sample
    from sgdsde.comparison.weak import weak_order as weak_order

_NAMES = {
    "Comparison": "result",
    "FluctuationDissipation": "fluctuation",
    "OrderResult": "order_result",
    "Wasserstein": "wasserstein",
    "WeakOrderResult": "order_result",
    "autocorrelation_time": "averages",
    "batch_means": "averages",
    "compare": "comparing",
    "ks_two_sample": "distributions",
    "strong_order": "order",
    "wasserstein_two_sample": "wasserstein",
    "weak_order": "weak",
}

__all__ = [
    "Comparison",
    "FluctuationDissipation",
    "OrderResult",
    "Wasserstein",
    "WeakOrderResult",
    "autocorrelation_time",
    "batch_means",
    "compare",
    "ks_two_sample",
    "strong_order",
    "wasserstein_two_sample",
    "weak_order",
]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'sgdsde.comparison' has no attribute {name!r}")
    value = getattr(import_module(f"sgdsde.comparison.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
