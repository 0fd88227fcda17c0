"""Passes of a PyTorch module over samples: forward, and one backward with any weights.

Each call works in a copy of the module of its own, whose parameters are views of one vector: threads do not meet, θ is
copied once, and the module that was given is never touched. PyTorch works on `threads` threads meanwhile, one unless
told otherwise, and on as many as before afterwards.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from sgdsde.models._foreign import relative_close
from sgdsde.models._foreign_passes import Passes
from sgdsde.models.model import NUMBERS_AT_ONCE

__all__ = ["TorchPasses", "Worker", "check_twice", "parameters_of", "working"]

FEW = 64
"""Samples whose second derivatives are held at once."""
SAME = 1e-11
"""Relative difference at which two ways to the same gradients count as one."""


def parameters_of(module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """Name -> parameter of those that are trained; one that stands in several places once, under its first name."""
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


@contextmanager
def working(threads: int) -> Iterator[None]:
    """Gradients on, on so many threads; both as they were afterwards."""
    before = torch.get_num_threads()
    if before != threads:
        torch.set_num_threads(threads)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        if before != threads:
            torch.set_num_threads(before)


def check_twice(gradients: Iterable[Any]) -> None:
    """NotImplementedError where an operation says that it can be differentiated once only.

    PyTorch hangs its error on a node that leads to no parameter, which a gradient by parameters never visits: it would
    be zero without a word.
    """
    ahead, seen = [g.grad_fn for g in gradients], set()
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name().rpartition("::")[2] in ("Error", "NotImplemented"):
            raise NotImplementedError("an operation has no second derivative")
        ahead += [one for one, _ in node.next_functions]


class Worker:
    """A copy of a module at work; `theta` is what its parameters are views of."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = copy.deepcopy(module)
        named = parameters_of(self.module)
        self.names, self.parameters = list(named), list(named.values())
        self.vector = torch.empty(sum(p.numel() for p in self.parameters), dtype=torch.float64)
        self.theta = self.vector.numpy()
        self.places, start = [], 0
        for p in self.parameters:
            self.places.append(slice(start, start + p.numel()))
            p.data = self.vector[self.places[-1]].view(p.shape)
            start += p.numel()

    def gathered(self, gradients: Any) -> np.ndarray:
        """Gradients of the parameters as one vector (d,); None stands for zero."""
        out = np.empty(self.theta.size)
        for at, g in zip(self.places, gradients):
            out[at] = 0.0 if g is None else g.numpy().reshape(-1)
        return out

    def split(self, vector: Any) -> dict[str, Any]:
        """A tensor (d,) as tensors by the names of the parameters."""
        return {n: vector[at].view(p.shape) for n, at, p in zip(self.names, self.places, self.parameters)}


