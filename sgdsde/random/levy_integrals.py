"""Iterated integrals of Brownian increments, from Python; and their coefficients drawn apart from their assembly.

`iterated_integrals` and `levy_area` stream through compiled code (`sgdsde.random.levy_kernels`). `draw_coefficients`
and `assemble_area` are the same numbers and the same formula written out in NumPy, one step at a time, to look inside.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sgdsde import _check
from sgdsde._abi import AUXILIARY
from sgdsde._errors import ArgumentError, ShapeError
from sgdsde.random.levy_kernels import AREA, ITO, STRATONOVICH, fill_integrals, integrals_work
from sgdsde.random.levy_methods import METHODS, SLOT_BITS, choose, trigamma
from sgdsde.random.stream import key_from, normals

__all__ = ["LevyCoefficients", "assemble_area", "draw_coefficients", "iterated_integrals", "levy_area", "levy_terms"]

MOST_STEPS = 1 << 38
PATHS_AT_ONCE = 64
AREAS_AT_ONCE = 1 << 14  # doubles that stay in the cache while the terms are added


def levy_terms(h: float, m: int, *, method: str | None = None, error: float | None = None) -> tuple[str, int]:
    """The approximation and the number of terms that reach an error at the least cost.

    Parameters
    ----------
    h : float
        Length of the step.
    m : int
        Number of Brownian motions.
    method : str, optional
        One of `sgdsde.random.levy_methods.METHODS`; None takes the one that needs the fewest normal numbers.
    error : float, optional
        Root mean square error of each integral; h^{3/2} by default, which strong order 1 needs.

    Returns
    -------
    (str, int)

    Examples
    --------
    >>> levy_terms(1e-2, 10), levy_terms(1e-1, 10), levy_terms(1e-2, 2, method="fourier")
    (('mrongowius-roessler', 3), ('milstein', 1), ('fourier', 16))
    """
    h, m = _check.positive("h", h), _check.count("m", m, most=4096)
    wanted = h * math.sqrt(h) if error is None else _check.positive("error", error)
    row, terms = choose(_row(method), h, m, wanted)
    name = list(METHODS)[row]
    least = METHODS[name].bound(h, m, terms)
    if least > wanted * (1 + 1e-9):
        raise ArgumentError(f"error must be at least {least:.2g} for h={h:g}, m={m} and {name!r}, got {wanted:.2g}")
    return name, int(terms)


def iterated_integrals(
    dW: Any,
    h: Any,
    *,
    rng: Any = None,
    calculus: str = "ito",
    method: str | None = None,
    error: float | None = None,
    path_index: Any = None,
    first_step: int = 0,
) -> np.ndarray:
    """Iterated integrals I_(i,j) = ∫₀ʰ ∫₀ˢ dW_i(u) dW_j(s) of steps whose increments are known; the first index is the
    inner, earlier one.

    Parameters
    ----------
    dW : (m,), (n_steps, m) or (n_paths, n_steps, m) array
        Increments.
    h : float or array that broadcasts against dW.shape[:-1]
        Lengths of the steps.
    rng : int, None, SeedSequence or Generator
        As in `solve`; with None, two calls with the same dW differ.
    calculus : {"ito", "stratonovich"}
        Stratonovich integrals are J_(i,j) = I_(i,j) + ½ h δ_ij.
    method : {"fourier", "milstein", "wiktorsson", "mrongowius-roessler"}, optional
        The approximation of the Lévy area; by default the cheapest for (h, m, error).
    error : float, optional
        Root mean square error of each integral, given dW; h^{3/2} by default, which strong order 1 needs.
    path_index : int or sequence of n_paths ints, optional
        Numbers of the paths, below 2**56; 0, 1, … by default.
    first_step : int
        Number of the first step.

    Returns
    -------
    (..., m, m) array
        I + Iᵀ = dW dWᵀ − h·1 to rounding, whatever the error.

    Raises
    ------
    ArgumentError, ShapeError

    Notes
    -----
    Random numbers have addresses (seed, path, step): any part of the steps and paths can be had alone, with the same
    bits, and a run with this seed that needs integrals has the same ones for the same dW. Cost of a step: 2 m p normal
    numbers and p m² operations, p from `levy_terms`; memory O(m²).

    An error is also missing variance where the method has no tail for pairs: 'fourier' and 'milstein' give areas whose
    variance is short of h²/4 by up to error² (h³), which orders of convergence do not see. The other two have the exact
    variance with any number of terms.

    References
    ----------
    P. E. Kloeden, E. Platen (1992), sections 5.8 and 10.3; M. Wiktorsson, Ann. Appl. Probab. 11 (2001) 470;
    J. Mrongowius, A. Rößler, Stoch. Anal. Appl. 40 (2022) 397; F. Kastner, A. Rößler, Numer. Algorithms 94 (2023) 25.

    Examples
    --------
    >>> import numpy as np
    >>> h, dW = 0.01, 0.1 * np.random.default_rng(0).standard_normal((5, 100, 3))
    >>> I = iterated_integrals(dW, h, rng=1)
    >>> I.shape, bool(np.allclose(I + I.swapaxes(-1, -2), dW[..., :, None] * dW[..., None, :] - h * np.eye(3)))
    ((5, 100, 3, 3), True)
    >>> bool(np.array_equal(iterated_integrals(dW[3, 40:], h, rng=1, path_index=3, first_step=40), I[3, 40:]))
    True
    """
    result = {"ito": ITO, "stratonovich": STRATONOVICH}[_check.choice("calculus", calculus, ("ito", "stratonovich"))]
    return _integrals(dW, h, rng, result, method, error, path_index, first_step)


def levy_area(
    dW: Any,
    h: Any,
    *,
    rng: Any = None,
    method: str | None = None,
    error: float | None = None,
    path_index: Any = None,
    first_step: int = 0,
) -> np.ndarray:
    """Lévy areas A_ij = ½ ∫ (W_i dW_j − W_j dW_i) of steps whose increments are known, W starting at 0 in each step.

    The antisymmetric part of `iterated_integrals`, which has the same arguments: I = ½ dW dWᵀ − ½ h·1 + A. E A² = h²/4,
    E[A_ij² | dW] = (h² + h (dW_i² + dW_j²))/12.

    Returns
    -------
    (..., m, m) array
        A = −Aᵀ to the bit.

    Examples
    --------
    >>> import numpy as np
    >>> A = levy_area(np.array([0.1, -0.2]), 0.01, rng=1)
    >>> bool((A == -A.T).all())
    True
    """
    return _integrals(dW, h, rng, AREA, method, error, path_index, first_step)


def _integrals(
    dW: Any, h: Any, rng: Any, result: int, method: Any, error: Any, path_index: Any, first_step: Any
) -> np.ndarray:
    increments = _check.array("dW", dW)
    if not 1 <= increments.ndim <= 3 or increments.shape[-1] == 0:
        raise ShapeError(f"dW must have shape (m,), (n_steps, m) or (n_paths, n_steps, m), got {increments.shape}")
    leading, m = increments.shape[:-1], increments.shape[-1]
    _check.count("m (the last axis of dW)", m, most=4096)
    lengths = _check.array("h", h)
    try:
        lengths = np.array(np.broadcast_to(lengths, leading))
    except ValueError:
        raise ShapeError(f"h must broadcast against dW.shape[:-1] = {leading}, got shape {lengths.shape}") from None
    if np.any(lengths <= 0):
        raise ArgumentError(f"h must be positive, got {lengths.min()}")
    cube = increments.reshape((1,) * (3 - increments.ndim) + increments.shape)
    steps = lengths.reshape(cube.shape[:-1])
    n_paths, n_steps = steps.shape
    first = _check.count("first_step", first_step, least=0, most=MOST_STEPS - n_steps)
    path = path_numbers("path_index", path_index, n_paths)
    row, wanted = _row(method), -1.0 if error is None else _check.positive("error", error)
    for extreme in (steps.min(), steps.max()) if steps.size else ():
        levy_terms(extreme, m, method=method, error=error)
    key = np.uint64(key_from(rng))
    out = np.empty((n_paths, n_steps, m, m))
    width = max(1, min(PATHS_AT_ONCE, AREAS_AT_ONCE // (m * m)))
    fixed, per_path = integrals_work(m)
    work, none = np.empty(fixed + per_path * width), np.empty((0, m, 0))
    for b in range(0, n_paths, width):
        part = slice(b, min(b + width, n_paths))
        v = np.ascontiguousarray(np.moveaxis(cube[part], 0, -1))
        found = np.empty((n_steps, m * m, v.shape[-1]))
        fill_integrals(
            found, v, none, np.ascontiguousarray(steps[part].T), path[part], first, key, row, wanted, result, work
        )
        out[part] = np.moveaxis(found, -1, 0).reshape(v.shape[-1], n_steps, m, m)
    return out.reshape(*leading, m, m)


def path_numbers(name: str, value: Any, n_paths: int) -> np.ndarray:
    """Numbers of paths (n_paths,) as the kernels take them."""
    if value is None:
        return np.arange(n_paths, dtype=np.uint64)
    whole = [value] if np.ndim(value) == 0 else list(value)
    if len(whole) != n_paths:
        raise ShapeError(f"{name} must hold one number for each of {n_paths} paths, got {len(whole)}")
    return np.array([_check.count(name, i, least=0, most=2**56 - 1) for i in whole], dtype=np.uint64)


def _row(method: Any) -> int:
    return -1 if method is None else list(METHODS).index(_check.choice("method", method, METHODS))


class LevyCoefficients(NamedTuple):
    """The normal numbers of one step: X, Y (terms, m) of the series, M (m,) and G (m (m−1)/2,) of the tails."""

    X: np.ndarray
    Y: np.ndarray
    M: np.ndarray
    G: np.ndarray


def draw_coefficients(rng: Any, m: int, terms: int, *, path: int = 0, step: int = 0) -> LevyCoefficients:
    """The numbers from which `iterated_integrals(rng=rng)` makes the area of step number `step` of a path.

    Fewer terms are the leading ones of more, and the tails' numbers are the same for any number of terms.

    Examples
    --------
    >>> long, short = (draw_coefficients(1, m=3, terms=p) for p in (8, 5))
    >>> bool((long.Y[:5] == short.Y).all())
    True
    """
    m = _check.count("m", m, most=4096)
    tail = m * (m + 1) // 2
    terms = _check.count("terms", terms, least=0, most=((1 << SLOT_BITS) - tail) // (2 * m))
    step = _check.count("step", step, least=0, most=MOST_STEPS - 1)
    z = normals(key_from(rng), path, AUXILIARY, step << SLOT_BITS, tail + 2 * m * terms)
    series = z[tail:].reshape(terms, 2, m)
    return LevyCoefficients(series[:, 0], series[:, 1], z[:m], z[m:tail])


def assemble_area(w: Any, coefficients: LevyCoefficients, method: str) -> np.ndarray:
    """The area A (m, m) of a unit step with increment w (m,), from given coefficients (`sgdsde.random.levy_methods`).

    A step of length h and increment dW has the area h·assemble_area(dW/√h, …).

    Examples
    --------
    >>> import numpy as np
    >>> A = assemble_area(np.array([1.0, -2.0]) / 0.1, draw_coefficients(1, 2, 3), "milstein")
    >>> bool(np.allclose(0.01 * A, levy_area([1.0, -2.0], 0.01, rng=1, method="milstein", error=0.0014)))
    True
    """
    traits = METHODS[_check.choice("method", method, METHODS)]
    w, (X, Y, M, G) = _check.array("w", w, (coefficients.M.size,)), coefficients
    k = np.arange(1, len(X) + 1)[:, None]
    rest = trigamma(len(X) + 1.0)
    half = np.zeros((w.size, w.size))
    half[np.triu_indices(w.size, 1)] = G
    G = np.sqrt(2 * rest) * (half - half.T)
    H = ((X / k).sum(axis=0) + traits.vector * np.sqrt(rest) * M) / (np.sqrt(2) * np.pi)
    spread = traits.spread * np.outer(G @ w, w) / (1 + np.sqrt(1 + w @ w))
    S = (Y / k).T @ X + 2 * np.pi * np.outer(H, w) + traits.pairs * G / 2 + spread
    return (S - S.T) / (2 * np.pi)
