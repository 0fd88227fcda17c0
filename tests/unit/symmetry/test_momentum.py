"""The charge law of heavy-ball momentum: an identity of every path, and not one where there is no symmetry."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError
from sgdsde.models import DeepLinear
from sgdsde.sgd.optimizers import HeavyBall
from sgdsde.symmetry import HeavyBallLaw


def make(beta=0.8, n=12, **numbers):
    rng = np.random.default_rng(0)
    model = DeepLinear([3, 2, 2])
    numbers = {"learning_rate": 0.02, "gamma": 0.1, "batch_size": 2, **numbers}
    return sg.SGD(model, rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), optimizer=HeavyBall(beta), **numbers)


@pytest.mark.parametrize("sampling", ["with replacement", "epochs"])
@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9])
def test_the_identity_holds_on_every_path(beta, sampling):
    problem = make(beta, sampling=sampling)
    B = np.array([[1.0, 0.3], [0.3, -0.5]])
    law = HeavyBallLaw(problem.model.generator(B), problem)
    theta = np.random.default_rng(1).standard_normal((3, 10))
    start = np.concatenate([theta, np.random.default_rng(2).standard_normal((3, 10))], axis=1)
    for y0 in (theta, start):
        report = law.report(problem.run(y0, 200, n_paths=3, rng=0, t_eval=5, track=law))
        off = report.left - report.right - report.ends
        size = np.abs(report.left) + np.abs(report.right) + np.abs(report.ends)
        assert np.abs(off[:, 1:]).max() <= 1e-12 * size.max() and (size[:, 1:] > 0).all()
        assert report.holds and (report.defect[:, 1:] > 0).all()


def test_it_is_measured_by_hand():
    problem = make(0.7)
    A = problem.model.symmetries()["B=I"]
    law = HeavyBallLaw(A, problem)
    sol = problem.run(np.random.default_rng(1).standard_normal(10), 30, rng=3, t_eval="steps", track=law)
    theta, v = np.split(sol.y, 2, axis=-1)
    report = law.report(sol)
    assert report.left[0, -1] == pytest.approx(0.2 * A.quadratic(theta[:-1]).mean(), rel=1e-12)
    assert report.right[0, -1] == pytest.approx(0.01 * 1.7 * A.quadratic(v[1:]).mean(), rel=1e-12)
    mixed = [x @ A.apply(w) for x, w in zip(theta, v)]
    ends = (0.7 * (mixed[-1] - mixed[0]) - 0.3 * (A.quadratic(theta[-1]) - A.quadratic(theta[0])) / 0.04) / 30
    assert report.ends[0, -1] == pytest.approx(ends, rel=1e-10)
    assert "2γ⟨C⟩" in repr(report) and report.left[0, 0] == 0.0


def test_a_matrix_that_is_no_symmetry_breaks_it():
    problem = make()
    law = HeavyBallLaw(np.diag(np.arange(10.0)), problem)
    report = law.report(problem.run(np.ones(10), 20, rng=0, track=law))
    assert not report.holds and report.defect[0, -1] > 1e6 * report.rounding[0, -1]


def test_the_ends_fall_and_what_is_left_is_the_law_of_the_sde():
    """In a run at rest 2γ⟨C⟩ is σ²⟨Tr[ΣA]⟩, σ² = η/(2S(1 - β)), up to O(η): the law of the SDE, at the states seen."""
    problem = make(0.5, n=30, learning_rate=0.005, gamma=0.05, batch_size=1)
    A = problem.model.generator([[1.0, 0.0], [0.0, 0.2]])
    law = HeavyBallLaw(A, problem)
    rest = problem.run(problem.model.init(rng=0), 8000, n_paths=1, rng=0)
    sol = problem.run(rest.y[0, -1], 8000, n_paths=4, rng=1, t_eval=81, track=law)
    report = law.report(sol)
    assert report.holds
    assert np.abs(report.ends[:, -1]).mean() < 0.5 * np.abs(report.ends[:, 5]).mean()
    states = sol.y[:, ::8, :10].reshape(-1, 10)
    traces = np.mean([A.trace(problem.covariance(x)) for x in states])
    assert problem.sigma2 == pytest.approx(0.005 / (2 * 0.5))
    gap = np.mean([A.quadratic(problem.gradient(x)) for x in states]) / np.abs(traces)
    assert abs(gap) < 0.2  # η∇LᵀA∇L is small beside the noise
    assert report.right[:, -1].mean() == pytest.approx(problem.sigma2 * traces, rel=0.1 + abs(gap))


@pytest.mark.parametrize(
    ("make_law", "message"),
    [
        (
            lambda: HeavyBallLaw(np.eye(10), make().replace(optimizer=None)),
            "problem must be an SGD problem with HeavyBall",
        ),
        (lambda: HeavyBallLaw(np.eye(9), make()), "charge acts on 9 components"),
        (lambda: HeavyBallLaw(np.eye(10), make(learning_rate=sg.schedules.step(0.1, {3: 0.01}))), "that is a number"),
        (lambda: HeavyBallLaw(sg.translation(np.ones(10)), make()), "charge must be of a linear generator"),
    ],
)
def test_what_is_refused(make_law, message):
    with pytest.raises(ArgumentError, match=message):
        make_law()


def test_runs_that_it_is_not_of():
    problem, theta = make(), np.ones(10)
    law = HeavyBallLaw(np.eye(10), problem)
    with pytest.raises(ArgumentError, match="the law is of"):
        make(gamma=0.3).run(theta, 3, rng=0, track=law)
    with pytest.raises(ArgumentError, match="this law is of heavy-ball momentum, not of 'sgd'"):
        problem.replace(optimizer=None).run(theta, 3, rng=0, track=law)
    with pytest.raises(ArgumentError, match="solution must come from a run with track="):
        law.report(problem.run(theta, 3, rng=0))
    with pytest.raises(ArgumentError, match="track_every must be 1"):
        law.report(problem.run(theta, 6, rng=0, track=law, track_every=2))