class TorchPasses(Passes):
    """A model made by `from_torch` and its samples."""

    def __init__(self, model: Any, X: np.ndarray, Y: np.ndarray) -> None:
        super().__init__(X.shape[0], model.dim)
        self.model, self.X, self.Y = model, torch.tensor(X), torch.tensor(Y)  # copies, at PyTorch's own alignment
        self.rows_at_once = model.samples_at_once or self.n
        self._vectorised: bool | None = None
        self._twice = True

    @contextmanager
    def _at(self, theta: np.ndarray) -> Iterator[Worker]:
        """A worker of this call alone, its parameters set to θ."""
        idle = self.model.workers
        try:
            worker = idle.pop()
        except IndexError:
            worker = Worker(self.model.module)
        try:
            worker.theta[:] = theta
            with working(self.model.threads):
                yield worker
        finally:
            idle.append(worker)

    def _parts(self) -> Iterator[slice]:
        for start in range(0, self.n, self.rows_at_once):
            yield slice(start, min(self.n, start + self.rows_at_once))

    def _losses(self, worker: Worker, x: Any, y: Any) -> Any:
        return self.model.loss_function(worker.module(x), y)

    def _gradient(self, worker: Worker, x: Any, y: Any, c: Any, again: bool = False) -> Any:
        """Σ c_i ∇ℓ_i by the parameters, as a tuple of tensors; None where a parameter does not enter."""
        losses = self._losses(worker, x, y)
        return torch.autograd.grad(losses, worker.parameters, c, create_graph=again, allow_unused=True)

    def losses(self, theta: np.ndarray) -> np.ndarray:
        with self._at(theta) as worker, torch.no_grad():
            return np.concatenate([self._losses(worker, self.X[at], self.Y[at]).numpy() for at in self._parts()])

    def weighted(self, theta: np.ndarray, c: np.ndarray) -> np.ndarray:
        weights = torch.from_numpy(c)
        with self._at(theta) as worker:
            total: Any = None
            for at in self._parts():
                g = worker.gathered(self._gradient(worker, self.X[at], self.Y[at], weights[at]))
                total = g if total is None else total + g
        return total

    def batch(self, theta: np.ndarray, index: np.ndarray) -> np.ndarray:
        rows = torch.from_numpy(index)
        with self._at(theta) as worker:
            c = torch.full((index.size,), 1.0 / index.size, dtype=torch.float64)
            return worker.gathered(self._gradient(worker, self.X[rows], self.Y[rows], c))

    # --- gradients of single samples ----------------------------------------------------------------------------------

    def rows(self, theta: np.ndarray, start: int, stop: int) -> np.ndarray:
        if not self._vectorises(theta):
            return super().rows(theta, start, stop)
        with self._at(theta) as worker:
            return self._rows(worker, slice(start, stop)).numpy()

    def _single(self, worker: Worker) -> Any:
        """∇ℓ of one sample as a function (θ, x, y) -> (d,) that torch.func can take further."""

        def loss(vector: Any, x: Any, y: Any) -> Any:
            output = torch.func.functional_call(worker.module, worker.split(vector), (x[None],))
            return self.model.loss_function(output, y[None])[0]

        return torch.func.grad(loss)

    def _rows(self, worker: Worker, at: slice) -> Any:
        gradients = torch.func.vmap(self._single(worker), (None, 0, 0))
        return gradients(worker.vector.clone(), self.X[at], self.Y[at]).detach()

    def _vectorises(self, theta: np.ndarray) -> bool:
        """Whether torch.func.vmap takes this module, and agrees with gradients of one sample at a time."""
        if self._vectorised is None:
            two = slice(0, min(2, self.n))
            try:
                with self._at(theta) as worker:
                    found = self._rows(worker, two).numpy()
            except Exception:  # what vmap cannot take raises errors of many kinds; the loop raises the module's own
                self._vectorised = False
            else:
                self._vectorised = relative_close(found, super().rows(theta, 0, two.stop), SAME)
        return self._vectorised

    # --- second derivatives -------------------------------------------------------------------------------------------

    def hessian(self, theta: np.ndarray, v: np.ndarray, c: np.ndarray) -> np.ndarray:
        """By a backward pass through the backward pass; by differences where an operation has no second derivative."""
        if self._twice:
            try:
                return self._hessian(theta, v, c)
            except (RuntimeError, NotImplementedError) as error:
                self._once(error)
        return super().hessian(theta, v, c)

    def _once(self, error: Exception) -> None:
        """Note that second derivatives are differences from now on, if this is what the error says."""
        if "not implemented" not in str(error) and "derivative" not in str(error):
            raise error
        self._twice = False

    def _hessian(self, theta: np.ndarray, v: np.ndarray, c: np.ndarray) -> np.ndarray:
        weights, total = torch.from_numpy(c), np.zeros(self.dim)
        with self._at(theta) as worker:
            along = list(worker.split(torch.from_numpy(v)).values())
            for at in self._parts():
                first = self._gradient(worker, self.X[at], self.Y[at], weights[at], again=True)
                pairs = [(g, u) for g, u in zip(first, along) if g is not None and g.requires_grad]
                if pairs:
                    heads, tails = zip(*pairs)
                    check_twice(heads)
                    second = torch.autograd.grad(heads, worker.parameters, tails, allow_unused=True)
                    total += worker.gathered(second)
        return total

    def bend(self, theta: np.ndarray) -> np.ndarray:
        """Exact, a few samples at a time: the backward pass of Σ_i g_i·δ_i with δ_i = g_i - ḡ held."""
        if not self._vectorises(theta) or not self._twice:
            return super().bend(theta)
        mean = torch.from_numpy(self.weighted(theta, np.full(self.n, 1.0 / self.n)))
        total = torch.zeros(self.dim, dtype=torch.float64)
        try:
            with self._at(theta) as worker:
                gradients = torch.func.vmap(self._single(worker), (None, 0, 0))
                rows = max(1, min(FEW, NUMBERS_AT_ONCE // self.dim))
                for start in range(0, self.n, rows):
                    at = slice(start, min(self.n, start + rows))
                    vector = worker.vector.clone().requires_grad_()
                    g = gradients(vector, self.X[at], self.Y[at])
                    if g.requires_grad:
                        check_twice([g])
                        total += torch.autograd.grad((g * (g.detach() - mean)).sum(), vector)[0]
        except (RuntimeError, NotImplementedError) as error:
            self._once(error)
            return super().bend(theta)
        return total.numpy() / self.n
