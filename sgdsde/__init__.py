"""SGD, its stochastic differential equation, and the charges of their symmetries, through one compiled engine.

Equations and running: `SDE`, `solve`, `methods`. SGD: `models`, `SGD`, `compare`. Symmetry: `Generator`, `Charge`,
`ChargeLaw`, `decompose`, `noise_equilibrium`. Every public name is loaded when it is first used (PEP 562), so that
`import sgdsde` is quick and compiles nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names once more, for type checkers; tests/smoke/test_import.py keeps both lists equal
    from sgdsde import (
        datasets as datasets,
        models as models,
        plot as plot,
        random as random,
        symmetry as symmetry,
        testing as testing,
        theory as theory,
    )
    from sgdsde._errors import (
        ArgumentError as ArgumentError,
        DivergenceWarning as DivergenceWarning,
        ModelError as ModelError,
        SgdsdeError as SgdsdeError,
        ShapeError as ShapeError,
        TooLargeError as TooLargeError,
    )
    from sgdsde.algebra import (
        Generator as Generator,
        rescaling as rescaling,
        rotation as rotation,
        scaling as scaling,
        translation as translation,
    )
    from sgdsde.cli.warmup import warmup as warmup
    from sgdsde.comparison import (
        FluctuationDissipation as FluctuationDissipation,
        compare as compare,
        richardson as richardson,
        strong_order as strong_order,
        svag_extrapolation as svag_extrapolation,
        weak_error as weak_error,
        weak_order as weak_order,
    )
    from sgdsde.equation import (
        SDE as SDE,
        noise_structure as noise_structure,
        to_ito as to_ito,
        to_stratonovich as to_stratonovich,
    )
    from sgdsde.models import losses as losses
    from sgdsde.random import Brownian as Brownian, iterated_integrals as iterated_integrals
    from sgdsde.run.choosing import choose_method as choose_method
    from sgdsde.run.solution import Solution as Solution
    from sgdsde.run.solving import solve as solve
    from sgdsde.schemes import Scheme as Scheme, methods as methods
    from sgdsde.sgd import SGD as SGD, optimizers as optimizers, schedules as schedules
    from sgdsde.symmetry import (
        Charge as Charge,
        ChargeLaw as ChargeLaw,
        NoetherCharge as NoetherCharge,
        OrbitProjection as OrbitProjection,
        check_symmetry as check_symmetry,
        decompose as decompose,
        discover_symmetries as discover_symmetries,
        noise_equilibrium as noise_equilibrium,
    )

    __version__: str

_NAMES = {  # public name -> module that holds it; a module that holds itself is a room
    # equations
    "SDE": "sgdsde.equation",
    "to_ito": "sgdsde.equation",
    "to_stratonovich": "sgdsde.equation",
    "noise_structure": "sgdsde.equation",
    # running
    "solve": "sgdsde.run.solving",
    "Solution": "sgdsde.run.solution",
    "choose_method": "sgdsde.run.choosing",
    "methods": "sgdsde.schemes",
    "Scheme": "sgdsde.schemes",
    "warmup": "sgdsde.cli.warmup",
    # randomness
    "Brownian": "sgdsde.random",
    "iterated_integrals": "sgdsde.random",
    # SGD
    "SGD": "sgdsde.sgd",
    "optimizers": "sgdsde.sgd",
    "losses": "sgdsde.models",
    "schedules": "sgdsde.sgd",
    "compare": "sgdsde.comparison",
    "FluctuationDissipation": "sgdsde.comparison",
    "weak_error": "sgdsde.comparison",
    "svag_extrapolation": "sgdsde.comparison",
    # symmetry
    "Generator": "sgdsde.algebra",
    "rescaling": "sgdsde.algebra",
    "scaling": "sgdsde.algebra",
    "rotation": "sgdsde.algebra",
    "translation": "sgdsde.algebra",
    "Charge": "sgdsde.symmetry",
    "ChargeLaw": "sgdsde.symmetry",
    "NoetherCharge": "sgdsde.symmetry",
    "OrbitProjection": "sgdsde.symmetry",
    "check_symmetry": "sgdsde.symmetry",
    "discover_symmetries": "sgdsde.symmetry",
    "decompose": "sgdsde.symmetry",
    "noise_equilibrium": "sgdsde.symmetry",
    # quality
    "richardson": "sgdsde.comparison",
    "strong_order": "sgdsde.comparison",
    "weak_order": "sgdsde.comparison",
    # errors
    "SgdsdeError": "sgdsde._errors",
    "ArgumentError": "sgdsde._errors",
    "ShapeError": "sgdsde._errors",
    "TooLargeError": "sgdsde._errors",
    "ModelError": "sgdsde._errors",
    "DivergenceWarning": "sgdsde._errors",
}
_ROOMS = ("datasets", "models", "plot", "random", "symmetry", "testing", "theory")

__all__ = ["__version__", *_NAMES, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    elif name in _ROOMS:
        return import_module(f"sgdsde.{name}")
    elif name == "__version__":
        value = _version()
    else:
        raise AttributeError(f"module 'sgdsde' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("sgdsde")
    except PackageNotFoundError:  # the folder is on the path without having been installed
        return "0+not.installed"
