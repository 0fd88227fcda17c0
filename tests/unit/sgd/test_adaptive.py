"""Steps that follow the state: what δ of `Product` is, and the stationary law where plain Euler-Maruyama explodes."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, DivergenceWarning
from sgdsde.models import DeepLinear, Population, Product, uw_gauss

LAW = Population(beta1=1.3, beta2=0.7, alpha1=2.1, alpha2=0.4, alpha3=1.7, y2=2.0)


def delta(problem, theta):
    """δ at each row of theta, by the kernel, its scratch guarded."""
    watcher = problem.sde().step_size()
    n = len(theta)
    out, size = np.full((1, n), np.nan), watcher.work[0] + watcher.work[1] * n
    memory = np.full(size + 4, 7.25)
    watcher.kernel(out, np.array(theta.T, order="C"), np.zeros(n), watcher.p, watcher.data, memory[:size])
    assert watcher.rows == 1 and (memory[size:] == 7.25).all()
    return out[0]


def jacobians(model, law, theta, eps=1e-5):
    """Of the drift and of the one noise column at unit strength, by central differences of closed forms."""
    problem = sg.SGD(model, law, learning_rate=0.1)

    def column(x):
        return model.factor(x, problem.samples)[:, 0]

    steps = eps * np.eye(model.dim)
    return tuple(
        np.stack([(f(theta + e) - f(theta - e)) / (2 * eps) for e in steps], axis=1) for f in (problem.gradient, column)
    )


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_the_rate_bounds_the_lipschitz_constants_and_not_by_much(depth, width):
    model = Product(width, depth, scale=0.8)
    problem = sg.SGD(model, LAW, learning_rate=0.3, batch_size=2, gamma=0.25)
    theta = np.random.default_rng(depth).standard_normal((40, model.dim)) * 1.2
    rate = (1 / delta(problem, theta) - 1) * 0.1 / 0.3
    assert (rate > 0).all()
    for r, x in zip(rate, theta):
        drift, noise = (np.linalg.norm(j, 2) for j in jacobians(model, LAW, x))
        drift, noise = drift + 2 * 0.25, 2 * problem.noise_scale * noise**2
        # twice: the two terms of the noise's Jacobian are added as squares
        assert drift + noise <= 2.0 * r
        if depth <= 2:
            assert r <= 6.0 * (drift + noise) + 1e-9


def test_delta_is_what_the_page_says():
    problem = sg.SGD(Product(2, 3, scale=0.5), LAW, learning_rate=0.2, batch_size=4, gamma=0.1)
    theta = np.random.default_rng(0).standard_normal((6, 6))
    for found, x in zip(delta(problem, theta), theta):
        a, b, c = x.reshape(3, 2)
        v = (a * b * c).sum()
        slope = ((a * b) ** 2 + (a * c) ** 2 + (b * c) ** 2).sum()
        bend = 2 * (2 / 3) * (a**2 + b**2 + c**2).max()
        rate = 2 * 0.5 * (abs(1.3 * v - 0.7) * bend**0.5 + 1.3 * slope) + 2 * 0.1
        rate += 4 * 0.5**2 * (0.2 / 4) * (LAW.q(v) * bend + 2.1 * slope**2)
        assert found == pytest.approx(1 / (1 + rate * 0.2 / 0.1), rel=1e-13)


def test_delta_does_not_depend_on_the_unit_of_time():
    theta = np.random.default_rng(1).standard_normal((5, 4))
    one = sg.SGD(Product(2), LAW, learning_rate=0.2, gamma=0.1)
    other = sg.SGD(Product(2, scale=4.0), LAW, learning_rate=0.05, gamma=0.4)  # the loss times 4, the same steps
    assert delta(other, theta) == pytest.approx(delta(one, theta), rel=1e-13)


def test_a_schedule_has_the_steps_of_its_largest_rate():
    model, theta = Product(), np.array([[1.0, 2.0]])
    changing = sg.SGD(model, LAW, learning_rate=sg.schedules.linear_warmup(0.3, 10))
    assert delta(changing, theta) == pytest.approx(delta(sg.SGD(model, LAW, learning_rate=0.3), theta), rel=1e-12)


def test_auto_is_refused_where_no_rule_is_known():
    deep = sg.SGD(DeepLinear([2, 2, 1]), np.ones((3, 2)), np.ones(3), learning_rate=0.1)
    with pytest.raises(ArgumentError, match='step_size="auto" is for models that know'):
        sg.solve(deep.sde(), (0, 1), np.ones(6), step_size="auto")
    constant = sg.SGD(Product(), LAW, learning_rate=0.1).sde(np.eye(2))
    with pytest.raises(ArgumentError, match='step_size="auto" is for models that know'):
        sg.solve(constant, (0, 1), [1.0, 1.0], step_size="auto")


def test_bits_do_not_depend_on_blocks_and_threads():
    problem = sg.SGD(Product(), uw_gauss(), learning_rate=0.2)
    runs = [
        sg.solve(problem.sde(), (0, 1), [0.8, 0.8], n_paths=20, rng=0, step_size="auto", block_size=b, threads=t).y
        for b, t in ((1, 1), (8, 2), (16, 1))
    ]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])


def distribution(T):
    """(ln v, CDF) of the stationary law for depth 2, v > 0, x ~ N(0, 1), y = x + ε, by quadrature of its density.

    p ∝ v^{β₂/(2α₃T) - 3/2} q^{-1 - β₂/(4α₃T)} exp[-(α₃β₁ - α₂β₂)/(2Tα₃√Δ)·arctan((α₁v - α₂)/√Δ)], Δ = α₁α₃ - α₂².
    """
    z = np.linspace(-60.0, 12.0, 200_001)
    v = np.exp(z)
    log_p = (1 / (6 * T) - 1.5) * z - (1 + 1 / (12 * T)) * np.log(2 * v * v - 4 * v + 3)
    log_p -= (3 - 2) / (6 * T * np.sqrt(2)) * np.arctan((2 * v - 2) / np.sqrt(2))
    p = np.exp(log_p + z - (log_p + z).max())
    cdf = np.cumsum((p[1:] + p[:-1]) / 2)
    return z[1:], cdf / cdf[-1]


@pytest.mark.parametrize("T, time", [(0.05, 2.0), (0.1, 3.0), (0.2, 9.0)])
def test_stationary_law_of_uw_gauss(T, time):
    problem, n = sg.SGD(Product(), uw_gauss(1.0, 1.0), learning_rate=T), 20_000
    run = sg.solve(problem.sde(), (0, time), [0.8, 0.8], n_paths=n, rng=2, step_size="auto", keep="final")
    assert run.success
    v = np.sort(run.y[:, -1, 0] * run.y[:, -1, 1])
    F = np.interp(np.log(v), *distribution(T))
    above, below = np.arange(1, n + 1) / n - F, F - np.arange(n) / n
    assert max(above.max(), below.max()) <= 0.03


def test_plain_euler_maruyama_loses_paths_there():
    problem = sg.SGD(Product(), uw_gauss(1.0, 1.0), learning_rate=0.2)
    with pytest.warns(DivergenceWarning):
        run = sg.solve(problem.sde(), (0, 9), [0.8, 0.8], n_paths=1000, rng=2, keep="final")
    assert run.n_diverged > 100
