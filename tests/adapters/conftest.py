"""Models of PyTorch and JAX. Without both nothing of this folder is collected, and pytest run on it alone fails."""

import importlib.util

import numpy as np
import pytest

import sgdsde as sg

if not all(importlib.util.find_spec(name) for name in ("torch", "jax")):
    collect_ignore_glob = ["test_*"]

SIZES = [3, 4, 2]


def torch_of(own):
    """The network `own` as a PyTorch module, with a loss; its parameters come in the same order as ours."""
    import torch

    layers = []
    for n, m in zip(own.dims, own.dims[1:]):
        linear = isinstance(own, sg.models.DeepLinear)
        layers += [torch.nn.Linear(n, m, bias=not linear)] + ([] if linear else [torch.nn.Tanh()])
    module = torch.nn.Sequential(*(layers if linear else layers[:-1])).double()
    if getattr(own, "loss_function", None) is not None and own.loss_function.name == "softmax":
        return module, torch.nn.CrossEntropyLoss(reduction="none")
    return module, squared


def squared(outputs, y):
    return ((outputs - y) ** 2).sum(1)


def jax_of(own):
    """The network `own` as a JAX function of one sample, and its parameters as a list, in our order."""
    import jax
    import jax.numpy as jnp

    linear = isinstance(own, sg.models.DeepLinear)

    def function(params, x, y):
        last = len(params) - (1 if linear else 2)
        for k in range(0, len(params), 1 if linear else 2):
            x = params[k] @ x if linear else params[k] @ x + params[k + 1]
            if not linear and k < last:
                x = jnp.tanh(x)
        if getattr(own, "loss_function", None) is not None and own.loss_function.name == "softmax":
            return jax.nn.logsumexp(x) - x[y]
        return jnp.sum((x - y) ** 2)

    return function, list(own.unflatten(own.init(0)).values())


class Trio:
    """One network three times, as ours, PyTorch's and JAX's, on the same data."""

    def __init__(self, own, n=9, **settings):
        rng = np.random.default_rng(1)
        softmax = getattr(own, "loss_function", None) is not None and own.loss_function.name == "softmax"
        self.X = rng.standard_normal((n, own.dims[0]))
        self.Y = rng.integers(0, own.dims[-1], n) if softmax else rng.standard_normal((n, own.dims[-1]))
        self.settings = {"learning_rate": 0.02, "batch_size": 2, "gamma": 0.01, **settings}
        symmetries = own.symmetries()
        self.theta, self.rng = own.init(0), rng
        models = {
            "own": own,
            "torch": sg.models.from_torch(*torch_of(own), symmetries=symmetries),
            "jax": sg.models.from_jax(*jax_of(own), symmetries=symmetries),
        }
        self.problems = {name: sg.SGD(model, self.X, self.Y, **self.settings) for name, model in models.items()}


NETWORKS = {
    "tanh": lambda: sg.models.MLP(SIZES),
    "tanh-softmax": lambda: sg.models.MLP([3, 4, 3], loss="softmax"),
    "linear": lambda: sg.models.DeepLinear([3, 3, 2]),
}


@pytest.fixture(scope="session", params=NETWORKS)
def trio(request):
    return Trio(NETWORKS[request.param]())


@pytest.fixture(params=["torch", "jax"])
def pair(trio, request):
    """Somebody else's problem, ours, and the rest."""
    return trio.problems[request.param], trio.problems["own"], trio
