"""Which method suits an equation and a goal: `method="auto"`. It reads the traits of the pages, and a list of ties.

- 'strong': paths. The highest strong order for the kind of noise; a new page with a higher one is taken by itself.
- 'weak': means and laws. The highest weak order whose cost does not grow out of hand with the number of noises.
- 'charge': a quadratic charge follows its own law. The implicit midpoint, whose charge has no noise at all, where the
  correction that it needs is exact; the symmetric Milstein method, whose charge has strong order 1.0, elsewhere.

What cannot be had is refused with the reason: strong order 1.0 with many noises that do not commute, and recursions.
"""

from __future__ import annotations

from typing import NamedTuple

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.schemes._registry import methods
from sgdsde.schemes._scheme import NOISE_KINDS, Scheme

__all__ = ["GOALS", "Choice", "choose"]

GOALS = ("strong", "weak", "charge")

# Among methods of the highest order, the first of these; what is not listed comes last, by name.
TIES = {
    ("strong", "ito"): ("sra1", "sriw1", "milstein", "sri2", "euler-maruyama"),
    ("strong", "stratonovich"): ("sra1", "heun", "milstein", "srs2"),
    ("weak", "ito"): ("sra1", "sriw1", "platen", "euler-maruyama"),
    ("weak", "stratonovich"): ("sra1", "heun"),
}
MOST_NOISES = {"milstein": 128, "sri2": 128, "srs2": 128, "platen": 32}
"""Methods whose evaluations or integrals grow with m where noise is not diagonal: passed over beyond this m."""
FEW_NOISES = 2
"""Up to here columns that commute cost less by their supports than by a correction."""


class Choice(NamedTuple):
    """A method, and why, in one sentence."""

    method: str
    reason: str


def choose(
    noise: str,
    calculus: str,
    goal: str = "strong",
    *,
    d: int,
    m: int,
    correction: bool = False,
    derivative: bool = False,
) -> Choice:
    """The method for an equation and a goal.

    Parameters
    ----------
    noise : {'none', 'additive', 'scalar', 'diagonal', 'commutative', 'general'}
        The kind as `noise_structure` measures it.
    calculus : {'ito', 'stratonovich'}
    goal : {'strong', 'weak', 'charge'}
    d, m : int
        Numbers of components and of noises.
    correction : bool
        Whether the equation knows ½ Σ_j (b_j·∇)b_j exactly (a model of SGD, an SDE with its derivative).
    derivative : bool
        Whether the SDE has its derivative.

    Returns
    -------
    Choice
        `method` and `reason`.

    Raises
    ------
    ArgumentError
        Nothing suits; the message says why, and what to ask for instead.

    Examples
    --------
    >>> from sgdsde.schemes._choice import choose
    >>> choose("general", "ito", "strong", d=3, m=2).method
    'milstein'
    >>> choose("general", "ito", "strong", d=1800, m=1000)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    sgdsde._errors.ArgumentError: method='auto' finds no method for goal='strong': 1000 noises that do not commute ...
    """
    goal = _check.choice("goal", goal, GOALS)
    if calculus not in ("ito", "stratonovich"):
        raise ArgumentError(f"method='auto' chooses for Itô and Stratonovich equations, and this is {calculus!r}")
    noise = _check.choice("noise", noise, ("none", *NOISE_KINDS))
    kind = "additive" if noise == "none" else noise
    _check.count("d", d)
    m = _check.count("m", m, least=0)
    if goal == "charge":
        return _for_charge(kind, calculus, correction)
    fit = {name: one for name, one in methods.items() if _suits(one, kind, calculus) and not _too_many(name, kind, m)}
    ties = TIES[goal, calculus]
    if kind == "commutative" and calculus == "ito" and correction and not derivative and m > FEW_NOISES:
        ties = ("milstein-symmetric", *ties)
    best = max((_order(one, goal, kind) for one in fit.values()), default=0.0)
    if goal == "strong" and kind == "general" and best < 1.0:
        usual = "euler-maruyama" if calculus == "ito" else "heun"
        raise ArgumentError(
            f"method='auto' finds no method for goal='strong': {m} noises that do not commute need {m * m} iterated "
            "integrals at every step for strong order 1.0; use goal='weak', goal='charge', or name a method of strong "
            f"order 0.5 ({usual!r})"
        )
    equal = [name for name, one in fit.items() if _order(one, goal, kind) == best]
    name = min(equal, key=lambda name: (ties.index(name) if name in ties else len(ties), name))
    words = "no noise" if noise == "none" else f"{noise} noise"
    cost = "one evaluation with the derivative" if derivative and name == "milstein" else fit[name].evaluations
    return Choice(name, f"{goal} order {best:g} for {words}, and no other method has a higher one at its cost ({cost})")


def _for_charge(kind: str, calculus: str, correction: bool) -> Choice:
    if "implicit-midpoint" in methods:
        scheme = methods["implicit-midpoint"]
        if _suits(scheme, kind, calculus) and (correction or "correction" not in scheme.needs_for(kind, calculus)):
            return Choice(scheme.name, "the charge of an implicit midpoint step has its own rate and no noise term")
    reason = "strong order 1.0 of a charge for any noise"
    if calculus == "ito" and kind != "additive":
        reason += "; the implicit midpoint would need the exact correction ½ Σ_j (b_j·∇)b_j, which this equation lacks"
    return Choice("milstein-symmetric", reason)


def _suits(scheme: Scheme, kind: str, calculus: str) -> bool:
    """Whether a scheme takes such equations, all of them: one that prepares may still refuse."""
    takes = calculus in scheme.calculus or kind == "additive"
    return takes and kind in scheme.strong and scheme.prepare is None


def _too_many(name: str, kind: str, m: int) -> bool:
    return kind in ("commutative", "general") and m > MOST_NOISES.get(name, m)


def _order(scheme: Scheme, goal: str, kind: str) -> float:
    return (scheme.strong if goal == "strong" else scheme.weak).get(kind, 0.0)
