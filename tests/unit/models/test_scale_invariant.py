"""Scale-invariant networks: norms that only grow, the exact law of a step, and what happens at zero."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, DivergenceWarning, ModelError, ShapeError
from sgdsde.algebra import Generator
from sgdsde.models import DeepLinear, ScaleInvariant

rng = np.random.default_rng(21)
X, Y = rng.standard_normal((20, 3)), rng.standard_normal((20, 2))
A, B = ScaleInvariant([3, 2, 2]), ScaleInvariant([3, 2, 2], norm="layers")


def problem_of(model, **numbers):
    targets = Y[:, : model.dims[-1]]
    return sg.SGD(model, X, targets, **{"learning_rate": 0.05, "gamma": 0.03, **numbers})


def norms(model, path):
    """‖W_l‖² along a path (..., d), one for each layer, and ‖θ‖²."""
    layers = [np.square(W).sum(axis=(-2, -1)) for W in model.unflatten(path).values()]
    return [*layers, sum(layers)]


def test_they_are_the_networks_of_their_formulas():
    theta = rng.standard_normal(A.dim)
    W, U = A.unflatten(theta).values()
    product, a, b = X @ (U @ W).T, np.square(W).sum(), np.square(U).sum()
    for model, f in ((A, product / (a + b)), (B, product / np.sqrt(a * b))):
        wanted = np.square(f - Y).sum(axis=1)
        assert model.losses(theta, model.samples(X, Y)) == pytest.approx(wanted, rel=1e-12)
    for norm in ("total", "layers"):
        unit, w = ScaleInvariant([3, 1], norm), theta[:3]
        wanted = np.square(X @ w / np.linalg.norm(w) - Y[:, 0])
        assert unit.losses(w, unit.samples(X, Y[:, 0])) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("model", [A, B, ScaleInvariant([3, 2, 4, 2]), ScaleInvariant([3, 2, 4, 2], "layers")])
def test_derivatives_are_homogeneous(model):
    samples = model.samples(X, Y)
    theta, v = rng.standard_normal((2, model.dim))
    for c in (1e-3, 7.0, 1e6):
        assert model.losses(c * theta, samples) == pytest.approx(model.losses(theta, samples), rel=1e-12)
        for f, power in (
            (lambda x: model.gradient(x, samples), 1),
            (lambda x: model.hessian_vector(x, v, samples), 2),
            (lambda x: np.diag(model.covariance(x, samples)), 2),
        ):
            assert np.abs(c**power * f(c * theta) - f(theta)).max() <= 1e-12 * np.abs(f(theta)).max()


@pytest.mark.parametrize(("model", "names"), [(A, ["scaling"]), (B, ["W1", "W2"])])
def test_declared_symmetries_hold_for_each_sample(model, names):
    symmetries = model.symmetries()
    assert list(symmetries) == [*names, "rotation(0,1)"]
    for key, G in symmetries.items():
        report = sg.check_symmetry(problem_of(model), G)
        assert G.name == key and report, str(report)


def test_layers_alone_scale_only_where_each_has_its_norm():
    for G in (B.symmetries()["W1"], B.symmetries()["W2"]):
        assert not sg.check_symmetry(problem_of(A), G)
        assert not sg.check_symmetry(problem_of(DeepLinear([3, 2, 2])), G)
    assert sg.check_symmetry(problem_of(B), A.symmetries()["scaling"])
    rows = Generator.diagonal(np.repeat([1.0, 0.0, 0.0, 0.0], [3, 3, 2, 2]))
    assert not sg.check_symmetry(problem_of(B), rows)
    stretch = Generator.layered([(2, 3), (2, 2)], [(-np.eye(2, k=1) - np.eye(2, k=-1), None), (None, np.ones((2, 2)))])
    assert not sg.check_symmetry(problem_of(B), stretch)
    assert len(ScaleInvariant([3, 500, 2]).symmetries()) == 1 + 500 * 499 // 2  # none is made


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize("model", [A, B, ScaleInvariant([3, 1])])
def test_each_step_of_sgd_has_the_exact_law_of_the_norm(model, size):
    """‖θ'‖² = (1 - 2ηγ)²‖θ‖² + η²‖ĝ‖², and with layers of their own norm so for each."""
    problem = problem_of(model, batch_size=size)
    path = problem.run(model.init(0), 60, rng=1, t_eval="steps").y
    decay = 1 - 2 * 0.05 * 0.03
    before, after, moved = (norms(model, x) for x in (path[:-1], path[1:], path[1:] - decay * path[:-1]))
    for l in range(len(before)) if model is B else [-1]:
        wanted = decay**2 * before[l] + moved[l]
        assert np.abs(after[l] - wanted).max() <= 1e-12 * before[-1].max()
        assert np.abs(after[l] - before[l]).max() > 1e-6
    if model is A:
        assert np.abs(after[0] - decay**2 * before[0] - moved[0]).max() > 1e-6


def test_norms_only_grow_without_decay_those_that_scale_alone():
    grows = {}
    for name, model in (("A", A), ("B", B)):
        path = problem_of(model, gamma=0.0, learning_rate=0.1).run(model.init(3), 300, rng=0, t_eval="steps").y
        grows[name] = [(np.diff(n) >= -1e-13 * n[:-1]).all() for n in norms(model, path)]
    assert grows == {"A": [False, False, True], "B": [True, True, True]}


