"""The registry: it reads the folder, and says why a method cannot take an equation."""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from sgdsde._check import show
from sgdsde._errors import ArgumentError
from sgdsde.schemes._scheme import NOISE_KINDS, Scheme

__all__ = ["Methods", "check", "get_scheme", "methods", "table"]

_WORDS = {"ito": "Itô", "stratonovich": "Stratonovich", "discrete": "discrete"}
_CONVERT = {"ito": "to_ito", "stratonovich": "to_stratonovich"}


class Methods(Mapping[str, Scheme]):
    """Name -> Scheme, for every page of this folder. Names are the file names; taking a scheme loads its page.

    >>> from sgdsde.schemes import methods
    >>> "milstein" in methods, "milstien" in methods
    (True, False)
    >>> methods["heun"].strong["scalar"]
    1.0
    """

    def __init__(self) -> None:
        pages = pkgutil.iter_modules([str(Path(__file__).parent)])
        self._pages = {page.name.replace("_", "-"): page.name for page in pages if not page.name.startswith("_")}

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._pages))

    def __len__(self) -> int:
        return len(self._pages)

    def __contains__(self, name: object) -> bool:
        return name in self._pages

    def __getitem__(self, name: str) -> Scheme:
        return import_module(f"{__package__}.{self._pages[name]}").SCHEME

    def __repr__(self) -> str:
        return f"<methods: {', '.join(self)}>"


methods = Methods()


def get_scheme(method: str | Scheme) -> Scheme:
    """The scheme of that name; a Scheme is returned as it is.

    Raises
    ------
    ArgumentError
        The name is not known: the message lists the names, and the one that comes close.
    """
    if isinstance(method, Scheme):
        return method
    if isinstance(method, str) and method in methods:
        return methods[method]
    close = difflib.get_close_matches(str(method).lower().replace("_", "-"), list(methods), n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if isinstance(method, str) and close else ""
    names = ", ".join(map(repr, methods))
    raise ArgumentError(f"method must be one of {names}, or a Scheme, got {show(method)}{hint}")


def check(scheme: Scheme, noise: str, calculus: str) -> None:
    """Whether the scheme may integrate an equation of this noise kind and calculus; returns if so.

    Additive noise has one law in both calculi, so every method that accepts the kind takes it from either.

    Raises
    ------
    ArgumentError
        It may not. The message says why, and which methods may or how to convert the equation.
    """
    if calculus not in scheme.calculus and not (noise == "additive" and _continuous(scheme) and calculus in _CONVERT):
        raise ArgumentError(_wrong_calculus(scheme, noise, calculus))
    if calculus in _CONVERT and noise not in scheme.strong:
        reason = scheme.extra.get(noise) or f"use {_names(noise, calculus)}"
        takes = ", ".join(kind for kind in NOISE_KINDS if kind in scheme.strong)
        raise ArgumentError(f"method {scheme.name!r} takes {takes} noise, this equation has {noise} noise: {reason}")


def _continuous(scheme: Scheme) -> bool:
    return any(calculus in _CONVERT for calculus in scheme.calculus)


def _wrong_calculus(scheme: Scheme, noise: str, calculus: str) -> str:
    if calculus not in _CONVERT:
        return (
            f"method {scheme.name!r} integrates stochastic differential equations, and this is a {calculus} recursion, "
            "which brings its own step: leave method out"
        )
    if not _continuous(scheme):
        return f"method {scheme.name!r} is the step of a discrete recursion, and this is an {_WORDS[calculus]} equation"
    own = next(one for one in scheme.calculus if one in _CONVERT)
    return (
        f"method {scheme.name!r} integrates {_WORDS[own]} equations, and this one is {_WORDS[calculus]}: "
        f"convert it with {_CONVERT[own]}(sde), or use {_names(noise, calculus)}"
    )


def _names(noise: str, calculus: str) -> str:
    """The methods that take such an equation; loads every page."""
    fit = [repr(name) for name, one in methods.items() if calculus in one.calculus and noise in one.strong]
    return " or ".join(fit) or "no method so far"


def table() -> list[dict[str, Any]]:
    """One row of traits for each method, for the docs and the command line.

    Returns
    -------
    list of dict
        'name', 'calculus' (words), 'strong' (noise kind -> order, kinds it refuses left out), 'weak' (likewise),
        'evaluations', 'ode_order', 'reference', 'summary'.

    Examples
    --------
    >>> from sgdsde.schemes import table
    >>> [(row["name"], row["calculus"], row["strong"].get("general")) for row in table() if row["name"] == "heun"]
    [('heun', 'Stratonovich', 0.5)]
    """
    return [
        {
            "name": name,
            "calculus": ", ".join(_WORDS[calculus] for calculus in scheme.calculus),
            "strong": {kind: scheme.strong[kind] for kind in NOISE_KINDS if kind in scheme.strong},
            "weak": {kind: scheme.weak[kind] for kind in NOISE_KINDS if kind in scheme.weak},
            "evaluations": scheme.evaluations,
            "ode_order": scheme.ode_order,
            "reference": scheme.reference,
            "summary": scheme.summary,
        }
        for name, scheme in methods.items()
    ]
