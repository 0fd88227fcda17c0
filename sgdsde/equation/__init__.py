"""What to integrate: an SDE written as Python functions, compiled for the engine, and what can be measured of it.

Offers `SDE`, `to_ito` and `to_stratonovich` (the drift in the other calculus), `noise_structure` (additive … general).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sgdsde.equation.calculus import to_ito as to_ito
    from sgdsde.equation.calculus import to_stratonovich as to_stratonovich
    from sgdsde.equation.sde import SDE as SDE
    from sgdsde.equation.structure import noise_structure as noise_structure

_NAMES = {"SDE": "sde", "to_ito": "calculus", "to_stratonovich": "calculus", "noise_structure": "structure"}

__all__ = ["SDE", "noise_structure", "to_ito", "to_stratonovich"]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'sgdsde.equation' has no attribute {name!r}")
    return getattr(import_module(f"sgdsde.equation.{_NAMES[name]}"), name)
