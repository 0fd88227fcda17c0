"""Random numbers with an address (seed, path, purpose, number): no state, so any part of any path can be had alone.

`key_from` turns `rng` into a key; `normals`, `indices`, `subset` read numbers of one path; `fill_*` are the compiled
functions behind them, for blocks of paths. `iterated_integrals` and `levy_area` go with increments that are there;
`Brownian` is a path of which everything can be asked, and `coarsen` its steps made longer.
"""

from __future__ import annotations

from typing import Any

from sgdsde.random.stream import RNG_VERSION, indices, key_from, normals, subset

__all__ = [
    "RNG_VERSION",
    "Brownian",
    "coarsen",
    "fill_indices",
    "fill_normals",
    "fill_subsets",
    "indices",
    "iterated_integrals",
    "key_from",
    "levy_area",
    "levy_terms",
    "normals",
    "subset",
    "subset_work",
]

_COMPILED = {
    "Brownian": "sgdsde.random.brownian",
    "coarsen": "sgdsde.random.brownian_chen",
    "fill_normals": "sgdsde.random.normal",
    "fill_indices": "sgdsde.random.integers",
    "fill_subsets": "sgdsde.random.integers",
    "iterated_integrals": "sgdsde.random.levy_integrals",
    "levy_area": "sgdsde.random.levy_integrals",
    "levy_terms": "sgdsde.random.levy_integrals",
    "subset_work": "sgdsde.random.integers",
}


def __getattr__(name: str) -> Any:
    if name not in _COMPILED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_COMPILED[name]), name)
