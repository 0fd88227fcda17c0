"""Sums along and across the symmetry, step by step, against the decomposition of all saved steps."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.symmetry import MotionTrack


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    model = sg.models.DeepLinear([2, 3, 2])
    return sg.SGD(model, rng.normal(size=(8, 2)), rng.normal(size=(8, 2)), learning_rate=0.05, gamma=0.02)


@pytest.fixture(scope="module")
def generators(problem):
    rng = np.random.default_rng(1)
    B = rng.normal(size=(3, 3))
    make = problem.model.generator
    return {"I": make(np.eye(3)), "sym": make(B + B.T), "any": make(B), "turn": make(B - B.T)}


@pytest.mark.parametrize("chosen", [["I"], ["I", "sym"], ["I", "sym", "turn"], ["I", "sym", "any", "turn"]])
def test_sums_are_those_of_the_decomposition(problem, generators, chosen):
    """The last family is linearly dependent: any = ½(sym + turn)."""
    family = {name: generators[name] for name in chosen}
    track = MotionTrack(family)
    theta = problem.model.init(rng=2)
    for sol in (
        problem.run(theta, 30, n_paths=3, rng=0, t_eval="steps", track=track),
        sg.solve(problem.sde(), (0, 1.5), theta, n_paths=3, rng=0, t_eval="steps", track=track),
    ):
        motion, parts = track.read(sol), sg.decompose(sol, family, algebra="given")
        squared = np.cumsum(np.sum(parts.parallel**2, axis=-1), axis=-1)
        np.testing.assert_allclose(motion.quadratic_variation_parallel[:, 1:], squared, rtol=1e-9, atol=1e-16)
        squared = np.cumsum(np.sum(parts.orthogonal**2, axis=-1), axis=-1)
        np.testing.assert_allclose(motion.quadratic_variation_orthogonal[:, 1:], squared, rtol=1e-9)
        np.testing.assert_allclose(motion.length_parallel, parts.length_parallel, rtol=1e-9, atol=1e-16)
        np.testing.assert_allclose(motion.length_orthogonal, parts.length_orthogonal, rtol=1e-9)
        np.testing.assert_allclose(motion.share[:, -1], parts.fraction, rtol=1e-9)
        for name in set(chosen) & {"I", "sym"}:
            C = sg.Charge(generators[name])(sol.y)
            np.testing.assert_allclose(motion.changes[name], C - C[:, :1], rtol=0, atol=1e-13)


def test_a_single_path_and_the_end_alone(problem, generators):
    track = MotionTrack([generators["I"]])
    theta = problem.model.init(rng=2)
    whole = track.read(problem.run(theta, 20, rng=0, track=track))
    end = track.read(problem.run(theta, 20, rng=0, track=track, keep="final"))
    assert whole.length_parallel.shape == (2,) and whole.length_parallel[0] == 0.0
    assert end.length_parallel[-1] == whole.length_parallel[-1] > 0.0


def test_directions_that_vanish_move_nothing(problem, generators):
    """At θ = 0 with no noise and no gradient along it: nothing moves, and 0/0 is nowhere."""
    model = sg.models.DeepLinear([1, 1, 1])
    still = sg.SGD(model, [[1.0], [-1.0]], [[1.0], [1.0]], learning_rate=0.1)
    track = MotionTrack(model.symmetries())
    motion = track.read(still.run([0.0, 0.0], 5, rng=0, track=track))
    assert motion.length_parallel[-1] == motion.length_orthogonal[-1] == 0.0 and np.isnan(motion.share[-1])


def test_errors(problem, generators):
    track = MotionTrack(generators)
    with pytest.raises(sg.ArgumentError, match="generators act on 12 components"):
        sg.SGD(sg.models.DeepLinear([1, 1]), [[1.0]], [[1.0]], learning_rate=0.1).run([1.0], 2, track=track)
    with pytest.raises(sg.ArgumentError, match="tracked nothing of it"):
        track.read(problem.run(problem.model.init(0), 2, rng=0))
    with pytest.raises(sg.ArgumentError, match="must be a Solution"):
        track.read(np.zeros(3))
    with pytest.raises(sg.ArgumentError, match="must not be zero"):
        MotionTrack(0.0 * generators["I"])
    with pytest.raises(sg.ArgumentError, match="at most 256"):
        MotionTrack([generators["I"].named(str(i)) for i in range(257)])
    with pytest.raises(sg.ArgumentError, match="must keep its paths"):
        track.read(problem.run(problem.model.init(0), 4, n_paths=4, rng=0, track=track, keep="stats"))
