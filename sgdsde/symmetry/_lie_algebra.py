"""What Lie algebra some generators span: brackets, centre, derived algebra, radical, Killing form, and its name.

[J_A, J_B](θ) is A J_B(θ) - B J_A(θ), with linear parts A, B; brackets are expanded in the basis from their values at
probe states, so that no matrix is formed. Simple ideals are named by their dimension and the signature of the Killing
form: sl(n, R) has n(n + 1)/2 positive and n(n - 1)/2 negative directions less one positive, so(p, q) has pq positive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sgdsde.algebra import Affine, Generator, linear_and_shift
from sgdsde.symmetry._lie_states import null_space

__all__ = ["Structure", "closure", "structure"]

SMALL = 1e-7
MOST_GENERATORS, MOST_SPLIT = 120, 32


class Structure(NamedTuple):
    """Of a Lie algebra of n generators."""

    name: str
    """Such as "gl(2)", "so(3)", "abelian(4)"; "not closed" when brackets lead out of the span."""
    closed: bool
    centre: int
    """Dimension of what commutes with all."""
    derived: int
    """Dimension of the span of all brackets."""
    radical: int
    """Dimension of the largest solvable ideal."""
    killing: tuple[int, int, int]
    """Signature of the Killing form: how many positive, negative and zero directions."""
    constants: np.ndarray
    """(n, n, n): [A_i, A_j] = Σ_k constants[i, j, k] A_k."""


def structure(generators: Sequence[Generator | Affine], probes: np.ndarray, remove: Any) -> Structure:
    """The structure of the algebra on θ without its inert part (`remove` takes it off) at the probe states."""
    n = len(generators)
    if n == 0:
        return Structure("none", True, 0, 0, 0, (0, 0, 0), np.zeros((0, 0, 0)))
    if n > MOST_GENERATORS:
        return Structure("not classified", True, -1, -1, -1, (-1, -1, -1), np.zeros((0, 0, 0)))
    f, off = _brackets(generators, probes, remove)
    if off > 1e-6:
        return Structure("not closed", False, -1, -1, -1, (-1, -1, -1), f)
    size = np.abs(f).max(initial=0.0)
    if size < SMALL:
        kind = "so(2)" if n == 1 and generators[0].is_antisymmetric else f"abelian({n})"
        return Structure(kind, True, n, 0, n, (0, 0, n), np.zeros_like(f))
    unit = f / size  # below, what is small against 1 is zero
    derived = _span(unit.reshape(-1, n))
    killing = np.einsum("ikl,jlk->ij", unit, unit, optimize=True)
    radical = _null(derived @ killing)  # x with K(x, [g, g]) = 0
    centre = _null(unit.transpose(1, 2, 0).reshape(-1, n))
    return Structure(_name(unit, radical), True, len(centre), len(derived), len(radical), _signature(killing), f)


def _brackets(generators: Sequence[Any], probes: np.ndarray, remove: Any) -> tuple[np.ndarray, float]:
    """Structure constants in the basis, and how far brackets lead out of the span, relative to their size."""
    n = len(generators)
    j = np.array([a.apply(probes) for a in generators])
    acts = remove(j).reshape(n, -1)
    inverse = np.linalg.pinv(acts)
    f, off, size = np.zeros((n, n, n)), 0.0, float(np.linalg.norm(acts, axis=1).max())
    for i, a in enumerate(generators):
        there = linear_and_shift(a)[0].apply(j)
        back = np.array([linear_and_shift(b)[0].apply(j[i]) for b in generators])
        bracket = remove(there - back).reshape(n, -1)
        f[i] = bracket @ inverse
        off = max(off, float(np.linalg.norm(bracket - f[i] @ acts, axis=1).max()) / size)
    f[np.abs(f) < 1e-9 * max(1.0, np.abs(f).max())] = 0.0
    return f, off


def closure(constants: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Orthonormal rows of the smallest subalgebra that holds the vectors (k, n) of coordinates."""
    space, size = _span(vectors), float(np.abs(constants).max(initial=0.0))
    while True:
        brackets = np.einsum("ai,bj,ijk->abk", space, space, constants, optimize=True).reshape(-1, constants.shape[0])
        brackets = brackets / size if size > 0.0 else brackets
        wider = _span(np.vstack([space, brackets]))
        if len(wider) == len(space):
            return space
        space = wider


def _span(rows: np.ndarray) -> np.ndarray:
    """Orthonormal rows of the span."""
    if not len(rows):
        return rows
    _, s, vt = np.linalg.svd(rows, full_matrices=False)
    return vt[s > SMALL * max(float(s.max(initial=0.0)), 1.0)]


