"""Runs measured against each other: two dynamics at one time, one method on finer and finer grids.

Offers `compare` (difference, standard error, effect size, z, Kolmogorov-Smirnov, Wasserstein-1), `strong_order` and
`weak_order` of methods; of SGD against its SDE `weak_error` and `svag_extrapolation`; `richardson` for means with
errors; and `FluctuationDissipation`, for which there need be no SDE.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgdsde.comparison.against_sde import weak_error as weak_error
    from sgdsde.comparison.averages import autocorrelation_time as autocorrelation_time
    from sgdsde.comparison.averages import batch_means as batch_means
    from sgdsde.comparison.comparing import compare as compare
    from sgdsde.comparison.distributions import ks_two_sample as ks_two_sample
    from sgdsde.comparison.extrapolation import Extrapolation as Extrapolation
    from sgdsde.comparison.extrapolation import richardson as richardson
    from sgdsde.comparison.fluctuation import FluctuationDissipation as FluctuationDissipation
    from sgdsde.comparison.order import strong_order as strong_order
    from sgdsde.comparison.order_result import OrderResult as OrderResult
    from sgdsde.comparison.order_result import WeakOrderResult as WeakOrderResult
    from sgdsde.comparison.result import Comparison as Comparison
    from sgdsde.comparison.svag import SVAGReport as SVAGReport
    from sgdsde.comparison.svag import svag_extrapolation as svag_extrapolation
    from sgdsde.comparison.wasserstein import Wasserstein as Wasserstein
    from sgdsde.comparison.wasserstein import wasserstein_two_sample as wasserstein_two_sample
    from sgdsde.comparison.weak import weak_order as weak_order
    from sgdsde.comparison.weak_error_result import WeakErrorResult as WeakErrorResult

_NAMES = {
    "Comparison": "result",
    "Extrapolation": "extrapolation",
    "FluctuationDissipation": "fluctuation",
    "OrderResult": "order_result",
    "SVAGReport": "svag",
    "Wasserstein": "wasserstein",
    "WeakErrorResult": "weak_error_result",
    "WeakOrderResult": "order_result",
    "autocorrelation_time": "averages",
    "batch_means": "averages",
    "compare": "comparing",
    "ks_two_sample": "distributions",
    "richardson": "extrapolation",
    "strong_order": "order",
    "svag_extrapolation": "svag",
    "wasserstein_two_sample": "wasserstein",
    "weak_error": "against_sde",
    "weak_order": "weak",
}

__all__ = [
    "Comparison",
    "Extrapolation",
    "FluctuationDissipation",
    "OrderResult",
    "SVAGReport",
    "Wasserstein",
    "WeakErrorResult",
    "WeakOrderResult",
    "autocorrelation_time",
    "batch_means",
    "compare",
    "ks_two_sample",
    "richardson",
    "strong_order",
    "svag_extrapolation",
    "wasserstein_two_sample",
    "weak_error",
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
