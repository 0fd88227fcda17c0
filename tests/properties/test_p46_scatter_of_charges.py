"""How a charge scatters over paths: like √h under Euler-Maruyama, as predicted, and like h under milstein-symmetric.

Statistical, 1000 paths at three steps, fixed seed. The standard deviation of an exponent is 0.012 (Euler-Maruyama,
whose scatter is nearly normal) and 0.025 (kurtosis 10), that of a variance 4.5 %: gates of 0.15, 0.25 and 25 % are 5 of
them or more beyond the bias of finite h, a false alarm below 1e-6 for another seed.
"""

import numpy as np
import pytest

import sgdsde as sg

STEPS = np.array([16, 64, 256])
T = 0.5


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    X, Y = rng.standard_normal((2, 6, 2))
    return sg.SGD(sg.models.DeepLinear([2, 2, 2]), X, Y, learning_rate=0.02, gamma=0.1)


@pytest.fixture(scope="module")
def charge(problem):
    return sg.Charge(problem.model.generator([[1.0, 0.4], [0.4, -0.6]]))


def runs(problem, charge, method):
    law = sg.ChargeLaw(charge, problem)
    theta = 0.7 * np.random.default_rng(6).standard_normal(problem.model.dim)
    for n in STEPS:
        yield sg.solve(
            problem.sde(), (0, T), theta, method=method, dt=T / n, n_paths=1000, rng=1, t_eval=9, track=law
        ), law  # fmt: skip


def exponent(spreads):
    return np.polyfit(np.log(T / STEPS), np.log(spreads), 1)[0]


def step_variance(problem, A, theta, h):
    """8σ⁴h²Tr[(ΣA)²] + 8σ²h³∇LᵀAΣA∇L, from the dense matrices."""
    sigma, turned, s2 = problem.covariance(theta), A.matrix @ problem.gradient(theta), problem.sigma2
    product = sigma @ A.matrix
    return 8 * s2**2 * h**2 * np.trace(product @ product) + 8 * s2 * h**3 * turned @ sigma @ turned


def test_under_euler_maruyama(problem, charge):
    spreads = []
    for sol, law in runs(problem, charge, "euler-maruyama"):
        remainder = law.report(sol, size=False).remainder[:, -1]
        spreads.append(remainder.std())
        h = T / sol.n_steps
        rates = np.mean([[step_variance(problem, charge.generator, x, h) / h for x in path] for path in sol.y[:20]], 0)
        predicted = np.trapezoid(rates, sol.t)
        assert remainder.var() == pytest.approx(predicted, rel=0.25)
        assert abs(remainder.mean()) <= 5 * remainder.std() / np.sqrt(remainder.size)  # a martingale
    assert exponent(spreads) == pytest.approx(0.5, abs=0.15)


def test_under_milstein_symmetric(problem, charge):
    gaps = [law.report(sol, size=False).gap[:, -1] for sol, law in runs(problem, charge, "milstein-symmetric")]
    assert exponent([gap.std() for gap in gaps]) == pytest.approx(1.0, abs=0.25)
