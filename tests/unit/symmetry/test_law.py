"""ChargeLaw: sums along a path against dense NumPy, exact variances by enumeration, reports, what is refused."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from sgdsde._errors import ArgumentError
from sgdsde.algebra import rescaling, rotation, scaling
from sgdsde.models import DeepLinear, Product, uw_gauss
from sgdsde.run.solving import solve
from sgdsde.sgd import SGD
from sgdsde.symmetry import Charge, ChargeLaw
from sgdsde.symmetry.fluctuation import step_variance

RNG = np.random.default_rng(3)
SGD_SCHEME = SimpleNamespace(name="sgd")


def recorded(law, paths, *, method="sgd", every=1, saved=None):
    """A solution as the runner would make it: paths (n, n_steps + 1, d) saved at some steps, tracked by the kernel."""
    n, n_states, d = paths.shape
    h = law.problem.learning_rate
    watcher = law.__track__(SimpleNamespace(dim=d), SGD_SCHEME)
    saved = np.arange(n_states) if saved is None else np.asarray(saved)
    acc, kept = np.zeros((watcher.rows, n)), []
    for k in range(n_states):
        if k in saved:
            kept.append(acc.T.copy())
        if k + 1 < n_states and k % every == 0:
            x0, x1 = (np.ascontiguousarray(paths[:, j].T) for j in (k, k + 1))
            fixed, per_path = watcher.work
            work = np.full(fixed + n * per_path, np.nan)
            watcher.kernel(acc, x0, x1, np.full(n, k * h), np.full(n, h), watcher.p, watcher.data, work)
    return SimpleNamespace(
        method=method, track={"law": law}, tracked={"law": np.stack(kept, axis=1)}, t=saved * h, dt=h,
        n_steps=n_states - 1, y=paths[:, saved], y0=paths[:, 0], steps=saved, tracked_steps=-(-saved // every),
    )  # fmt: skip


def sgd_paths(problem, n_paths, n_steps, batch_size=1):
    """Plain SGD in NumPy."""
    eta, decay = problem.learning_rate, 1 - 2 * problem.learning_rate * problem.gamma
    paths = [RNG.standard_normal((n_paths, problem.model.dim))]
    n = len(problem.per_sample_gradients(paths[0][0]))
    for _ in range(n_steps):
        paths.append(np.array([
            decay * x - eta * problem.per_sample_gradients(x)[RNG.integers(0, n, batch_size)].mean(axis=0)
            for x in paths[-1]
        ]))  # fmt: skip
    return np.stack(paths, axis=1)


def real_problem(**settings):
    x = RNG.standard_normal((7, 3))
    y = x @ RNG.standard_normal((3, 2)) + RNG.standard_normal((7, 2))
    return SGD(DeepLinear([3, 2, 2]), x, y, **{"learning_rate": 0.02, "batch_size": 2, "gamma": 0.05, **settings})


@pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])
def test_the_parts_are_the_dense_sums_along_the_path(make_two_layer, compiled):
    problem = real_problem() if compiled else make_two_layer(learning_rate=0.02, rho=0.5)
    a = problem.model.generator([[1.0, 0.3], [0.3, -2.0]]) if compiled else problem.model.symmetries()["B01"]
    law, dense = ChargeLaw(a, problem), a.matrix
    paths, h, gamma = sgd_paths(problem, 2, 5), problem.learning_rate, problem.gamma
    report = law.report(recorded(law, paths))
    for path, expected in enumerate(paths):
        noise = gradient = decay = flow = 0.0
        for k, x in enumerate(expected):
            got = [getattr(report, what)[path, k] for what in ("noise", "gradient", "decay", "continuous", "delta")]
            assert np.allclose(got, [noise, gradient, decay, flow, x @ dense @ x - expected[0] @ dense @ expected[0]],
                               rtol=1e-11, atol=1e-13)  # fmt: skip
            mean = problem.gradient(x)
            jump = 2 * problem.noise_scale * h * np.trace(problem.covariance(x) @ dense)
            noise, gradient = noise + jump, gradient + h**2 * mean @ dense @ mean
            decay, flow = (
                decay + (4 * h * gamma * (h * gamma - 1)) * (x @ dense @ x),
                (flow + jump - 4 * gamma * h * (x @ dense @ x)),
            )
    assert np.allclose(report.predicted, report.noise + report.gradient + report.decay)
    assert np.allclose(report.remainder + report.predicted, report.delta)
    assert np.allclose(report.gap + report.continuous, report.delta)


def test_the_pathwise_law_holds_to_rounding_and_shows_a_broken_symmetry(make_two_layer):
    problem = make_two_layer(learning_rate=0.02)
    paths = sgd_paths(problem, 3, 40)
    good = ChargeLaw(problem.model.symmetries()["B01"], problem)
    report = good.report(recorded(good, paths))
    assert np.all(report.abs_cross <= 10 * report.rounding) and np.all(
        np.abs(report.cross) <= report.abs_cross + 1e-300
    )
    assert np.all(np.abs(report.defect) <= 1e-13)
    bad = ChargeLaw(scaling(10), problem)
    report = bad.report(recorded(bad, paths))
    assert np.all(report.abs_cross[:, -1] > 1e6 * report.rounding[:, -1])
    assert np.all(np.abs(report.defect) <= 1e-12)  # any step whatever


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_the_variance_of_a_step_of_sgd_is_that_over_all_batches(make_two_layer, batch_size):
    problem = make_two_layer(batch_size=batch_size, n=4, learning_rate=0.3)
    x, eta = RNG.standard_normal(10), 0.3
    g = problem.per_sample_gradients(x)
    for a in problem.model.symmetries().values():
        charge = Charge(a)
        ends = [charge((1 - 2 * eta * problem.gamma) * x - eta * g[list(batch)].mean(axis=0))
                for batch in product(range(4), repeat=batch_size)]  # fmt: skip
        assert step_variance(problem, charge, x, eta, "sgd") == pytest.approx(np.var(ends), rel=1e-10)


@pytest.mark.parametrize("n", [3, 12], ids=["n<d", "n>d"])
def test_the_variance_of_a_step_of_euler_maruyama_is_that_of_gaussian_noise(make_two_layer, n):
    problem = make_two_layer(n=n)
    x, h = RNG.standard_normal(10), 0.03
    mean, sigma = problem.gradient(x), problem.covariance(x) * 2 * problem.noise_scale * h
    for a in problem.model.symmetries().values():
        dense = a.matrix  # Var(vᵀAv) for v ~ N(-h∇L, sigma), Isserlis
        expected = 2 * np.trace(dense @ sigma @ dense @ sigma) + 4 * h**2 * mean @ dense @ sigma @ dense @ mean
        assert step_variance(problem, Charge(a), x, h, "euler-maruyama") == pytest.approx(expected, rel=1e-11)
    assert np.isnan(step_variance(problem, Charge(a), x, h, "milstein-symmetric"))


def test_the_variance_of_a_step_without_samples_comes_from_the_factor():
    x, h = np.array([1.3, -0.4]), 0.01
    law = SGD(Product(), uw_gauss(1.0, 0.5), learning_rate=0.1)
    mean, sigma, dense = law.gradient(x), law.covariance(x) * 2 * law.noise_scale * h, np.diag([1.0, -1.0])
    expected = 2 * np.trace(dense @ sigma @ dense @ sigma) + 4 * h**2 * mean @ dense @ sigma @ dense @ mean
    assert step_variance(law, Charge(rescaling(2)), x, h, "euler-maruyama") == pytest.approx(expected, rel=1e-11)


def test_every_k_th_step_gives_nearly_the_same_sums(make_two_layer):
    problem = make_two_layer(learning_rate=0.002, gamma=0.3)
    law = ChargeLaw(problem.model.symmetries()["B00"], problem)
    x = [RNG.standard_normal((1, 10))]
    for _ in range(64):  # gradient descent: smooth, so that only the sampling matters
        x.append((1 - 0.0012) * x[-1] - 0.002 * problem.gradient(x[-1][0]))
    paths = np.stack(x, axis=1)
    whole, four, eight, six = (law.report(recorded(law, paths, every=k, saved=[0, 30, 64])) for k in (1, 4, 8, 6))
    assert np.allclose(six.delta, whole.delta, atol=1e-14) and six.noise[0, 0] == 0.0
    for what in ("noise", "gradient", "decay"):
        exact = getattr(whole, what)[0]
        errors = [np.abs(getattr(report, what)[0] - exact)[2] for report in (four, eight)]
        assert 3 < errors[1] / errors[0] < 5  # second order in k
        allowed = 0.002 if what == "decay" else 0.03
        assert np.abs(getattr(six, what)[0] - exact).max() < allowed * np.abs(exact).max()  # 6 does not divide 64


def test_a_report_in_words_and_numbers(make_two_layer):
    problem = make_two_layer(learning_rate=0.02, batch_size=1)
    law = ChargeLaw(problem.model.symmetries()["B00"], problem)
    solution = recorded(law, sgd_paths(problem, 5, 30), saved=[0, 10, 20, 30])
    report = law.report(solution)
    assert report.t.shape == (4,) and report.delta.shape == (5, 4)
    assert np.allclose(report.mean("delta"), report.delta.mean(axis=0))
    assert np.allclose(report.stderr("noise"), report.noise.std(axis=0, ddof=1) / np.sqrt(5))
    assert report.remainder_size[0] == 0 and np.all(np.diff(report.remainder_size) > 0)
    spread = report.remainder.std(axis=0)
    assert 0.1 < spread[-1] / report.remainder_size[-1] < 10
    jumps = np.diff(report.remainder, axis=1)
    assert np.isnan(report.z()[0])
    assert np.allclose(report.z()[2], report.remainder[:, 2].sum() / np.sqrt(np.sum(jumps[:, :2] ** 2)))
    parts = {part: mean for part, mean, _ in report.table()}
    assert parts["predicted"] == pytest.approx(parts["noise"] + parts["gradient"] + parts["decay"])
    text = repr(report)
    assert "Charge law of C[B00] along sgd" in text and "rounding allows" in text and "5 paths" in text
    assert law.report(solution, size=False).remainder_size is None
    with pytest.raises(ArgumentError, match="what must be one of"):
        report.mean("everything")


def test_a_lost_path_shows_as_nan_or_is_left_out_on_demand(make_two_layer):
    problem = make_two_layer(learning_rate=0.02)
    law = ChargeLaw(problem.model.symmetries()["B00"], problem)
    solution = recorded(law, sgd_paths(problem, 3, 4))
    solution.tracked["law"][1, 2:] = np.nan
    solution.y[1, 2:] = np.nan
    report = law.report(solution)
    assert np.isfinite(report.mean("delta")[:2]).all() and np.isnan(report.mean("delta")[2:]).all()
    assert np.allclose(report.mean("delta", skip_diverged=True)[3], report.delta[[0, 2], 3].mean())
    assert np.isfinite(report.stderr("remainder", skip_diverged=True)).all()
    assert np.isnan(report.z()[2:]).all() and np.isfinite(report.z(skip_diverged=True)[1:]).all()


def test_one_path_is_an_ensemble_of_one(make_two_layer):
    problem = make_two_layer(learning_rate=0.02)
    law = ChargeLaw(problem.model.symmetries()["B00"], problem)
    solution = recorded(law, sgd_paths(problem, 1, 4))
    solution.tracked["law"], solution.y, solution.y0 = solution.tracked["law"][0], solution.y[0], solution.y0[0]
    report = law.report(solution)
    assert report.delta.shape == (1, 5) and np.isnan(report.stderr("delta")).all()
    assert "nan" in repr(report)


def test_what_is_refused(make_two_layer, make_uw):
    problem = make_two_layer()
    law = ChargeLaw(problem.model.symmetries()["B00"], problem)
    with pytest.raises(ArgumentError, match="known for sgd, svag, euler-maruyama, milstein-symmetric, not for 'heun'"):
        law.__track__(SimpleNamespace(dim=10), SimpleNamespace(name="heun"))
    with pytest.raises(ArgumentError, match="acts on 10 components, the run has 3"):
        law.__track__(SimpleNamespace(dim=3), SGD_SCHEME)
    with pytest.raises(ArgumentError, match=r"the law is of .* not the same"):
        law.__track__(SimpleNamespace(dim=10, problem=problem.but(gamma=0.1)), SGD_SCHEME)
    with pytest.raises(ArgumentError, match="charge acts on 10 components, the problem has 2"):
        ChargeLaw(law.charge, make_uw())
    with pytest.raises(ArgumentError, match="antisymmetric"):
        ChargeLaw(rotation(2, 0, 1), make_uw())
    solution = recorded(law, sgd_paths(problem, 1, 2))
    with pytest.raises(ArgumentError, match="got method 'heun'"):
        law.report(SimpleNamespace(**{**vars(solution), "method": "heun"}))
    with pytest.raises(ArgumentError, match="a run with track= this law"):
        ChargeLaw(rescaling(10), problem).report(solution)


def test_along_real_runs_of_sgd_and_of_its_sde():
    problem = real_problem()
    law = ChargeLaw(problem.model.generator([[1.0, 0.5], [0.5, 2.0]], name="B"), problem)
    theta0 = problem.model.init(rng=0)
    for solution in (
        problem.run(theta0, 50, n_paths=6, rng=0, t_eval=6, track=law),
        solve(problem.sde(), (0, 1), theta0, n_paths=6, rng=1, t_eval=6, track=law),
    ):
        report = law.report(solution)
        assert report.dynamics == solution.method and report.delta.shape == (6, 6)
        assert np.allclose(report.delta, law.charge(solution.y) - law.charge(theta0), rtol=0, atol=1e-13)
        assert np.all(np.abs(report.defect) < 1e-13)
        assert np.all(report.abs_cross[:, 1:] < 10 * report.rounding[:, 1:])
        assert np.all(np.abs(report.z()[1:]) < 6)
        again = law.report(solve(problem.sde(), (0, 1), theta0, n_paths=6, rng=1, track=law, keep="final"))
        assert again.delta.shape == (6, 1)
    assert np.allclose(again.noise[:, 0], report.noise[:, -1])
    with pytest.raises(ArgumentError, match="keep its paths"):
        law.report(solve(problem.sde(), (0, 1), theta0, n_paths=6, rng=1, track=law, keep="stats"))
