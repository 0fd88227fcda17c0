"""One network in PyTorch, in JAX and as ours is one model: Σ, G·v, charges, derivatives and paths agree."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.models.naming import charged

CLOSE = 1e-10


def near(found, wanted, tolerance=CLOSE):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= tolerance * max(1.0, np.abs(wanted).max())


def increment(problem, theta, v, h=0.0):
    """h·f + s·G·v by the compiled increment."""
    kernels = problem.sde().kernels()
    out, x, work = np.empty((theta.size, 1)), theta[:, None].copy(), np.empty(sum(kernels.work))
    kernels.increment(out, x, np.zeros(1), np.full(1, h), v[:, None].copy(), kernels.p, kernels.data, work)
    return out[:, 0]


def test_losses_gradients_and_covariance(pair):
    made, own, trio = pair
    for name in ("loss", "gradient", "per_sample_losses", "per_sample_gradients", "covariance", "factor"):
        near(getattr(made, name)(trio.theta), getattr(own, name)(trio.theta))
    both = np.stack([trio.theta, trio.theta + 0.1])
    near(made.gradient(both), own.gradient(both))


def test_noise_is_one_weighted_gradient(pair):
    made, own, trio = pair
    v, c = trio.rng.standard_normal((2, own.n_samples))
    found = increment(made, trio.theta, v)
    near(found, increment(own, trio.theta, v))
    near(found, made.sde().strength * made.factor(trio.theta) @ v)
    near(increment(made, trio.theta, v, 0.3), increment(own, trio.theta, v, 0.3))
    near(made.model.weighted_gradient(trio.theta, c, made.samples), c @ own.per_sample_gradients(trio.theta))


def test_second_derivatives(pair):
    made, own, trio = pair
    v, c = trio.rng.standard_normal(own.model.dim), trio.rng.standard_normal(own.n_samples)
    own_is_exact = own.model.compiled().hessian is not None
    found = made.model.hessian_vector(trio.theta, v, made.samples, c)
    near(found, own.model.hessian_vector(trio.theta, v, own.samples, c), CLOSE if own_is_exact else 1e-7)
    u = trio.rng.standard_normal(own.model.dim)
    other = made.model.hessian_vector(trio.theta, u, made.samples, c)
    assert u @ found == pytest.approx(v @ other, rel=1e-11, abs=1e-11)


def test_correction(pair):
    made, own, trio = pair
    found = []
    for problem in (made, own):
        kernels = problem.sde().kernels(correction=True)
        assert problem.sde().exact_correction
        out, x, work = np.empty((own.model.dim, 1)), trio.theta[:, None].copy(), np.empty(sum(kernels.work))
        kernels.correction(out, x, np.zeros(1), kernels.p, kernels.data, work)
        found.append(out)
    near(*found)


def test_charges(pair):
    made, own, trio = pair
    rng = np.random.default_rng(4)
    shape = next(iter(own.model.shapes.values()))
    diagonal = np.zeros(own.model.dim)
    diagonal[: shape[0] * shape[1]] = rng.standard_normal(shape[0] * shape[1])
    generators = [sg.Generator.diagonal(diagonal), *charged(made.model.symmetries()).values()]
    for A in generators:
        charge = sg.Charge(A)
        near(charge.rate(made, trio.theta), charge.rate(own, trio.theta))
        near(charge.residual(made, trio.theta), charge.residual(own, trio.theta))
    for A in generators[1:]:
        assert sg.check_symmetry(made, A, n_states=2)
    assert not sg.check_symmetry(made, generators[0], n_states=2)


@pytest.mark.parametrize("method", ["euler-maruyama", "milstein-symmetric"])
def test_paths_of_the_sde(pair, method):
    made, own, trio = pair
    runs = {"t_span": (0, 0.2), "y0": trio.theta, "n_paths": 3, "rng": 2, "method": method}
    found = sg.solve(made.sde(), **runs).y
    near(found, sg.solve(own.sde(), **runs).y)
    for shape in ({"threads": 1, "block_size": 4}, {"threads": 2, "block_size": 1}):
        assert np.array_equal(found, sg.solve(made.sde(), **runs, **shape).y)
    one = sg.solve(made.sde(), **{**runs, "path_index": 1}).y
    assert np.array_equal(one, found[1:2] if one.ndim == 3 else found[1])


@pytest.mark.parametrize("size", [1, 2, 9])
def test_steps_of_sgd(pair, size):
    made, own, trio = (one.replace(batch_size=size) if isinstance(one, sg.SGD) else one for one in pair)
    runs = {"n_paths": 3, "rng": 5}
    found = made.run(trio.theta, 20, **runs).y
    near(found, own.run(trio.theta, 20, **runs).y)
    assert np.array_equal(found, made.run(trio.theta, 20, **runs, threads=2, block_size=2).y)


def test_order_two_and_validity(pair):
    made, own, trio = pair
    runs = {"t_span": (0, 0.1), "y0": trio.theta, "rng": 2}
    near(sg.solve(made.sde(order=2), **runs).y, sg.solve(own.sde(order=2), **runs).y, 1e-8)
    found, wanted = made.validity(trio.theta), own.validity(trio.theta)
    assert found.sharpness == pytest.approx(wanted.sharpness, rel=1e-6)
    assert found.hessian_trace == pytest.approx(wanted.hessian_trace, rel=1e-6)
    assert found.kurtosis == pytest.approx(wanted.kurtosis, rel=1e-9)


def test_the_charge_law_along_a_run(trio):
    if "B=I" not in trio.problems["own"].model.symmetries():
        return
    deltas = []
    for problem in trio.problems.values():
        law = sg.ChargeLaw(sg.Charge(problem.model.symmetries()["B=I"]), problem)
        report = law.report(problem.run(trio.theta, 10, n_paths=2, rng=0, track=law), size=False)
        deltas.append(np.stack([report.delta, report.noise, report.gradient, report.decay]))
    near(deltas[1], deltas[0])
    near(deltas[2], deltas[0])


def test_a_step_of_sgd_looks_at_its_samples_alone(pair):
    made, _, trio = pair
    X = trio.X.copy()
    X[1:] *= 1e3  # at which every gradient is another
    other = sg.SGD(made.model, X, trio.Y, **trio.settings)
    passes = [p.model.passes(p.samples) for p in (made, other)]
    first = np.zeros(2, np.int64)
    found = [np.asarray(one.batch(trio.theta, first)) for one in passes]
    assert np.array_equal(*found)
    near(found[0], made.per_sample_gradients(trio.theta)[0])
    seen = []
    passes[0].batch = lambda theta, index: seen.append(index.copy()) or found[0]
    passes[0].weighted = None
    try:
        made.replace(batch_size=3).run(trio.theta, 4, rng=0)
    finally:
        del passes[0].batch, passes[0].weighted
    assert [index.size for index in seen] == [3] * 4


def test_a_state_that_is_not_finite_gives_nan(pair):
    made, _, trio = pair
    theta = np.where(np.arange(trio.theta.size) == 1, np.inf, trio.theta)
    assert np.isnan(made.gradient(theta)).all() and np.isnan(made.per_sample_gradients(theta)).all()
