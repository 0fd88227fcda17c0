"""What `method="auto"` takes: by goal, kind of noise and calculus, from the traits; what it refuses, and why."""

import re
from dataclasses import replace

import pytest

from sgdsde._errors import ArgumentError
from sgdsde.schemes import NOISE_KINDS, _choice, check, methods
from sgdsde.schemes._choice import choose

BOTH = ("ito", "stratonovich")
GOALS = ("strong", "weak", "charge")


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("calculus", BOTH)
@pytest.mark.parametrize("noise", NOISE_KINDS)
def test_the_choice_takes_the_equation_and_none_is_better(noise, calculus, goal):
    method, reason = choose(noise, calculus, goal, d=3, m=1 if noise == "scalar" else 3)
    check(methods[method], noise, calculus)
    assert reason and "\n" not in reason
    if goal != "charge":
        traits = "strong" if goal == "strong" else "weak"
        mine = getattr(methods[method], traits)[noise]
        assert mine >= 1.0 and f"order {mine:g}" in reason
        for one in methods.values():
            if noise in one.strong and (calculus in one.calculus or noise == "additive") and one.prepare is None:
                assert getattr(one, traits)[noise] <= mine, one.name


@pytest.mark.parametrize("calculus", BOTH)
def test_general_noise_gets_areas(calculus):
    assert choose("general", calculus, d=2, m=3).method == "milstein"
    plain, known = (choose("general", calculus, d=2, m=3, derivative=given) for given in (False, True))
    assert "m + 1" in plain.reason and "one evaluation" in known.reason


@pytest.mark.parametrize("calculus, usual", [("ito", "euler-maruyama"), ("stratonovich", "heun")])
def test_too_many_areas_are_refused_with_the_reason(calculus, usual):
    assert choose("general", calculus, d=5, m=128).method == "milstein"
    with pytest.raises(ArgumentError, match=rf"goal='strong'.*1000000 iterated integrals.*goal='weak'.*'{usual}'"):
        choose("general", calculus, d=5, m=1000)
    for goal in ("weak", "charge"):  # what the message offers can be had
        check(methods[choose("general", calculus, goal, d=5, m=1000).method], "general", calculus)
    assert methods[usual].strong["general"] == 0.5


def test_commuting_columns_cost_no_more_than_they_must():
    assert choose("commutative", "ito", d=3, m=2, correction=True).method == "milstein"
    assert choose("commutative", "ito", d=3, m=50, correction=True).method == "milstein-symmetric"
    assert choose("commutative", "ito", d=3, m=50, correction=True, derivative=True).method == "milstein"
    assert choose("commutative", "ito", d=3, m=50).method == "milstein"
    assert methods[choose("commutative", "ito", d=3, m=1000).method].strong["commutative"] == 1.0


def test_weak_order_two_is_not_bought_with_hundreds_of_evaluations():
    few, many = (methods[choose("general", "ito", "weak", d=2, m=m).method].weak["general"] for m in (3, 1000))
    assert few >= many >= 1.0
    assert choose("general", "ito", "weak", d=2, m=1000).method == "euler-maruyama"


def test_every_method_that_grows_with_the_noises_is_known():
    """'2m + 1' in the traits, and areas: neither is taken at m = 1000 without a thought."""
    for name, scheme in methods.items():
        grows = re.search(r"\b\d*m\b", scheme.evaluations)
        for calculus in scheme.calculus:
            aux = scheme.aux_for("general", calculus) if "general" in scheme.strong else None
            if grows or (aux is not None and aux.rows(3, 100) > 1000):
                assert name in _choice.MOST_NOISES, name
    assert all(name in methods for name in _choice.MOST_NOISES)


def test_a_charge_is_kept_where_it_can_be(monkeypatch):
    names = {(calculus, exact): choose("general", calculus, "charge", d=4, m=9, correction=exact).method
             for calculus in BOTH for exact in (False, True)}  # fmt: skip
    midpoint = "implicit-midpoint"
    assert names["ito", False] == "milstein-symmetric"
    assert names["ito", True] == names["stratonovich", False] == names["stratonovich", True] == midpoint
    assert "correction" in choose("general", "ito", "charge", d=4, m=9).reason
    monkeypatch.delitem(methods._pages, midpoint)
    for calculus in BOTH:
        assert choose("general", calculus, "charge", d=4, m=9, correction=True).method == "milstein-symmetric"


def test_a_method_that_may_still_refuse_is_not_taken(monkeypatch):
    """One that prepares takes some equations only, however high its order."""
    best = replace(methods["milstein"], name="best", strong=dict.fromkeys(NOISE_KINDS, 3.0))

    def listed(scheme):
        return {**methods, "best": scheme}

    monkeypatch.setattr(_choice, "methods", listed(best))
    assert choose("scalar", "ito", d=1, m=1) == ("best", choose("scalar", "ito", d=1, m=1).reason)
    monkeypatch.setattr(_choice, "methods", listed(replace(best, prepare=lambda *a: [])))
    assert choose("scalar", "ito", d=1, m=1).method != "best"


def test_no_noise_is_additive_noise():
    for calculus in BOTH:
        method, reason = choose("none", calculus, d=2, m=0)
        assert method == choose("additive", calculus, d=2, m=2).method and "no noise" in reason


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("general", "discrete"), "'discrete'"),
        (("coloured", "ito"), "noise must be one of"),
        (("general", "ito", "fast"), "goal must be one of 'strong', 'weak', 'charge'"),
    ],
)
def test_arguments_are_named(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        choose(*arguments, d=1, m=1)
