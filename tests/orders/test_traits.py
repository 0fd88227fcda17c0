"""The strong order of every method is the one its traits state, for every kind of noise it accepts, in both calculi.

Where the step needs iterated integrals or space-time areas, one Brownian path drives all grids. Methods without a
strong order (trait 0) are measured like the others: their paths do not converge. The gate is five standard errors (a
false alarm in 10^6) with a fixed seed; an interval never reaches further than 0.25, so the neighbouring orders are
outside. Methods that share a step for a kind of noise are measured once.
"""

import numpy as np
import pytest

from sgdsde import ArgumentError, solve
from sgdsde.comparison.order import strong_order
from sgdsde.schemes import NOISE_KINDS, methods

CALCULI = ("ito", "stratonovich")


def takes(scheme, noise, calculus):
    return noise in scheme.strong and (calculus in scheme.calculus or noise == "additive")


def cases():
    """(name, noise, calculus, number of the problem): read from the traits."""
    seen = set()
    for name, scheme in methods.items():
        for noise in scheme.strong:
            for calculus in CALCULI:
                if takes(scheme, noise, calculus):
                    step = (id(scheme.kernel(noise, calculus)), noise, calculus)
                    if step not in seen:
                        seen.add(step)
                        for i in range(1 if noise == "additive" else 2):
                            yield pytest.param(name, noise, calculus, i, id=f"{name}-{noise}-{calculus}-{i}")


@pytest.mark.parametrize("name, noise, calculus, i", list(cases()))
def test_strong_order_is_the_trait(problems, name, noise, calculus, i):
    problem = problems.by_noise[noise][i](calculus)
    try:
        result = measure(problem, name)
    except ArgumentError as error:
        assert "linear" in str(error), error  # such as ou-splitting, which takes the drift apart
        result = measure(problems.linear[noise](calculus), name)
    trait = methods[name].strong[noise]
    assert result.verdict == "consistent" and result.expected == trait, result.explain()
    low, high = result.interval
    assert trait - 0.5 < low <= trait <= high < trait + 0.5, result.explain()


def measure(problem, name):
    cost = {"n_paths": 4000, "n_steps": (16, 32, 64, 128, 256)}
    if problem.exact is None:
        cost = {"n_paths": 800, "n_steps": (16, 32, 64, 128, 256), "refine": 8}
        if methods[name].strong[problem.sde.noise] > 1:  # the next term is half an order away: finer steps
            cost = {"n_paths": 300, "n_steps": (32, 64, 128, 256, 512), "refine": 8}
    return strong_order(problem.sde, problem.y0, (0, 1), name, reference=problem.exact, rng=1, sigmas=5, **cost)


@pytest.mark.parametrize("noise", NOISE_KINDS)
def test_every_kind_of_noise_has_vetted_problems(problems, noise):
    """The problem is what it is called: m ≠ d among them, and the general ones do not commute."""
    from sgdsde.equation import noise_structure

    for make in [*problems.by_noise[noise], problems.linear[noise]]:
        for calculus in CALCULI:
            problem = make(calculus)
            equation = problem.sde.bind(0.0, problem.y0)
            assert equation.noise == noise and equation.calculus == calculus
            found = noise_structure(problem.sde, problem.y0)
            assert found.commutative is (noise != "general")
            assert found.additive is (noise == "additive")


@pytest.mark.parametrize("name", list(methods))
def test_additive_noise_gives_the_same_in_both_calculi(problems, name):
    if "additive" not in methods[name].strong:
        pytest.skip("does not take additive noise")
    for make in (problems.by_noise["additive"][0], problems.linear["additive"]):
        runs = []
        for calculus in CALCULI:
            problem = make(calculus)
            try:
                runs.append(solve(problem.sde, (0, 1), problem.y0, method=name, dt=0.1, n_paths=4, rng=0).y)
            except ArgumentError as error:
                assert "linear" in str(error) and make is not problems.linear["additive"], error
        if runs:
            np.testing.assert_array_equal(*runs)
