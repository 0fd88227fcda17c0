"""What charges, laws, equilibria and reports refuse, each in one clear error."""

import numpy as np
import pytest

import sgdsde as sg
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.symmetry.decomposition import orbit_coordinate

MODEL = sg.models.DeepLinear([2, 2, 1])
A = MODEL.symmetries()["B=I"]
X, Y = np.arange(1.0, 7.0).reshape(3, 2), np.array([1.0, -1.0, 2.0])
PROBLEM = sg.SGD(MODEL, X, Y, learning_rate=0.01, gamma=0.1)
THETA = MODEL.init(0)
CHARGE = sg.Charge(A)

METHODS = ["rate", "residual", "terms", "discrete_rate", "relaxation_rate"]
NOT_STATES = {
    "complex": (THETA + 1j, ArgumentError),
    "text": (THETA.astype(str), ArgumentError),
    "nothing": (None, ArgumentError),
    "a number": (1.0, ShapeError),
    "empty": ([], ShapeError),
    "ragged": ([[1.0], [1.0, 2.0]], ShapeError),
    "masked": (np.ma.array(THETA, mask=THETA > 0), ArgumentError),
}


@pytest.mark.parametrize("state", NOT_STATES)
@pytest.mark.parametrize("method", METHODS)
def test_a_rate_wants_states_of_real_numbers(method, state):
    value, error = NOT_STATES[state]
    with pytest.raises(error, match="theta must"):
        getattr(CHARGE, method)(PROBLEM, value)


@pytest.mark.parametrize("state", NOT_STATES)
@pytest.mark.parametrize(
    "function",
    [
        CHARGE,
        A.apply,
        lambda x: A.exp(0.1, x),
        lambda x: sg.noise_equilibrium(PROBLEM, x, A),
        lambda x: orbit_coordinate(PROBLEM, x, A),
    ],
)
def test_so_do_charges_groups_and_equilibria(function, state):
    value, error = NOT_STATES[state]
    with pytest.raises(error, match="theta must"):
        function(value)


@pytest.mark.parametrize("problem", [None, "p", MODEL, PROBLEM.sde(), PROBLEM.recursion()])
@pytest.mark.parametrize(
    "function",
    [
        lambda p: CHARGE.rate(p, THETA),
        lambda p: CHARGE.terms(p, THETA),
        lambda p: sg.ChargeLaw(CHARGE, p),
        lambda p: sg.noise_equilibrium(p, THETA, A),
        lambda p: sg.check_symmetry(p, A),
    ],
)
def test_a_problem_is_wanted(function, problem):
    with pytest.raises(ArgumentError, match="problem must be an SGD problem, got"):
        function(problem)


@pytest.mark.parametrize("rng", [-1, "x", True, 1.5, np.random.RandomState(0)])
def test_random_states_take_what_every_rng_takes(rng):
    with pytest.raises(ArgumentError, match="rng must be"):
        sg.check_symmetry(PROBLEM, A, rng=rng)


def test_the_generator_must_fit_the_problem():
    with pytest.raises(ArgumentError, match="generator must act on the 6 parameters of the problem, got dim 3"):
        sg.check_symmetry(PROBLEM, np.eye(3))


@pytest.mark.parametrize(("theta", "a"), [(np.full(6, 1e200), A), (THETA, np.eye(6) * 1e308)])
def test_an_equilibrium_beyond_the_finite_numbers_is_refused(theta, a):
    with pytest.raises(ArgumentError, match="theta and generator must be of a size"):
        sg.noise_equilibrium(PROBLEM, theta, a)


@pytest.mark.parametrize("solution", [None, "x", PROBLEM, np.ones(3)])
def test_a_report_wants_a_solution(solution):
    with pytest.raises(ArgumentError, match="solution must be a Solution"):
        sg.ChargeLaw(CHARGE, PROBLEM).report(solution)


def test_results_compare_by_identity_and_can_be_keys():
    law = sg.ChargeLaw(CHARGE, PROBLEM)
    sol = PROBLEM.run(THETA, 3, n_paths=2, rng=0, track=law)
    makers = [
        lambda: law.report(sol),
        lambda: sg.decompose(sol, A),
        lambda: sg.noise_equilibrium(PROBLEM, THETA, A),
        lambda: sg.compare(sol, sol),
        lambda: sg.check_symmetry(PROBLEM, np.eye(6)).witness,
    ]
    for make in makers:
        one, other = make(), make()
        assert one == one and one != other and len({one, other}) == 2
    report = law.report(sol)
    for time in ("x", None, 1.0, 2, -3):
        with pytest.raises(ArgumentError, match="time must be"):
            report.table(time)


def test_an_empty_ensemble_is_said_to_be_one():
    assert "no paths" in repr(sg.decompose(np.ones((0, 3, 6)), A))
