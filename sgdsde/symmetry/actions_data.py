"""A non-linear action that depends on one input: it leaves the output there alone, whatever the activation and g."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sgdsde import _check
from sgdsde._errors import ArgumentError
from sgdsde.symmetry.actions_layers import hidden_layer, units_of
from sgdsde.symmetry.actions_rotation import inverse, radial_rotation

__all__ = ["DataAction"]


def _logistic(z: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    return expit(z)  # small where z is far below zero, and not nothing


def _gelu(z: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return z * ndtr(z)


ACTIVATIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "identity": (lambda z: z, 1.0),
    "tanh": (np.tanh, 1.0),
    "sigmoid": (_logistic, 0.25),
    "relu": (lambda z: np.maximum(z, 0.0), 1.0),
    "gelu": (_gelu, 1.1289042),  # at z = √2: Φ(√2) + √2 p(√2)
}
"""σ, and its Lipschitz constant."""


class DataAction:
    """(U, V) ↦ (U R_{σ(Vx)} R_{σ(gVx)}⁻¹, gV) for one input x: Uσ(Vx) is kept for every invertible g.

    In several layers, a_l = σ(z_l) and z_l = W_l a_{l-1} + b_l at the input x, elements g_l act at once,

        W_l' = g_l W_l R_{a_{l-1}} R_{a'_{l-1}}⁻¹,   b_l' = g_l b_l,   a'_l = σ(g_l z_l),

    with g_D = 1 and a'_0 = a_0 = x. Source: Zhao et al. 2023 (arXiv 2210.17216), section on non-linear symmetries;
    R_z is `radial_rotation`. It is an action: g_1·(g_2·θ) = (g_1g_2)·θ, by the cocycle condition.

    **It does not generate a charge of SGD.** The output is kept at x alone; the gradients of other samples are not
    orthogonal to it (`check_tangency` names one), so the mean loss moves already to first order, and noise with it.

    Parameters
    ----------
    model : Model
        With matrices W1, …, W_D, D >= 2, biases or not.
    x : (n,) array_like
        The input. σ(z_l) may not be zero there (ReLU: some unit is on).
    activation : str or callable, optional
        Default the model's; a name, or σ of whole arrays (give `lipschitz` then).
    lipschitz : float, optional
        Of a σ that is a function.

    Examples
    --------
    >>> from sgdsde.models import MLP
    >>> model = MLP([2, 2, 1], "tanh")
    >>> action, theta = DataAction(model, [1.0, -0.5]), model.init(0)
    >>> moved = action.act([[2.0, 1.0], [0.0, 0.5]], theta)
    >>> bool(np.allclose(action.output(moved), action.output(theta), rtol=0, atol=1e-14))
    True
    >>> bool(np.allclose(action.output(moved, [1.0, 0.0]), action.output(theta, [1.0, 0.0])))
    False
    """

    def __init__(self, model: Any, x: Any, activation: Any = None, lipschitz: float | None = None) -> None:
        shapes = getattr(model, "shapes", {})
        self.model, self.depth = model, max(2, sum(name.startswith("W") for name in shapes))
        for layer in range(1, self.depth):
            hidden_layer(model, layer)
        self.x = _check.array("x", x, (shapes["W1"][1],))
        known = units_of(model) if activation is None else activation
        if callable(known):
            self.sigma: Callable[[np.ndarray], Any] = known
            self.lipschitz = None if lipschitz is None else _check.positive("lipschitz", lipschitz)
        elif known == "leaky_relu":
            slope = float(model.slope)
            self.sigma, self.lipschitz = lambda z: np.where(z < 0, slope * z, z), max(1.0, slope)
        else:
            if known not in ACTIVATIONS:
                raise ArgumentError(
                    f"activation must be a function or one of {', '.join(map(repr, ACTIVATIONS))}, got {known!r}"
                )
            self.sigma, self.lipschitz = ACTIVATIONS[known]

    def __repr__(self) -> str:
        return f"DataAction({self.model!r}, x={_check.show(self.x.tolist())})"

    def output(self, theta: Any, x: Any = None) -> np.ndarray:
        """W_Dσ(… σ(W_1x + b_1) …) + b_D for one θ; at the action's x without another."""
        z, _ = self._forward(theta, self.x if x is None else _check.array("x", x, self.x.shape))
        return z[-1]

    def act(self, g: Any, theta: Any) -> np.ndarray:
        """g·θ for one θ (d,).

        Parameters
        ----------
        g : (h, h) array_like, or mapping layer -> (h_l, h_l)
            Of the first hidden layer, or of several; 1 at the others.
        theta : (d,) array_like

        Raises
        ------
        ArgumentError
            g is not invertible, or σ is zero at z_l or g_lz_l.
        """
        elements, (z, a) = self._elements(g), self._forward(theta, self.x)
        arrays = dict(self.model.unflatten(_check.array("theta", theta, (self.model.dim,))))
        back: np.ndarray | None = None
        for layer in range(1, self.depth + 1):
            name = f"W{layer}"
            if back is not None:
                arrays[name] = arrays[name] @ back
            back = None
            if layer in elements:
                e = elements[layer]
                arrays[name] = e @ arrays[name]
                if f"b{layer}" in arrays:
                    arrays[f"b{layer}"] = e @ arrays[f"b{layer}"]
                after = np.asarray(self.sigma(e @ z[layer - 1]))
                for what, value in (("z", a[layer]), ("gz", after)):
                    if not value.any():
                        raise ArgumentError(f"g must keep σ({what}) away from zero at layer {layer}: no R there")
                back = radial_rotation(a[layer]) @ inverse(radial_rotation(after))
        return self.model.flatten(**arrays)

    def infinitesimal(self, M: Any, theta: Any, step: float = 1e-5) -> np.ndarray:
        """d/dλ e^{λM}·θ at λ = 0, (d,), by a central difference: a J that is orthogonal to the sample at x alone."""
        from scipy.linalg import expm

        step = _check.positive("step", step)
        many = M if isinstance(M, Mapping) else {1: M}
        ahead, behind = (self.act({k: expm(s * np.asarray(m)) for k, m in many.items()}, theta) for s in (step, -step))
        return (ahead - behind) / (2.0 * step)

    def lipschitz_bound(self, g: Any, theta: Any) -> float:
        """How fast the moved network can change with its input: Lip(F_{g·θ}) <= this.

            η_σ^{D-1} Π_l ‖W_l‖ ‖g_l‖ |a_l|/|a'_l|

        over the layers, g_D = 1, in spectral norms, η_σ the Lipschitz constant of σ (¼ for the sigmoid): each
        ‖R_aR_{a'}⁻¹‖ is |a|/|a'|. With one hidden layer that is η_σ‖U‖‖V‖‖g‖|σ(Vx)|/|σ(gVx)|.
        """
        if self.lipschitz is None:
            raise ArgumentError("lipschitz must be given for an activation that is a function")
        elements, (z, a) = self._elements(g), self._forward(theta, self.x)
        arrays = self.model.unflatten(theta)
        bound = self.lipschitz ** (self.depth - 1)
        for layer in range(1, self.depth + 1):
            bound *= np.linalg.norm(arrays[f"W{layer}"], 2)
            if layer in elements:
                e = elements[layer]
                after = np.asarray(self.sigma(e @ z[layer - 1]))
                bound *= np.linalg.norm(e, 2) * np.linalg.norm(a[layer]) / np.linalg.norm(after)
        return float(bound)

    def _elements(self, g: Any) -> dict[int, np.ndarray]:
        many = g if isinstance(g, Mapping) else {1: g}
        found = {}
        for layer, value in many.items():
            layer = _check.count("layer", layer, most=self.depth - 1)
            h = self.model.shapes[f"W{layer}"][0]
            e = _check.array(f"g[{layer}]", value, (h, h))
            if np.linalg.cond(e) > 1e15:
                raise ArgumentError(f"g[{layer}] must be invertible")
            found[layer] = e
        return found

    def _forward(self, theta: Any, x: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """z_1..z_D, and a_0..a_{D-1} (a_l at index l)."""
        arrays = self.model.unflatten(_check.array("theta", theta, (self.model.dim,)))
        z, a = [], [x]
        for layer in range(1, self.depth + 1):
            value = arrays[f"W{layer}"] @ a[-1]
            if f"b{layer}" in arrays:
                value = value + arrays[f"b{layer}"]
            z.append(value)
            if layer < self.depth:
                a.append(np.asarray(self.sigma(value), dtype=np.float64))
        return z, a
