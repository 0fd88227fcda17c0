"""Wrong steps that have been shipped elsewhere are seen: the measured order is not the trait."""

from dataclasses import replace

import numpy as np
import pytest

from sgdsde._abi import STEP
from sgdsde._jit import kernel_uncached
from sgdsde.comparison.order import strong_order
from sgdsde.equation import SDE
from sgdsde.schemes import milstein


def book_step(drift_in_support, ito):
    """The textbook's derivative-free step for scalar and diagonal noise, with the support of a choice."""

    @kernel_uncached(STEP)
    def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
        y, g, support, v, none = np.empty_like(x), np.empty_like(x), x.copy(), np.ones_like(dW), np.zeros_like(h)
        increment(y, x, t, h, dW, p, data, work)
        increment(g, x, t, none, v, p, data, work)
        if drift_in_support:
            increment(support, x, t, h, np.zeros_like(dW), p, data, work)
            support += x
        for b in range(x.shape[1]):
            for i in range(x.shape[0]):
                support[i, b] += g[i, b] * np.sqrt(h[b])
            for j in range(dW.shape[0]):
                v[j, b] = 0.5 * (dW[j, b] ** 2 - (h[b] if ito else 0.0)) / np.sqrt(h[b])
        for b in range(x.shape[1]):
            for i in range(x.shape[0]):
                x[i, b] += y[i, b] - g[i, b] * v[i if dW.shape[0] > 1 else 0, b]
        increment(g, support, t, none, v, p, data, work)
        x += g

    return step


def mutant(step):
    return replace(milstein.SCHEME, name="mutant", step=step)


def geometric(calculus):
    """dX = X dt + X dW, and log X, whose error is as large and has no heavy tail."""

    def drift(t, y):
        return (y[0],)

    def diffusion(t, y):
        return (y[0],)

    def exact_log(t, W):
        return (1.0 - 0.5 * (calculus == "ito")) * t[-1] + W[:, -1]

    return SDE(drift, diffusion, dim=1, noise="scalar", calculus=calculus), exact_log


def measure(sde, y0, method, exact, quantity=None):
    cost = {"n_paths": 1000, "n_steps": (128, 256, 512, 1024, 2048), "rng": 2, "sigmas": 5}
    return strong_order(sde, y0, (0, 1), method, reference=exact, quantity=quantity, expected=1.0, **cost)


@pytest.mark.parametrize("calculus, order", [("ito", 1.0), ("stratonovich", 0.5)])
def test_a_drift_in_the_support_costs_the_stratonovich_step_half_an_order(calculus, order):
    """Linear equation: the mutant has 1.0 in Itô form and 0.5 in Stratonovich form, ours 1.0 in both."""
    sde, exact = geometric(calculus)
    wrong = measure(sde, [1.0], mutant(book_step(True, calculus == "ito")), exact, np.log)
    assert abs(wrong.order - order) < 0.1, wrong.explain()
    assert wrong.verdict == ("consistent" if order == 1.0 else "inconsistent"), wrong.explain()
    right = measure(sde, [1.0], "milstein", exact, np.log)
    assert right.verdict == "consistent" and abs(right.order - 1) < 0.1, right.explain()


@pytest.mark.parametrize("calculus, order", [("ito", 1.0), ("stratonovich", 0.5)])
def test_a_support_of_root_h_costs_it_too_when_the_noise_is_not_linear(problems, calculus, order):
    """Even without the drift. Linear test equations cannot show it."""
    problem = problems.by_noise["diagonal"][0](calculus)
    wrong = measure(problem.sde, problem.y0, mutant(book_step(False, calculus == "ito")), problem.exact)
    assert abs(wrong.order - order) < 0.2, wrong.explain()
    assert wrong.verdict == ("consistent" if order == 1.0 else "inconsistent"), wrong.explain()


def test_a_method_of_the_other_calculus_does_not_converge():
    """The Itô step on the Stratonovich equation: order 0, and the verdict says inconsistent."""
    sde, _ = geometric("ito")
    _, other = geometric("stratonovich")
    result = measure(sde, [1.0], "milstein", other, np.log)
    assert result.verdict == "inconsistent" and abs(result.order) < 0.1, result.explain()


def test_euler_is_not_taken_for_milstein(problems):
    problem = problems.by_noise["commutative"][0]("ito")
    result = strong_order(
        problem.sde, problem.y0, (0, 1), "euler-maruyama", reference=problem.exact, expected=1.0, n_paths=2000, rng=3
    )
    assert result.verdict == "inconsistent", result.explain()