def test_gradient_descent_grows_by_the_square_of_the_rate():
    change = []
    for eta in (0.02, 0.01):
        problem = problem_of(B, batch_size=20, replacement=False, gamma=0.0, learning_rate=eta)
        path = problem.run(B.init(2), round(2 / eta), rng=0).y[-1]
        change.append(norms(B, path)[-1] - norms(B, B.init(2))[-1])
    assert 0 < change[1] < change[0] and change[0] / change[1] == pytest.approx(2.0, rel=0.1)


def test_the_norm_follows_its_law_under_the_sde():
    problem = problem_of(B, gamma=0.1)
    for name in ("W1", "W2"):
        law = sg.ChargeLaw(sg.Charge(B.symmetries()[name]), problem)
        sol = sg.solve(problem.sde(), (0.0, 2.0), B.init(1), rng=0, t_eval="steps", track=law)
        C = B.symmetries()[name].quadratic(sol.y)
        decay = 1 - 2 * 0.05 * 0.1
        v = sol.y[1:] - decay * sol.y[:-1]
        wanted = decay**2 * C[:-1] + B.symmetries()[name].quadratic(v)
        assert np.abs(C[1:] - wanted).max() <= 1e-13 * C.max()


def test_the_trace_of_the_covariance_is_that_of_the_direction():
    theta = rng.standard_normal(A.dim)
    problem = problem_of(A)
    r = np.linalg.norm(theta)
    here, there = (np.trace(problem.covariance(x)) for x in (theta, theta / r))
    assert here == pytest.approx(there / r**2, rel=1e-12)
    law = sg.Charge(A.symmetries()["scaling"])
    assert law.rate(problem, theta) == pytest.approx(-4 * 0.03 * r**2 + 2 * problem.sigma2 * here, rel=1e-12)


@pytest.mark.parametrize("model", [A, B])
def test_at_zero_there_is_no_value_and_the_path_has_diverged(model):
    problem, samples = problem_of(model), model.samples(X, Y)
    theta = model.init(0)
    theta[:6] = 0.0
    if model is A:
        assert np.isfinite(model.losses(theta, samples)).all()  # one layer of zeros is a network of zeros
        theta[:] = 0.0
    assert np.isnan(model.losses(theta, samples)).all() and np.isnan(model.gradient(theta, samples)[:6]).all()
    starts = np.stack([model.init(1), theta, model.init(2)])
    for run in (
        lambda: problem.run(starts, 10, rng=0, n_paths=3),
        lambda: sg.solve(problem.sde(), (0.0, 0.5), starts, rng=0, n_paths=3),
    ):
        with pytest.warns(DivergenceWarning):
            sol = run()
        assert not sol.success and sol.n_diverged == 1
        assert np.isfinite(sol.y[[0, 2]]).all() and np.isnan(sol.y[1, -1]).any()


@pytest.mark.parametrize("model", [A, B, ScaleInvariant([3, 1])])
def test_the_sde_and_sgd_have_the_same_bits_in_any_block(model):
    problem = problem_of(model)
    for method in ("euler-maruyama", "milstein-symmetric"):
        runs = [
            sg.solve(problem.sde(), (0.0, 0.5), model.init(1), method=method, n_paths=5, rng=0, block_size=b).y
            for b in (1, 4)
        ]
        assert np.isfinite(runs[0]).all() and np.array_equal(*runs)
    runs = [problem.run(model.init(1), 20, n_paths=5, rng=0, block_size=b).y for b in (1, 4)]
    assert np.isfinite(runs[0]).all() and np.array_equal(*runs)


def test_generators_that_do_more_than_multiply_layers_have_no_kernel():
    for G in (
        B.symmetries()["rotation(0,1)"],
        Generator.diagonal(np.arange(10.0)),
        Generator.from_matrix(np.ones((10, 10))),
    ):
        assert B.charge_track(G, 0.0, X, Y) is None


def test_the_class():
    assert repr(ScaleInvariant([3, 1], "layers", 0.5)) == "ScaleInvariant([3, 1], norm='layers', scale=0.5)"
    assert A.depth == 2 and A.shapes == {"W1": (2, 3), "W2": (2, 2)}
    with pytest.raises(ArgumentError, match="norm must be one of 'total', 'layers'"):
        ScaleInvariant([3, 1], norm="batch")
    with pytest.raises(ArgumentError, match="dims must hold at least two widths"):
        ScaleInvariant([3])
    with pytest.raises(ArgumentError, match="scale must be positive"):
        ScaleInvariant([3, 1], scale=0)
    with pytest.raises(ModelError, match="needs samples X and Y"):
        A.samples(X, None)
    with pytest.raises(ShapeError, match="Y must have shape"):
        A.samples(X, Y[:, 0])
    with pytest.raises(ArgumentError, match="B must be antisymmetric"):
        A.generator(np.eye(2))
    with pytest.raises(ArgumentError, match="needs a hidden layer"):
        ScaleInvariant([3, 1]).generator(np.zeros((1, 1)))


@pytest.mark.parametrize("norm", ["total", "layers"])
@pytest.mark.parametrize("size", [1e-200, 1e-150, 1e150, 1e200])
def test_lengths_whose_squares_are_no_numbers(norm, size):
    model = ScaleInvariant([3, 4, 2], norm=norm)
    problem = problem_of(model)
    theta = model.init(3)
    assert problem.loss(size * theta) == pytest.approx(problem.loss(theta), rel=1e-12)
    assert size * problem.gradient(size * theta) == pytest.approx(problem.gradient(theta), rel=1e-11, abs=1e-14)
