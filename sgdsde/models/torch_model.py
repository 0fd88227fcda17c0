"""`from_torch`: a model from a PyTorch module and a loss that gives one number for each sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError, ModelError, ShapeError
from sgdsde.models._foreign import Foreign, code_token, read_symmetries, relative_close

if TYPE_CHECKING:
    import torch

__all__ = ["TorchModel", "from_torch"]

SAME = 1e-9
"""Relative difference of a sample's loss in a batch and alone that is rounding."""
TRIED = 4
"""Samples that are tried when an `SGD` is made."""


def from_torch(
    module: torch.nn.Module,
    loss: Callable[[Any, Any], Any],
    *,
    symmetries: Mapping[str, Any] | None = None,
    samples_at_once: int | None = None,
    threads: int = 1,
) -> TorchModel:
    """A model from a PyTorch module: its SGD, its SDE, its covariance and its charges.

    Parameters
    ----------
    module : torch.nn.Module
        On the CPU, called as module(X) with the samples along the first axis. It is copied, in double precision and in
        the mode that it is in (`eval` or `train`); the one given stays as it is. θ are its parameters with
        `requires_grad`, by the names of `named_parameters`; what is frozen stays constant.
    loss : callable
        loss(outputs, Y) -> (N,), one number for each sample, such as
        ``torch.nn.CrossEntropyLoss(reduction="none")`` or ``lambda o, y: ((o - y) ** 2).sum(1)``.
    symmetries : mapping, optional
        Name -> `Generator` or matrix (d, d), kept for `model.symmetries()`; `check_symmetry` tests them.
    samples_at_once : int, optional
        A pass over N samples is made in pieces of this many, which bounds its memory; all at once when not given.
    threads : int
        Threads on which PyTorch works inside a call. Its sums are in another order for another number, so the last bits
        depend on it; on the threads of `solve`, which run paths side by side, nothing depends.

    Returns
    -------
    TorchModel
        `theta0` are the module's own parameters, `module_at(theta)` is a copy of the module with others.

    Raises
    ------
    ModelError
        With the reason, for a module without one loss for each sample: batch statistics, dropout, anything random;
        complex parameters, parameters that overlap, lazy ones, or not on the CPU. From `SGD`: a loss that reduces over
        the batch, a wrong shape, buffers that the module changes.

    Notes
    -----
    X and Y become float64, integers int64 (class numbers, tokens). A step of the SDE is one forward and one backward
    pass over all samples, with weights of both signs; a step of SGD one over its batch. Gradients of single samples are
    vectorised by `torch.func` where that takes the module, and one by one elsewhere. Products with second derivatives
    are exact where PyTorch has them. What the module raises reaches the caller.

    Examples
    --------
    >>> import sgdsde as sg
    >>> import torch                                                                              # doctest: +SKIP
    >>> net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))  # doctest: +SKIP
    >>> model = sg.models.from_torch(net, lambda o, y: ((o - y) ** 2).sum(1))                     # doctest: +SKIP
    >>> model.shapes                                                                              # doctest: +SKIP
    {'0.weight': (4, 3), '0.bias': (4,), '2.weight': (2, 4), '2.bias': (2,)}
    """
    return TorchModel(module, loss, symmetries, samples_at_once, threads)


