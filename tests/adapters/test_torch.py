"""Models of PyTorch modules: names, what is refused and why, what stays as it was, other processes."""

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
import torch
from torch import nn

import sgdsde as sg
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.models import from_torch

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((7, 3)), RNG.standard_normal((7, 2))


def squared(outputs, y):
    return ((outputs - y) ** 2).sum(1)


def problem_of(module, loss=squared, data=(X, Y), **options):
    return sg.SGD(from_torch(module, loss, **options), *data, learning_rate=0.02)


def consistent(problem):
    """Gradients of single samples, by whichever way, are those of one backward pass with weights."""
    model, theta = problem.model, problem.model.theta0
    rows = problem.per_sample_gradients(theta)
    c = np.random.default_rng(1).standard_normal(problem.n_samples)
    assert model.weighted_gradient(theta, c, problem.samples) == pytest.approx(c @ rows, rel=1e-10, abs=1e-12)
    h = 1e-6
    v = np.random.default_rng(2).standard_normal(model.dim)
    slope = (problem.loss(theta + h * v) - problem.loss(theta - h * v)) / (2 * h)
    assert v @ rows.mean(axis=0) == pytest.approx(slope, rel=1e-6, abs=1e-8)
    return rows


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.c(self.b(torch.tanh(self.a(x))))


class Overlapping(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(3, 3))
        self.b = nn.Parameter(self.a.data.T)


class Centred(nn.Linear):
    def forward(self, x):
        o = super().forward(x)
        return o - o.mean(0)


class Dropping(nn.Linear):
    def forward(self, x):
        return nn.functional.dropout(super().forward(x), 0.5)


class Counting(nn.Linear):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


class Branching(nn.Linear):
    """What vmap cannot take: control flow by values."""

    def forward(self, x):
        return torch.stack([super(Branching, self).forward(row) * (2.0 if row[0] > 0 else 1.0) for row in x])


def test_parameters_by_name():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    model = from_torch(net, squared)
    assert model.shapes == {"0.weight": (4, 3), "0.bias": (4,), "2.weight": (2, 4), "2.bias": (2,)}
    arrays = model.unflatten(model.theta0)
    for name, p in net.named_parameters():
        assert np.array_equal(arrays[name], p.detach().double().numpy())
    assert np.array_equal(model.flatten(**arrays), model.theta0)
    theta = model.init(3)
    moved = model.module_at(theta)
    assert np.array_equal(moved[2].weight.detach().numpy(), model.unflatten(theta)["2.weight"])
    assert np.array_equal(model.unflatten(theta)["0.bias"], arrays["0.bias"])  # axes of one are left as they were
    assert squared(moved(torch.tensor(X)), torch.tensor(Y)).mean().item() == pytest.approx(
        sg.SGD(model, X, Y, learning_rate=0.1).loss(theta), rel=1e-14
    )


def test_a_tied_parameter_counts_once_and_a_frozen_one_not_at_all():
    tied = Tied()
    model = from_torch(tied, squared)
    assert list(model.shapes) == ["a.weight", "a.bias", "b.bias", "c.weight", "c.bias"]
    consistent(problem_of(tied))
    tied.c.weight.requires_grad_(False)
    problem = problem_of(tied)
    assert "c.weight" not in problem.model.shapes
    consistent(problem)