def _null(rows: np.ndarray) -> np.ndarray:
    """Orthonormal rows v with rows·v = 0."""
    held = _span(rows)
    return null_space(held, SMALL)[0] if len(held) else np.eye(rows.shape[1])


def _signature(form: np.ndarray) -> tuple[int, int, int]:
    mu = np.linalg.eigvalsh((form + form.T) / 2)
    cut = SMALL * max(float(np.abs(mu).max(initial=0.0)), 1.0)
    return int((mu > cut).sum()), int((mu < -cut).sum()), int((np.abs(mu) <= cut).sum())


def _name(f: np.ndarray, radical: np.ndarray) -> str:
    """Simple ideals of the algebra without its radical, gl(n) where an sl(n) can be paired with a scalar, the rest."""
    rest = null_space(radical, SMALL)[0] if len(radical) else np.eye(len(f))
    levi = np.einsum("ai,bj,ijk,ck->abc", rest, rest, f, rest, optimize=True)
    names = Counter(_simple(one) for one in _ideals(levi)) if len(levi) else Counter()
    moved = _span(np.einsum("ijk,rj->irk", f, radical).reshape(-1, len(f)))
    scalars = len(radical) - len(moved)
    out: list[str] = []
    for name, count in sorted(names.items()):
        for _ in range(count):
            paired = scalars > 0 and name.startswith("sl(")
            scalars -= paired
            out.append("gl(" + name[3:].partition(")")[0] + ")" if paired else name)
    if scalars > 0 and out:
        out.append(f"abelian({scalars})")
    text = " + ".join(out)
    whole = {"sl(2) + sl(2)": "so(2,2)", "so(3) + so(3)": "so(4)"}.get(text)
    text += f" = {whole}" if whole else ""
    if not len(moved):
        return text
    if not out:
        return f"solvable({len(f)})"
    inner = np.abs(np.einsum("ai,bj,ijk->abk", moved, moved, f, optimize=True)).max(initial=0.0)
    text = f"({text})" if " " in text else text
    return f"{text} ⋉ {'abelian' if inner < SMALL else 'nilpotent'}({len(moved)})"


def _ideals(f: np.ndarray) -> list[np.ndarray]:
    """Structure constants of the simple ideals of a semisimple algebra.

    The matrices that commute with the adjoint action are one number on each ideal; those of two elements at random
    generate the algebra, and the eigenspaces of one such matrix at random are the ideals.
    """
    n = len(f)
    if n > MOST_SPLIT:
        return [f]
    random = np.random.default_rng(0)
    eye, normal = np.eye(n), np.zeros((n * n, n * n))
    for x in random.standard_normal((2, n)):
        ad = np.einsum("i,ijk->kj", x, f)
        commute = np.kron(eye, ad) - np.kron(ad.T, eye)
        normal += commute.T @ commute
    mu, vectors = np.linalg.eigh(normal)
    kept = vectors[:, mu < 1e-9 * mu.max()]
    if kept.shape[1] == 1:
        return [f]
    one = (kept @ random.standard_normal(kept.shape[1])).reshape(n, n).T
    values, spaces = np.linalg.eig(one)
    order = np.argsort(values.real)
    cuts = np.flatnonzero(np.diff(values.real[order]) > 1e-5 * np.abs(values).max()) + 1
    found = []
    for group in np.split(order, cuts):
        basis = _span(np.vstack([spaces[:, group].real.T, spaces[:, group].imag.T]))
        found.append(np.einsum("ai,bj,ijk,ck->abc", basis, basis, f, basis, optimize=True))
    return found


def _simple(f: np.ndarray) -> str:
    """The name of a simple algebra."""
    n = len(f)
    plus, minus, _ = _signature(np.einsum("ikl,jlk->ij", f, f, optimize=True))
    names = []
    for p in range(2, 16):
        if (n, plus, minus) == (p * p - 1, p * (p + 1) // 2 - 1, p * (p - 1) // 2):
            names.append(f"sl({p})")
    for p in range(1, 16):
        for q in range(0, min(p, 15 - p) + 1):
            m = p + q
            if m > 2 and m != 4 and (p, q) != (2, 1) and (n, plus) == (m * (m - 1) // 2, p * q):
                names.append(f"so({p},{q})" if q else f"so({p})")
    return " = ".join(names) or f"simple({n}: {plus}+, {minus}-)"