class TorchModel(Foreign):
    """What `from_torch` returns: a `Model`."""

    _transient = ("_made", "_workers")

    def __init__(
        self,
        module: torch.nn.Module,
        loss: Callable[[Any, Any], Any],
        symmetries: Mapping[str, Any] | None = None,
        samples_at_once: int | None = None,
        threads: int = 1,
    ) -> None:
        import torch

        from sgdsde.models._foreign_torch import parameters_of

        if not isinstance(module, torch.nn.Module):
            raise ArgumentError(f"module must be a torch.nn.Module, got {_check.show(module)}")
        if not callable(loss):
            raise ArgumentError(f"loss must be a function of (outputs, Y), got {_check.show(loss)}")
        if getattr(loss, "reduction", "none") != "none":
            raise ModelError(f"loss must not reduce over the batch: give {type(loss).__name__}(reduction='none')")
        _check_module(module)
        self.module, self.loss_function = _double(module), loss
        self.samples_at_once = None if samples_at_once is None else _check.count("samples_at_once", samples_at_once)
        self.threads = _check.count("threads", threads)
        named = parameters_of(self.module)
        self.shapes = {name: tuple(p.shape) for name, p in named.items()}
        self.dim = sum(p.numel() for p in named.values())
        if self.dim == 0:
            raise ModelError("module must have parameters with requires_grad=True, got none")
        self.theta0 = np.concatenate([p.detach().numpy().ravel() for p in named.values()])
        self._generators = read_symmetries(symmetries, self.dim)
        self._workers: list[Any] | None = None

    def __repr__(self) -> str:
        return f"from_torch({type(self.module).__name__}, dim={self.dim})"

    @property
    def workers(self) -> list[Any]:
        """Copies of the module that no call is using."""
        if self._workers is None:
            self._workers = []
        return self._workers

    def module_at(self, theta: Any) -> torch.nn.Module:
        """A copy of the module, in double precision, with the parameters θ (d,)."""
        import copy

        import torch

        from sgdsde.models._foreign_torch import parameters_of

        theta = self.check_theta(theta, one=True)
        module = copy.deepcopy(self.module)
        arrays = self.unflatten(theta)
        with torch.no_grad():
            for name, p in parameters_of(module).items():
                p.copy_(torch.from_numpy(arrays[name].copy()))
        return module

    def init(self, rng: Any = None, scale: float = 1.0) -> np.ndarray:
        """A start: weights of two and more axes from N(0, scale²/fan-in), what has fewer as in the module.

        `theta0` are the module's own parameters.
        """
        return self._drawn(rng, scale, self.theta0, lambda shape: int(np.prod(shape[1:])))

    def fan_in(self, name: str) -> int:
        """How many numbers feed one output of that array: the product of all axes but the first."""
        return int(np.prod(self.shapes[name][1:]))

    def token(self) -> bytes:
        """See `Foreign.token`."""
        from sgdsde.models._foreign_torch import parameters_of

        trained = set(parameters_of(self.module))
        fixed = [v.numpy().tobytes() for k, v in self.module.state_dict().items() if k not in trained]
        return b"|".join([repr(self.module).encode(), code_token(type(self.module).forward), *fixed,
                          code_token(self.loss_function)])  # fmt: skip

    def bind(self, X: np.ndarray, Y: np.ndarray, p: np.ndarray, data: np.ndarray) -> np.ndarray:
        """See `Foreign.bind`."""
        from sgdsde.models._foreign_torch import TorchPasses

        self._tried(X, Y)
        return TorchPasses(self, X, Y).numbers()

    def _tried(self, X: np.ndarray, Y: np.ndarray) -> None:
        """A few samples together, again, and alone: one loss for each, the same each time, and nothing left behind."""
        import torch

        from sgdsde.models._foreign_torch import Worker, working

        worker = Worker(self.module)
        worker.theta[:] = self.theta0
        n = min(TRIED, X.shape[0])
        before = {name: b.clone() for name, b in worker.module.named_buffers()}
        # Two samples that are the same would hide what reduces over the batch; their order does not matter.
        x, y = (torch.from_numpy(a[np.linspace(0, len(a) - 1, n).astype(int)]) for a in (X, Y))

        def losses(at: slice) -> np.ndarray:
            count = at.stop - at.start
            found = self.loss_function(worker.module(x[at]), y[at])
            _check_losses(found, count)
            return found.detach().numpy().copy()

        with working(self.threads):
            together, again = losses(slice(0, n)), losses(slice(0, n))
            changed = [name for name, b in worker.module.named_buffers() if not torch.equal(b, before[name])]
            if changed:
                raise ModelError(
                    f"module must not change its buffers, but {changed[0]} is another after a call: running statistics "
                    "belong to no θ; module.eval() stops them"
                )
            if not np.array_equal(together, again, equal_nan=True):
                raise ModelError("module must give the same losses each time, but it is random (dropout? .eval())")
            if not np.isfinite(together).all():
                raise ModelError(f"loss is not finite at the module's own parameters, got {together.tolist()}")
            alone = np.concatenate([losses(slice(i, i + 1)) for i in range(n)])
            if not relative_close(alone, together, SAME):
                i = int(np.argmax(np.abs(alone - together)))
                raise ModelError(
                    f"a sample's loss must not depend on the other samples of its batch, but sample {i} has "
                    f"{together[i]:g} among {n} and {alone[i]:g} alone: does the loss reduce over the batch, or the "
                    "module normalise over it?"
                )