@pytest.mark.parametrize(
    "make, loss, error, message",
    [
        (lambda: nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), squared, ModelError, r"1 \(BatchNorm1d\) uses the"),
        (lambda: nn.Sequential(nn.Linear(3, 2), nn.Dropout()), squared, ModelError, r"1 \(Dropout\) drops units at"),
        (lambda: nn.MultiheadAttention(4, 2, dropout=0.1), squared, ModelError, r"MultiheadAttention\) drops units"),
        (lambda: Dropping(3, 2), squared, ModelError, "it is random"),
        (lambda: Counting(3, 2), squared, ModelError, "must not change its buffers, but calls"),
        (lambda: Centred(3, 2), squared, ModelError, "must not depend on the other samples of its batch"),
        (lambda: nn.Linear(3, 2), nn.MSELoss(), ModelError, r"MSELoss\(reduction='none'\)"),
        (lambda: nn.Linear(3, 2), lambda o, y: squared(o, y).mean(), ModelError, "got a single number"),
        (
            lambda: nn.Linear(3, 2),
            lambda o, y: squared(o, y).mean().expand(len(o)),
            ModelError,
            "reduce over the batch",
        ),
        (lambda: nn.Linear(3, 2), nn.MSELoss(reduction="none"), ShapeError, "sum over the outputs"),
        (lambda: nn.Linear(3, 2), lambda o, y: squared(o, y).float(), ModelError, "double precision"),
        (lambda: nn.Linear(3, 2), lambda o, y: squared(o, y).detach(), ModelError, "without a gradient"),
        (lambda: nn.Linear(3, 2), lambda o, y: squared(o, y) + torch.inf, ModelError, "not finite"),
        (lambda: nn.Linear(3, 2), lambda o, y: squared(o, y).detach().numpy(), ModelError, "must return a tensor"),
        (Overlapping, squared, ModelError, "parameters a and b share memory"),
        (lambda: nn.Linear(3, 2, dtype=torch.complex64), squared, ModelError, "parameter weight is complex"),
        (lambda: nn.LazyLinear(2), squared, ModelError, "parameter weight has no shape yet"),
        (lambda: nn.Linear(3, 2, device="meta"), squared, ModelError, "must be on the CPU"),
        (nn.Tanh, squared, ModelError, "must have parameters"),
        (lambda: 3, squared, ArgumentError, "module must be a torch.nn.Module"),
        (lambda: nn.Linear(3, 2), 3, ArgumentError, "loss must be a function"),
    ],
)
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_refused_with_the_reason(make, loss, error, message):
    with pytest.raises(error, match=message):
        problem_of(make(), loss)


def test_running_statistics_and_no_dropout_are_fine():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2))
    net(torch.tensor(X, dtype=torch.float32))
    consistent(problem_of(net.eval()))


@pytest.mark.parametrize(
    "make, vectorised", [(lambda: nn.Linear(3, 2), True), (lambda: Branching(3, 2), False)], ids=["vmap", "loop"]
)
def test_single_gradients_with_and_without_vmap(make, vectorised):
    torch.manual_seed(0)
    problem = problem_of(make())
    rows = consistent(problem)
    assert problem.model.passes(problem.samples)._vectorised is vectorised
    assert problem.per_sample_gradients(problem.model.theta0)[3] == pytest.approx(rows[3], abs=0)
    theta = problem.model.theta0
    kernels = problem.sde().kernels(correction=True)
    out, work = np.empty((theta.size, 1)), np.empty(sum(kernels.work))
    kernels.correction(out, theta[:, None].copy(), np.zeros(1), kernels.p, kernels.data, work)

    def trace(theta):
        return np.trace(problem.covariance(theta))

    h, wanted = 1e-5, np.empty(theta.size)
    for k, unit in enumerate(h * np.eye(theta.size)):
        wanted[k] = (trace(theta + unit) - trace(theta - unit)) / (2 * h)
    assert out[:, 0] == pytest.approx(0.5 * problem.noise_scale * wanted, rel=1e-5, abs=1e-9)


