"""Orbit projection: charges at their targets to rounding, no sample's loss moved, clear ends where it cannot be."""

import itertools
import pickle

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import NOT_CONVERGED, ArgumentError

RNG = np.random.default_rng(5)
DEEP = sg.models.DeepLinear([3, 4, 2])
X, Y = RNG.standard_normal((7, 3)), RNG.standard_normal((7, 2))


def symmetric(n, i, j):
    B = np.zeros((n, n))
    B[i, j] = B[j, i] = 1.0
    return B


def all_b(model, layer=1):
    n = model.dims[layer]
    return [model.generator(symmetric(n, i, j), layer) for i, j in itertools.combinations_with_replacement(range(n), 2)]


def random_b():
    B = RNG.standard_normal((4, 4))
    return DEEP.generator(B + B.T)


DEEPER = sg.models.DeepLinear([2, 3, 3, 2], scale=0.5)
CHAINS = sg.models.Product(width=3, depth=3)
DATA = {DEEP: (X, Y), DEEPER: (X[:, :2], Y), CHAINS: (X[:, 0], Y[:, 0])}
CASES = {
    "B=I": (DEEP, DEEP.symmetries()["B=I"]),
    "one B": (DEEP, random_b()),
    "commuting B": (DEEP, [DEEP.generator(symmetric(4, i, i)) for i in range(3)]),
    "two B": (DEEP, [random_b(), random_b()]),
    "every B": (DEEP, all_b(DEEP)),
    "two hidden layers": (DEEPER, [*all_b(DEEPER, 1), *all_b(DEEPER, 2)]),
    "dense": (DEEP, [sg.Generator.from_matrix(random_b().matrix)]),
    "chains": (CHAINS, CHAINS.symmetries()),
    "one unit": (CHAINS, CHAINS.symmetries()["W2/W3[1]"]),
}


def problem_of(model, **numbers):
    return sg.SGD(model, *DATA[model], **{"learning_rate": 0.05, "gamma": 0.1, **numbers})


@pytest.fixture(params=CASES)
def case(request):
    model, generators = CASES[request.param]
    problem = problem_of(model)
    return problem, sg.OrbitProjection(generators, problem)


def call(watcher, x0, x, h):
    """The PROJECT kernel on copies, its scratch full of NaN and guarded."""
    x, n = np.ascontiguousarray(x).copy(), x.shape[1]
    status = np.zeros(2 * n, np.int64)
    size = watcher.work[0] + watcher.work[1] * n
    memory = np.full(size + 8, np.nan)
    memory[size:] = 7.25
    watcher.kernel(x, np.ascontiguousarray(x0), np.zeros(n), h, status, watcher.p, watcher.data, memory[:size])
    assert (memory[size:] == 7.25).all()
    return x, status


def steps(problem, n=5, size=0.05):
    rng = np.random.default_rng(8)
    x0 = rng.standard_normal((problem.model.dim, n))
    return x0, x0 + size * rng.standard_normal(x0.shape), rng.uniform(0.001, 0.01, n)


def relative(charge, x, wanted):
    """Error of a charge in units of ‖A‖‖θ‖²."""
    return np.abs(charge(x.T) - wanted) / (charge.generator.norm * np.sum(x * x, axis=0))


@pytest.mark.parametrize("rate", ["start", "average"])
def test_charges_end_where_their_law_says(case, rate):
    problem, projection = case
    projection = sg.OrbitProjection(projection.generators, problem, rate=rate)
    x0, x1, h = steps(problem)
    x, status = call(projection.__project__(problem.sde(), None), x0, x1, h)
    assert not status.any() and np.abs(x - x1).max() > 1e-3
    decay = 4 * problem.gamma
    weight = -np.expm1(-decay * h) / decay
    for charge in projection.charges:
        noise = charge.rate(problem, x0.T) + decay * charge(x0.T)
        if rate == "average":
            noise = 0.5 * (noise + charge.rate(problem, x1.T) + decay * charge(x1.T))
        wanted = np.exp(-decay * h) * charge(x0.T) + weight * noise
        assert relative(charge, x, wanted).max() < 1e-14


