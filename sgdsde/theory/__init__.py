"""Closed forms: what symmetry, noise and weight decay do to SGD where it can be worked out on paper.

Linear networks: `LinearTask`, `two_layer_equilibrium`, `deep_linear_equilibrium`, `sharpening`. The model uw and deeper
chains: `StationaryLaw`, `reduced_sde`, `regimes`, exponents of collapse. Scale invariance, stability, modified losses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgdsde.theory.balance import TwoLayers as TwoLayers
    from sgdsde.theory.balance import balance_decay as balance_decay
    from sgdsde.theory.balance import balance_residual as balance_residual
    from sgdsde.theory.balance import noise_matrices as noise_matrices
    from sgdsde.theory.balance import relaxation_rates as relaxation_rates
    from sgdsde.theory.balance import two_layer_equilibrium as two_layer_equilibrium
    from sgdsde.theory.collapse import critical_learning_rate as critical_learning_rate
    from sgdsde.theory.collapse import sde_exponent as sde_exponent
    from sgdsde.theory.collapse import sgd_exponent as sgd_exponent
    from sgdsde.theory.collapse import sgd_exponent_gauss as sgd_exponent_gauss
    from sgdsde.theory.law_of_balance import LawOfBalance as LawOfBalance
    from sgdsde.theory.law_of_balance import uw_decay as uw_decay
    from sgdsde.theory.linear_model import second_moment as second_moment
    from sgdsde.theory.linear_model import stationary_variance as stationary_variance
    from sgdsde.theory.linear_network import DeepLayers as DeepLayers
    from sgdsde.theory.linear_network import active_norms as active_norms
    from sgdsde.theory.linear_network import deep_linear_equilibrium as deep_linear_equilibrium
    from sgdsde.theory.linear_network import layer_noise as layer_noise
    from sgdsde.theory.linear_network import orbit_equilibrium as orbit_equilibrium
    from sgdsde.theory.linear_network import pair_residuals as pair_residuals
    from sgdsde.theory.modified import modified_gradient as modified_gradient
    from sgdsde.theory.modified import modified_loss as modified_loss
    from sgdsde.theory.modified import shuffled_loss as shuffled_loss
    from sgdsde.theory.modified import slow_potential as slow_potential
    from sgdsde.theory.phases import Regimes as Regimes
    from sgdsde.theory.phases import critical_noise as critical_noise
    from sgdsde.theory.phases import interior_mode as interior_mode
    from sgdsde.theory.phases import regimes as regimes
    from sgdsde.theory.reduced import reduced_sde as reduced_sde
    from sgdsde.theory.scale_invariant import angular_update as angular_update
    from sgdsde.theory.scale_invariant import equilibrium_norm as equilibrium_norm
    from sgdsde.theory.scale_invariant import norm_at as norm_at
    from sgdsde.theory.sharpness import Sharpness as Sharpness
    from sgdsde.theory.sharpness import equilibrium_sharpness as equilibrium_sharpness
    from sgdsde.theory.sharpness import hessian_trace as hessian_trace
    from sgdsde.theory.sharpness import least_sharpness as least_sharpness
    from sgdsde.theory.sharpness import sharpening as sharpening
    from sgdsde.theory.stability import gd_limit as gd_limit
    from sgdsde.theory.stability import sgd_limit as sgd_limit
    from sgdsde.theory.stability import sgd_radius as sgd_radius
    from sgdsde.theory.stationary import StationaryLaw as StationaryLaw
    from sgdsde.theory.task import LinearTask as LinearTask
    from sgdsde.theory.warming import WarmUp as WarmUp
    from sgdsde.theory.warming import warm_up as warm_up
    from sgdsde.theory.weight_decay import weight_decay_minimum as weight_decay_minimum

_NAMES = {
    "DeepLayers": "linear_network",
    "LawOfBalance": "law_of_balance",
    "LinearTask": "task",
    "Regimes": "phases",
    "Sharpness": "sharpness",
    "StationaryLaw": "stationary",
    "TwoLayers": "balance",
    "WarmUp": "warming",
    "active_norms": "linear_network",
    "angular_update": "scale_invariant",
    "balance_decay": "balance",
    "balance_residual": "balance",
    "critical_learning_rate": "collapse",
    "critical_noise": "phases",
    "deep_linear_equilibrium": "linear_network",
    "equilibrium_norm": "scale_invariant",
    "equilibrium_sharpness": "sharpness",
    "gd_limit": "stability",
    "hessian_trace": "sharpness",
    "interior_mode": "phases",
    "layer_noise": "linear_network",
    "least_sharpness": "sharpness",
    "modified_gradient": "modified",
    "modified_loss": "modified",
    "noise_matrices": "balance",
    "norm_at": "scale_invariant",
    "orbit_equilibrium": "linear_network",
    "pair_residuals": "linear_network",
    "reduced_sde": "reduced",
    "regimes": "phases",
    "relaxation_rates": "balance",
    "sde_exponent": "collapse",
    "second_moment": "linear_model",
    "sgd_exponent": "collapse",
    "sgd_exponent_gauss": "collapse",
    "sgd_limit": "stability",
    "sgd_radius": "stability",
    "sharpening": "sharpness",
    "shuffled_loss": "modified",
    "slow_potential": "modified",
    "stationary_variance": "linear_model",
    "two_layer_equilibrium": "balance",
    "uw_decay": "law_of_balance",
    "warm_up": "warming",
    "weight_decay_minimum": "weight_decay",
}

__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'sgdsde.theory' has no attribute {name!r}")
    value = getattr(import_module(f"sgdsde.theory.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
