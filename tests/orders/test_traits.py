"""The strong order of every method is the one its traits state, for every kind of noise it accepts, in both calculi.

The gate is five standard errors (a false alarm in 10^6) with a fixed seed; an interval never reaches further than 0.25,
so the neighbouring orders are outside. Methods that share a step for a kind of noise are measured once.
"""

import pytest

from sgdsde.comparison.order import strong_order
from sgdsde.schemes import NOISE_KINDS, methods


def cases():
    """(name, noise, calculus, number of the problem): read from the traits."""
    seen = set()
    for name, scheme in methods.items():
        for noise in scheme.strong:
            for calculus in ("ito", "stratonovich"):
                if calculus in scheme.calculus or noise == "additive":
                    step = (id(scheme.kernel(noise, calculus)), noise, calculus)
                    if step not in seen:
                        seen.add(step)
                        for i in range(2 if noise in ("commutative", "general") else 1):
                            yield pytest.param(name, noise, calculus, i, id=f"{name}-{noise}-{calculus}-{i}")


@pytest.mark.parametrize("name, noise, calculus, i", list(cases()))
def test_strong_order_is_the_trait(problems, name, noise, calculus, i):
    problem = problems.by_noise[noise][i](calculus)
    cost = {"n_paths": 4000, "n_steps": (16, 32, 64, 128, 256)}
    if problem.exact is None:
        cost = {"n_paths": 600, "n_steps": (8, 16, 32, 64, 128)}
    result = strong_order(problem.sde, problem.y0, (0, 1), name, reference=problem.exact, rng=1, sigmas=5, **cost)
    trait = methods[name].strong[noise]
    assert result.verdict == "consistent" and result.expected == trait, result.explain()
    low, high = result.interval
    assert trait - 0.5 < low <= trait <= high < trait + 0.5, result.explain()


@pytest.mark.parametrize("noise", NOISE_KINDS)
def test_every_kind_of_noise_has_vetted_problems(problems, noise):
    """The problem is what it is called: m ≠ d among them, and the general ones do not commute."""
    from sgdsde.equation import noise_structure

    for make in problems.by_noise[noise]:
        for calculus in ("ito", "stratonovich"):
            problem = make(calculus)
            equation = problem.sde.bind(0.0, problem.y0)
            assert equation.noise == noise and equation.calculus == calculus
            found = noise_structure(problem.sde, problem.y0)
            assert found.commutative is (noise != "general")
            assert found.additive is (noise == "additive")