def test_no_sample_has_another_loss(case):
    problem, projection = case
    x0, x1, h = steps(problem)
    x, _ = call(projection.__project__(problem.sde(), None), x0, x1, h)
    for before, after in zip(x1.T, x.T):
        assert problem.per_sample_losses(after) == pytest.approx(problem.per_sample_losses(before), rel=1e-13)


def test_columns_do_not_know_each_other(case):
    problem, projection = case
    x0, x1, h = steps(problem)
    x1[:, 2] = np.nan
    watcher = projection.__project__(problem.sde(), None)
    x, status = call(watcher, x0, x1, h)
    assert not status.any() and np.isnan(x[:, 2]).all()  # what has left the finite numbers is the engine's
    for b in range(5):
        alone, _ = call(watcher, x0[:, [b]], x1[:, [b]], h[[b]])
        assert np.array_equal(alone[:, 0], x[:, b], equal_nan=True)


@pytest.mark.parametrize("name", ["B=I", "one B", "commuting B", "dense", "chains", "one unit"])
def test_large_corrections_arrive_too(name):
    problem = problem_of(CASES[name][0])
    projection = sg.OrbitProjection(CASES[name][1], problem)
    x0, x1, h = steps(problem, n=20, size=1.0)
    x, status = call(projection.__project__(problem.sde(), None), x0, x1, h)
    assert not status.any()
    for charge in projection.charges:
        wanted = charge(x0.T) - np.expm1(-0.4 * h) / 0.4 * charge.rate(problem, x0.T)
        assert relative(charge, x, wanted).max() < 1e-14


def test_a_model_without_a_kernel_for_its_law(make_two_layer):
    problem = make_two_layer()
    from types import SimpleNamespace

    projection = sg.OrbitProjection(problem.model.symmetries(), problem)
    watcher = projection.__project__(SimpleNamespace(dim=problem.model.dim, calculus="ito"), None)
    x0, x1, h = steps(problem, n=2)
    x, status = call(watcher, x0, x1, h)
    assert not status.any() and len(projection.charges) == 3
    for charge in projection.charges:
        wanted = charge(x0.T) - np.expm1(-0.2 * h) / 0.2 * charge.rate(problem, x0.T)
        assert relative(charge, x, wanted).max() < 1e-14


@pytest.mark.parametrize("model, generators", [CASES["every B"], CASES["two hidden layers"]])
def test_traces_of_all_generators_in_one_pass_are_those_of_each(model, generators):
    n = 1100  # more samples than a pass takes at once
    data = RNG.standard_normal((n, model.dims[0])), RNG.standard_normal((n, model.dims[-1]))
    problem = sg.SGD(model, *data, learning_rate=0.1)
    watcher = model.charge_traces(generators, problem.X, problem.Y)
    x, h = RNG.standard_normal((model.dim, 2)), np.array([0.5, 0.25])
    acc, work = np.ones((len(generators), 2)), np.full(watcher.work[0] + 4, 7.25)
    for _ in range(2):
        watcher.kernel(acc, x, x, np.zeros(2), h, watcher.p, watcher.data, work[:-4])
    assert watcher.rows == len(generators) and (work[-4:] == 7.25).all()
    for a, row in zip(generators, acc):
        trace = [a.eigenvalues @ problem.gradient_moments(theta, transform=a.to_eigenbasis)[1] for theta in x.T]
        assert row == pytest.approx(1.0 + 2 * h * trace, rel=1e-11, abs=1e-9)
    assert model.charge_traces([sg.Generator.from_matrix(np.ones((model.dim,) * 2))], problem.X, problem.Y) is None


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["euler-maruyama", "milstein-symmetric"])
@pytest.mark.parametrize("name", ["B=I", "every B", "chains"])
def test_along_a_run_charges_have_no_noise_of_their_own(name, method):
    model, generators = CASES[name]
    problem = problem_of(model, learning_rate=0.01, gamma=0.0)
    projection = sg.OrbitProjection(generators, problem)
    common = {"dt": 0.005, "n_paths": 3, "rng": 0, "t_eval": "steps", "method": method}
    run = sg.solve(problem.sde(), (0, 0.25), model.init(1), project=projection, **common)
    free = sg.solve(problem.sde(), (0, 0.25), model.init(1), **common)
    for charge in projection.charges:

        def defect(sol, charge=charge):
            rate = charge.rate(problem, sol.y[:, :-1])
            return np.abs(charge(sol.y[:, -1]) - charge(sol.y[:, 0]) - 0.005 * rate.sum(axis=1)).max()

        assert defect(run) < 50 * 1e-14 * charge.generator.norm * np.square(run.y).sum(axis=-1).max()
        assert defect(free) > 1e-9


