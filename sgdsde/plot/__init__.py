"""Figures of runs: trajectories, charges beside their laws, equilibria from two sides, motion along and across orbits.

Offers `trajectories`, `charge`, `charge_gap`, `equilibrium`, `catch` and `decomposition`. Each draws on `ax=` (or a new
figure) and returns the axes; matplotlib is imported when one is called, its settings are left alone, nothing is shown.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgdsde.plot.balance import equilibrium as equilibrium
    from sgdsde.plot.catching import catch as catch
    from sgdsde.plot.laws import charge as charge
    from sgdsde.plot.laws import charge_gap as charge_gap
    from sgdsde.plot.paths import trajectories as trajectories
    from sgdsde.plot.splitting import decomposition as decomposition

_NAMES = {
    "catch": "catching",
    "charge": "laws",
    "charge_gap": "laws",
    "decomposition": "splitting",
    "equilibrium": "balance",
    "trajectories": "paths",
}

__all__ = ["catch", "charge", "charge_gap", "decomposition", "equilibrium", "trajectories"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'sgdsde.plot' has no attribute {name!r}")
    value = getattr(import_module(f"sgdsde.plot.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
