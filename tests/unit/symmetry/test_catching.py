"""A charge after its moving target: signs, the linear law, and which of the two is rough."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde.symmetry import run_and_catch


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    model = sg.models.DeepLinear([2, 2, 2])
    X = rng.normal(size=(20, 2))
    Y = X @ rng.normal(size=(2, 2)) + 0.7 * rng.normal(size=(20, 2))
    return sg.SGD(model, X, Y, learning_rate=0.004, gamma=0.02)


@pytest.fixture(scope="module")
def late(problem):
    """A run that has come near its equilibrium."""
    theta = sg.symmetry.group_equilibrium(problem, problem.model.init(1), problem.model).theta
    burnt = problem.run(theta, 2000, rng=3, keep="final")
    return problem.run(burnt.y[-1], 2000, n_paths=2, rng=4, t_eval=81)


def test_the_charge_goes_towards_its_target(problem, late):
    """Always; and near it the rate is -κ(C - C*), while C* is much the rougher of the two."""
    a = problem.model.symmetries()["B=I"]
    catch = run_and_catch(problem, late, a)
    assert catch.t.shape == (81,) and catch.charge.shape == (2, 81)
    np.testing.assert_allclose(catch.charge, sg.Charge(a)(late.y))
    np.testing.assert_allclose(catch.rate, sg.Charge(a).rate(problem, late.y), rtol=1e-9, atol=1e-12)
    assert np.array_equal(np.sign(catch.rate), np.sign(catch.target - catch.charge))
    assert catch.slope == pytest.approx(1.0, abs=0.1) and catch.correlation > 0.995
    assert (catch.roughness > 30).all()


def test_the_target_is_of_the_orbit(problem, late):
    a = problem.model.symmetries()["B=I"]
    here = run_and_catch(problem, late.y[0, :3], a)
    there = run_and_catch(problem, a.exp(0.3, late.y[0, :3]), a)
    assert here.t is None
    np.testing.assert_allclose(there.target, here.target, rtol=1e-9)
    assert (there.charge > here.charge).all() and (there.rate < here.rate).all()


def test_lost_states_and_errors(problem, late):
    a = problem.model.symmetries()["B=I"]
    states = late.y[0, :3].copy()
    states[1, 2] = np.nan
    catch = run_and_catch(problem, states, a)
    assert np.isnan(catch.target[1]) and np.isfinite(catch.target[[0, 2]]).all() and np.isfinite(catch.slope)
    with pytest.raises(sg.ShapeError, match=r"trajectory must have shape \(..., n_times, 8\)"):
        run_and_catch(problem, states[:, :3], a)
    with pytest.raises(sg.ArgumentError, match="problem must be"):
        run_and_catch(3, states, a)
    with pytest.raises(sg.ArgumentError, match="symmetric"):
        run_and_catch(problem, states, problem.model.generator([[0.0, 1.0], [-1.0, 0.0]]))