def test_without_noise_the_decay_is_exact():
    problem = problem_of(DEEP, batch_size=7, replacement=False, gamma=0.5)
    assert problem.noise_scale == 0.0
    projection, theta0 = sg.OrbitProjection(all_b(DEEP), problem), DEEP.init(2)
    run = sg.solve(problem.sde(), (0, 1), theta0, dt=0.03, project=projection)
    for charge in projection.charges:
        assert charge(run.y[-1]) == pytest.approx(charge(theta0) * np.exp(-4 * 0.5), rel=1e-12, abs=1e-14)


def test_orders_of_the_charge_and_of_the_state():
    uw = sg.models.Product(scale=0.5)
    problem = sg.SGD(uw, sg.models.uw_label(1.0, 1.0), learning_rate=0.5, gamma=0.05)
    A, theta0, time = uw.symmetries()["W1/W2"], [1.5, 0.5], 0.25
    # noise that is constant in uw: dC = -(T s² + 4γ)C dt exactly
    exact = 2.0 * np.exp(-(0.5 + 0.2) * time)
    cost = {"n_paths": 400, "n_steps": (16, 32, 64, 128, 256), "rng": 3, "sigmas": 5}
    measure = {"quantity": lambda y: sg.Charge(A)(y), "reference": exact}
    projection = sg.OrbitProjection(A, problem)
    for method, order in (("euler-maruyama", 0.5), ("milstein", 1.0)):
        found = sg.strong_order(problem.sde(), theta0, (0, time), method, project=projection, **cost)
        assert found.verdict == "consistent" and found.expected == order, found.explain()
    projected = sg.strong_order(
        problem.sde(), theta0, (0, time), "euler-maruyama", project=projection, expected=1.0, **measure, **cost
    )
    plain = sg.strong_order(problem.sde(), theta0, (0, time), "euler-maruyama", expected=0.5, **measure, **cost)
    assert projected.verdict == plain.verdict == "consistent", projected.explain() + plain.explain()
    assert (projected.errors < 0.1 * plain.errors).all() and projected.errors.max() > 1e-3


def turning(t, y):
    return (0.0, 0.6 * y[2], -0.5 * y[1]), (-0.7 * y[2], 0.0, 0.5 * y[0]), (0.7 * y[1], -0.6 * y[0], 0.0)


def still(t, y):
    return 0.0 * y[0], 0.0, 0.0


def test_constants_of_the_motion_of_any_equation():
    sde = sg.SDE(still, turning, dim=3, calculus="stratonovich")
    sphere = sg.OrbitProjection(sg.scaling(3))
    run = sg.solve(sde, (0, 2), [0.6, 0.0, 0.8], dt=0.05, n_paths=20, rng=1, t_eval="steps", project=sphere)
    assert np.abs(np.square(run.y).sum(axis=-1) - 1.0).max() < 50 * 1e-15
    free = sg.solve(sde, (0, 2), [0.6, 0.0, 0.8], dt=0.05, n_paths=20, rng=1)
    assert np.abs(np.square(free.y[:, -1]).sum(axis=-1) - 1.0).max() > 1e-3


def outward(t, y):
    return (0.0, 1.0)


def none(t, y):
    return (0.0, 0.0)


