"""check_symmetry says yes to symmetries, and no with a witness to what is none."""

import numpy as np
import pytest

from sgdsde._errors import ArgumentError, ModelError
from sgdsde.algebra import Generator, rescaling, rotation, scaling
from sgdsde.models import Product, uw_gauss
from sgdsde.sgd import SGD
from sgdsde.symmetry import check_symmetry


def test_symmetries_hold_at_given_and_at_random_states(make_two_layer):
    problem = make_two_layer(dims=(5, 3, 4), n=8)
    for a in problem.model.symmetries().values():
        report = check_symmetry(problem, a, theta=np.ones(27), rng=3)
        assert report and report.witness is None
        assert report.tangent < 0.1 and report.finite < 0.1
        assert (report.n_states, report.n_samples) == (5, 8)
    turn = np.array([[0.0, 1, 0], [-1, 0, 2], [0, -2, 0]])  # antisymmetric B: a rotation of the hidden units
    assert check_symmetry(problem, Generator.layered([(3, 5), (4, 3)], [(-turn, None), (None, turn)]))


def test_a_broken_symmetry_comes_with_a_witness(make_two_layer):
    problem = make_two_layer()
    report = check_symmetry(problem, scaling(10))
    assert not report
    witness = report.witness
    g = problem.per_sample_gradients(witness.theta)
    assert witness.kind == "tangent" and witness.value == pytest.approx(abs(g[witness.sample] @ witness.theta))
    assert witness.tolerance < 1e-10 < witness.value
    assert f"sample {witness.sample}: g_iᵀAθ = " in str(report) and "is not a symmetry" in str(report)


def test_a_symmetry_of_the_mean_loss_alone_fails(make_uw):
    # Two samples whose gradients cancel along the orbit: ℓ = ½(u w x - y)² with opposite extra terms ±(u - w).
    problem = make_uw()
    plain_losses, plain = problem.losses, problem.gradients
    tilt = np.array([[1.0, -1.0], [-1.0, 1.0]])
    tilted = problem.but(
        losses=lambda theta: plain_losses(theta) + tilt @ theta, gradients=lambda theta: plain(theta) + tilt
    )
    assert check_symmetry(problem, rescaling(2))
    assert np.allclose(tilted.gradient([2.0, 0.5]), problem.gradient([2.0, 0.5]))
    assert not check_symmetry(tilted, rescaling(2))


def test_the_finite_test_finds_what_gradients_do_not(make_uw):
    problem = make_uw()
    plain = problem.losses
    jump = problem.but(losses=lambda theta: plain(theta) + 0.1 * (abs(theta[0]) > 1.0))  # flat but for a cliff
    report = check_symmetry(jump, rescaling(2), theta=[[0.9, 0.3]], n_states=0)
    assert not report and report.tangent <= 1
    assert report.witness.kind == "finite" and report.witness.lam == pytest.approx(0.5)
    assert "at λ = 0.5" in str(report)


def test_without_losses_only_gradients_are_tried(make_uw):
    class Bare:
        def __init__(self, problem):
            self.model, self.per_sample_gradients = problem.model, problem.per_sample_gradients

    report = check_symmetry(Bare(make_uw()), rescaling(2))
    assert report and report.finite is None and "finite not tried" in str(report)
    assert not check_symmetry(Bare(make_uw()), rotation(2, 0, 1))


def test_a_slightly_wrong_generator_is_caught(make_two_layer):
    problem = make_two_layer()
    b = np.eye(2)
    wrong = Generator.layered([(2, 3), (2, 2)], [(-b, None), (None, b * (1 + 1e-8))])
    assert check_symmetry(problem, Generator.layered([(2, 3), (2, 2)], [(-b, None), (None, b)]))
    assert not check_symmetry(problem, wrong)


def test_errors(make_uw):
    problem = make_uw()
    with pytest.raises(ArgumentError, match="n_states must be at least 1"):
        check_symmetry(problem, rescaling(2), n_states=0)
    with pytest.raises(ArgumentError, match="theta must have shape"):
        check_symmetry(problem, rescaling(2), theta=np.ones(3))
    broken = problem.but(gradients=lambda theta: np.array([[1.0, 1.0], [np.nan, 0.0]]))
    with pytest.raises(ModelError, match="sample 1 has a loss or gradient that is not finite"):
        check_symmetry(broken, rescaling(2))


def test_a_law_of_the_data_is_checked_by_its_mean_and_its_noise():
    problem = SGD(Product(width=2), uw_gauss(1.0, 0.5), learning_rate=0.1)
    report = check_symmetry(problem, rescaling(4))
    assert report and report.n_samples == 2 and report.finite is not None
    assert not check_symmetry(problem, scaling(4))