class OnceOnly(torch.autograd.Function):
    """An operation without a second derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x**2


class Cubed(nn.Linear):
    def forward(self, x):
        return OnceOnly.apply(super().forward(x))


class CubedPlainly(nn.Linear):
    def forward(self, x):
        return super().forward(x) ** 3


def test_where_there_is_no_second_derivative_differences_take_its_place():
    torch.manual_seed(0)
    made = problem_of(Cubed(3, 2))
    plain = sg.SGD(from_torch(CubedPlainly(3, 2), squared), X, Y, learning_rate=0.02)
    theta, v = made.model.theta0, np.random.default_rng(3).standard_normal(made.model.dim)
    found = made.model.hessian_vector(theta, v, made.samples)
    assert not made.model.passes(made.samples)._twice and plain.model.passes(plain.samples)._twice
    assert found == pytest.approx(plain.model.hessian_vector(theta, v, plain.samples), rel=1e-7)
    linear = problem_of(nn.Linear(3, 2), lambda o, y: (o * y).sum(1))
    assert (linear.model.hessian_vector(linear.model.theta0, np.ones(8), linear.samples) == 0).all()


def test_pieces_of_a_pass():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    whole, pieces = problem_of(net), problem_of(net, samples_at_once=3)
    theta, v = whole.model.theta0, np.random.default_rng(1).standard_normal(whole.model.dim)
    assert pieces.gradient(theta) == pytest.approx(whole.gradient(theta), rel=1e-13)
    assert np.array_equal(pieces.per_sample_losses(theta), whole.per_sample_losses(theta))
    found = pieces.model.hessian_vector(theta, v, pieces.samples)
    assert found == pytest.approx(whole.model.hessian_vector(theta, v, whole.samples), rel=1e-12)


def test_class_numbers_tokens_and_images():
    torch.manual_seed(0)
    labels = np.array([0, 2, 1, 1, 0])
    tokens = np.array([[0, 1], [2, 3], [4, 0], [1, 1], [3, 2]])
    net = nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(6, 3))
    consistent(problem_of(net, nn.CrossEntropyLoss(reduction="none"), (tokens, labels)))
    images = np.random.default_rng(0).standard_normal((5, 1, 4, 4))
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.GELU(), nn.Flatten(), nn.Linear(8, 3))
    problem = problem_of(net, nn.CrossEntropyLoss(reduction="none"), (images, labels))
    consistent(problem)
    assert problem.model.fan_in("0.weight") == 9


def test_nothing_of_the_person_changes():
    net = nn.Linear(3, 2)
    net.weight.grad = torch.ones_like(net.weight)
    before = net.weight.detach().clone()
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        problem = problem_of(net)
        with torch.no_grad():
            sol = sg.solve(problem.sde(), (0, 0.1), problem.model.theta0, n_paths=2, rng=0, threads=1)
            assert not torch.is_grad_enabled()
        assert torch.get_num_threads() == 2
        with torch.inference_mode():
            again = sg.solve(problem.sde(), (0, 0.1), problem.model.theta0, n_paths=2, rng=0, threads=1)
        assert np.array_equal(sol.y, again.y)
    finally:
        torch.set_num_threads(threads)
    assert net.weight.dtype == torch.float32 and torch.equal(net.weight, before)
    assert (net.weight.grad == 1).all() and net.training


class MyError(Exception):
    pass


class Failing(nn.Linear):
    armed = False

    def forward(self, x):
        if Failing.armed:
            raise MyError("mine")
        return super().forward(x)


def test_what_a_module_raises_reaches_the_caller():
    problem = problem_of(Failing(3, 2))
    theta = problem.model.theta0
    Failing.armed = True
    try:
        for run in (
            lambda: problem.run(theta, 5, rng=0),
            lambda: sg.solve(problem.sde(), (0, 1), theta, n_paths=4, threads=2, rng=0),
            lambda: problem.per_sample_losses(theta),
            lambda: problem.covariance(theta),
        ):
            with pytest.raises(MyError, match="mine"):
                run()
    finally:
        Failing.armed = False
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        problem_of(nn.Linear(4, 2))


def test_other_processes_and_checkpoints(tmp_path):
    def loss(outputs, y):  # local: it travels by value
        return ((outputs - y) ** 2).sum(1)

    torch.manual_seed(0)
    problem = problem_of(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), loss)
    theta = problem.model.theta0
    wanted = problem.run(theta, 10, n_paths=4, rng=0, checkpoint=tmp_path / "run").y
    back = pickle.loads(pickle.dumps(problem))
    assert back.samples.numbers[1] != problem.samples.numbers[1]
    assert np.array_equal(back.run(theta, 10, n_paths=4, rng=0, checkpoint=tmp_path / "run").y, wanted)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert np.array_equal(problem.run(theta, 10, n_paths=4, rng=0, executor=pool).y, wanted)