@pytest.mark.filterwarnings("ignore::sgdsde.DivergenceWarning")
def test_a_charge_out_of_reach_stops_that_path_alone():
    sde = sg.SDE(outward, none, dim=2, noise="scalar")
    projection = sg.OrbitProjection(sg.rescaling(2))
    starts = np.array([[1.0, 0.5], [0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    run = sg.solve(sde, (0, 1), starts, dt=0.25, n_paths=4, rng=0, project=projection)
    # (0, 0) moves to (0, 1/4), where u² - w² is below zero on the whole orbit
    assert list(run.path_status) == [0, NOT_CONVERGED, 0, 0]
    assert np.isnan(run.y[1, -1]).all() and "projection did not converge" in run.message
    u, w = run.y[[0, 2, 3], -1].T
    assert u * u - w * w == pytest.approx([0.75, -1.0, 1.0], rel=1e-14)


def test_it_pickles_and_runs_in_other_threads_to_the_same_bits():
    model, generators = CASES["two B"]
    problem = problem_of(model, learning_rate=0.01)
    projection = sg.OrbitProjection(generators, problem)
    copy = pickle.loads(pickle.dumps(projection))
    one, two = (
        sg.solve(problem.sde(), (0, 0.1), model.init(1), n_paths=6, rng=0, project=p, threads=t, block_size=b)
        for p, t, b in ((projection, 1, 4), (copy, 2, 1))
    )
    assert np.array_equal(one.y, two.y)


# --- move -------------------------------------------------------------------------------------------------------------


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_what_is_refused():
    turn = DEEP.generator(np.eye(4)[[1, 0, 2, 3]] - np.eye(4)[[1, 0, 2, 3]].T + np.triu(np.ones((4, 4)), 1))
    with pytest.raises(ArgumentError, match="must be symmetric"):
        sg.OrbitProjection(turn)
    with pytest.raises(ArgumentError, match="antisymmetric, so θᵀAθ ≡ 0"):
        sg.OrbitProjection(sg.Generator.from_matrix([[0.0, 1.0], [-1.0, 0.0]]))
    with pytest.raises(ArgumentError, match="must not be zero"):
        sg.OrbitProjection(sg.Generator.diagonal([0.0, 0.0]))
    with pytest.raises(ArgumentError, match="rate must be one of"):
        sg.OrbitProjection(sg.scaling(2), rate="end")
    with pytest.raises(ArgumentError, match="at least one generator"):
        sg.OrbitProjection([])
    problem = problem_of(DEEP)
    with pytest.raises(ArgumentError, match="symmetries of every sample's loss.* for sample"):
        sg.OrbitProjection(sg.scaling(DEEP.dim), problem)
    with pytest.raises(ArgumentError, match="the problem has 20"):
        sg.OrbitProjection(sg.scaling(2), problem)
    with pytest.raises(ArgumentError, match="problem must be an SGD problem"):
        sg.OrbitProjection(sg.scaling(2), "sgd")
    with pytest.raises(ArgumentError, match="one learning rate"):
        sg.OrbitProjection(DEEP.symmetries(), problem_of(DEEP, learning_rate=sg.schedules.cosine(0.1, 10, 0.01)))
    narrow = sg.models.DeepLinear([1, 3, 1])
    with pytest.raises(ArgumentError, match="independent charges: of these 6 only 5"):
        sg.OrbitProjection(all_b(narrow))


def test_what_a_run_refuses():
    problem = problem_of(DEEP)
    projection = sg.OrbitProjection(DEEP.symmetries(), problem)
    with pytest.raises(ArgumentError, match="law is of .* but the run is of"):
        sg.solve(problem_of(DEEP, gamma=0.3).sde(), (0, 1), DEEP.init(0), project=projection)
    with pytest.raises(ArgumentError, match="factor 'constant'.*does not follow its law"):
        sg.solve(problem.sde(np.eye(DEEP.dim)), (0, 1), DEEP.init(0), project=projection)
    with pytest.raises(ArgumentError, match="generators act on 20 components, the equation has 2"):
        sg.solve(sg.SDE(outward, none, dim=2, noise="scalar"), (0, 1), [1.0, 1.0], dt=0.1, project=projection)
    with pytest.raises(ArgumentError, match="discrete SGD"):
        projection.__project__(problem.recursion(), None)


def half(theta):
    return problem_of(DEEP).factor(theta)


def test_factors_of_the_covariance_are_taken():
    problem = problem_of(DEEP, learning_rate=0.01)
    projection = sg.OrbitProjection(DEEP.symmetries(), problem)
    for factor in ("gram", half):
        run = sg.solve(problem.sde(factor), (0, 0.02), DEEP.init(0), rng=0, t_eval="steps", project=projection)
        charge = projection.charges[0]
        weight = -np.expm1(-0.4 * 0.01) / 0.4
        wanted = charge(run.y[0]) + weight * charge.rate(problem, run.y[:-1]).sum()
        assert charge(run.y[-1]) == pytest.approx(wanted, rel=1e-13)