def _check_module(module: torch.nn.Module) -> None:
    """What can be said without data against a module, with the reason."""
    import torch
    from torch.nn.modules.batchnorm import _BatchNorm
    from torch.nn.modules.dropout import _DropoutNd

    for name, part in module.named_modules():
        label = f"{name or 'module'} ({type(part).__name__})"
        if isinstance(part, _BatchNorm) and (part.training or part.running_mean is None):
            raise ModelError(
                f"{label} uses the statistics of the batch: a sample's loss then depends on the others, and there is "
                "no gradient of one sample. module.eval() uses the running statistics, GroupNorm and LayerNorm none"
            )
        if part.training and ((isinstance(part, _DropoutNd) and part.p > 0) or _own_dropout(part) > 0):
            raise ModelError(
                f"{label} drops units at random: the loss of a sample is then no function of θ. module.eval()"
            )
    for name, p in module.named_parameters():
        if isinstance(p, torch.nn.parameter.UninitializedParameter):
            raise ModelError(f"parameter {name} has no shape yet: call the module once before from_torch")
        if p.is_complex():
            raise ModelError(f"parameter {name} is complex, and θ is real: use torch.view_as_real for a parameter")
        if p.device.type != "cpu":
            raise ModelError(f"parameter {name} must be on the CPU, where paths run, got {p.device}: module.cpu()")
        if p.requires_grad and p.layout != torch.strided:
            raise ModelError(f"parameter {name} must be dense, got layout {p.layout}")
    spans = sorted((p.data_ptr(), p.data_ptr() + p.numel() * p.element_size(), n) for n, p in module.named_parameters())
    for (_, end, one), (start, _, other) in pairwise(spans):
        if start < end:
            raise ModelError(
                f"parameters {one} and {other} share memory but are two, so θ cannot hold both: make them one "
                "Parameter (module.b = module.a), which counts once"
            )


def _own_dropout(part: Any) -> float:
    """The dropout inside attention and recurrent layers."""
    value = getattr(part, "dropout", 0.0)
    return float(value) if isinstance(value, (int, float)) else 0.0


def _check_losses(found: Any, n: int) -> None:
    import torch

    if not isinstance(found, torch.Tensor):
        raise ModelError(f"loss must return a tensor of shape (N,), got {_check.show(found)}")
    if found.ndim == 0:
        raise ModelError(
            "loss must return one number for each sample, shape (N,), got a single number: it must not reduce over the "
            "batch (reduction='none')"
        )
    if tuple(found.shape) != (n,):
        hint = "; sum over the outputs, as in ((o - y) ** 2).sum(1)" if found.ndim > 1 and found.shape[0] == n else ""
        raise ShapeError(
            f"loss must return one number for each sample, shape ({n},) for {n}, got {tuple(found.shape)}{hint}"
        )
    if found.dtype != torch.float64:
        raise ModelError(f"loss must be computed in double precision, got {found.dtype}")
    if not found.requires_grad:
        raise ModelError("loss must depend on the module's parameters, got a tensor without a gradient")


def _double(module: torch.nn.Module) -> torch.nn.Module:
    """A copy in double precision, without the gradients that the module carries."""
    import copy

    copied = copy.deepcopy(module).double()
    copied.zero_grad(set_to_none=True)
    return copied
