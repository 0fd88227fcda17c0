"""Laws of symmetric SGD as assertions, and hypothesis strategies: to test one's own models, generators or methods.

Offers `assert_laws` and the single laws (each says what holds, to which tolerance and why, and fails with a witness),
one-step enumerations (`all_batches`, `batch_steps`, `all_signs`, `sde_steps`), and `strategies` (needs hypothesis).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgdsde.testing import strategies as strategies
    from sgdsde.testing._holding import BrokenLaw as BrokenLaw
    from sgdsde.testing.activations import assert_unit_balance as assert_unit_balance
    from sgdsde.testing.corrections import assert_correction as assert_correction
    from sgdsde.testing.corrections import assert_orbit_correction as assert_orbit_correction
    from sgdsde.testing.discrete import assert_discrete_law as assert_discrete_law
    from sgdsde.testing.discrete import assert_discrete_mean as assert_discrete_mean
    from sgdsde.testing.equilibria import assert_closed_form as assert_closed_form
    from sgdsde.testing.equilibria import assert_equilibrium as assert_equilibrium
    from sgdsde.testing.equilibria import assert_equilibrium_on_orbit as assert_equilibrium_on_orbit
    from sgdsde.testing.equilibria import assert_monotone_rate as assert_monotone_rate
    from sgdsde.testing.euler import assert_equal_means as assert_equal_means
    from sgdsde.testing.euler import assert_euler_maruyama_law as assert_euler_maruyama_law
    from sgdsde.testing.euler import assert_euler_maruyama_mean as assert_euler_maruyama_mean
    from sgdsde.testing.euler import assert_euler_maruyama_variance as assert_euler_maruyama_variance
    from sgdsde.testing.everything import assert_laws as assert_laws
    from sgdsde.testing.families import assert_layer_balance as assert_layer_balance
    from sgdsde.testing.families import assert_uw_law as assert_uw_law
    from sgdsde.testing.midpoint import assert_midpoint_rate as assert_midpoint_rate
    from sgdsde.testing.midpoint import assert_sign_pair as assert_sign_pair
    from sgdsde.testing.noise import assert_covariance as assert_covariance
    from sgdsde.testing.noise import assert_noise as assert_noise
    from sgdsde.testing.noise import assert_rotated_factor as assert_rotated_factor
    from sgdsde.testing.norms import assert_norm_law as assert_norm_law
    from sgdsde.testing.orbits import assert_losses_kept as assert_losses_kept
    from sgdsde.testing.orbits import assert_orbit_covariance as assert_orbit_covariance
    from sgdsde.testing.potential import assert_degenerate_equilibrium as assert_degenerate_equilibrium
    from sgdsde.testing.potential import assert_equilibrium_invariances as assert_equilibrium_invariances
    from sgdsde.testing.potential import assert_potential as assert_potential
    from sgdsde.testing.potential import assert_relaxation_rate as assert_relaxation_rate
    from sgdsde.testing.projections import assert_midpoint_projection as assert_midpoint_projection
    from sgdsde.testing.projections import assert_start_projection as assert_start_projection
    from sgdsde.testing.quiet import assert_quiet_path as assert_quiet_path
    from sgdsde.testing.samplers import assert_sampling as assert_sampling
    from sgdsde.testing.signs import assert_uw_sign as assert_uw_sign
    from sgdsde.testing.steps import all_batches as all_batches
    from sgdsde.testing.steps import all_signs as all_signs
    from sgdsde.testing.steps import batch_steps as batch_steps
    from sgdsde.testing.steps import gauss_nodes as gauss_nodes
    from sgdsde.testing.steps import sde_steps as sde_steps
    from sgdsde.testing.tangency import assert_curvature as assert_curvature
    from sgdsde.testing.tangency import assert_factor_tangent as assert_factor_tangent
    from sgdsde.testing.tangency import assert_tangent as assert_tangent

_NAMES = {
    "BrokenLaw": "_holding",
    "all_batches": "steps",
    "all_signs": "steps",
    "assert_closed_form": "equilibria",
    "assert_correction": "corrections",
    "assert_covariance": "noise",
    "assert_curvature": "tangency",
    "assert_degenerate_equilibrium": "potential",
    "assert_discrete_law": "discrete",
    "assert_discrete_mean": "discrete",
    "assert_equal_means": "euler",
    "assert_equilibrium": "equilibria",
    "assert_equilibrium_invariances": "potential",
    "assert_equilibrium_on_orbit": "equilibria",
    "assert_euler_maruyama_law": "euler",
    "assert_euler_maruyama_mean": "euler",
    "assert_euler_maruyama_variance": "euler",
    "assert_factor_tangent": "tangency",
    "assert_laws": "everything",
    "assert_layer_balance": "families",
    "assert_losses_kept": "orbits",
    "assert_midpoint_projection": "projections",
    "assert_midpoint_rate": "midpoint",
    "assert_monotone_rate": "equilibria",
    "assert_noise": "noise",
    "assert_norm_law": "norms",
    "assert_orbit_correction": "corrections",
    "assert_orbit_covariance": "orbits",
    "assert_potential": "potential",
    "assert_quiet_path": "quiet",
    "assert_relaxation_rate": "potential",
    "assert_rotated_factor": "noise",
    "assert_sampling": "samplers",
    "assert_sign_pair": "midpoint",
    "assert_start_projection": "projections",
    "assert_tangent": "tangency",
    "assert_unit_balance": "activations",
    "assert_uw_law": "families",
    "assert_uw_sign": "signs",
    "batch_steps": "steps",
    "gauss_nodes": "steps",
    "sde_steps": "steps",
}

__all__ = [*_NAMES, "strategies"]


def __getattr__(name: str) -> Any:
    if name == "strategies":
        return import_module("sgdsde.testing.strategies")
    if name not in _NAMES:
        raise AttributeError(f"module 'sgdsde.testing' has no attribute {name!r}")
    value = getattr(import_module(f"sgdsde.testing.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
