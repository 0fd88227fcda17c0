"""Compiled quadratic forms: θᵀAθ + 2bᵀθ for a block of paths, with A in its structure (imported when observed)."""

from __future__ import annotations

import numpy as np

from sgdsde._abi import OBSERVE
from sgdsde._jit import inline, kernel
from sgdsde.algebra import Affine, Dense, Diagonal, Generator, Sandwich, Scattered, linear_and_shift

__all__ = ["encode", "observe", "quadratic"]

DIAGONAL, LEFT, RIGHT, DENSE, LINEAR = 0, 1, 2, 3, 4


def encode(generator: Generator | Affine) -> np.ndarray:
    """The numbers of A as a kernel's `p`: how many blocks, then (kind, start, r, c, numbers) for each; 2b as one."""
    out: list[np.ndarray] = []
    count = 0
    linear, shift = linear_and_shift(generator)
    if shift is not None:
        out, count = [np.array([LINEAR, 0, 1, linear.dim], dtype=np.float64), 2.0 * shift], 1
    for start, block in linear.parts:
        if isinstance(block, Diagonal):
            pieces = [(DIAGONAL, 1, block.size, block.vector)]
        elif isinstance(block, Sandwich):
            pieces = [
                (kind, *block.shape, m) for kind, m in ((LEFT, block.left), (RIGHT, block.right)) if m is not None
            ]
        elif isinstance(block, (Dense, Scattered)):
            pieces = [(DENSE, block.size, block.size, block.matrix)]
        else:
            raise TypeError(f"no compiled form for {block!r}")
        for kind, r, c, numbers in pieces:
            out += [np.array([kind, start, r, c], dtype=np.float64), np.ravel(numbers)]
            count += 1
    return np.concatenate([np.array([float(count)]), *out])


@inline
def quadratic(out, x, p):
    """out[b] = x[:, b]ᵀ A x[:, b] (+ 2bᵀx[:, b]) with A as written by `encode`."""
    n = x.shape[1]
    for b in range(n):
        out[b] = 0.0
    at = 1
    for _ in range(int(p[0])):
        kind, start, r, c = int(p[at]), int(p[at + 1]), int(p[at + 2]), int(p[at + 3])
        at += 4
        if kind == DIAGONAL:
            for k in range(c):
                a = p[at + k]
                for b in range(n):
                    out[b] += a * x[start + k, b] * x[start + k, b]
            at += c
        elif kind == LEFT:  # Σ L_ik W_ij W_kj
            for i in range(r):
                for k in range(r):
                    a = p[at + i * r + k]
                    if a != 0.0:
                        for j in range(c):
                            for b in range(n):
                                out[b] += a * x[start + i * c + j, b] * x[start + k * c + j, b]
            at += r * r
        elif kind == RIGHT:  # Σ R_kj W_ik W_ij
            for i in range(r):
                for k in range(c):
                    for j in range(c):
                        a = p[at + k * c + j]
                        for b in range(n):
                            out[b] += a * x[start + i * c + k, b] * x[start + i * c + j, b]
            at += c * c
        elif kind == LINEAR:
            for k in range(c):
                a = p[at + k]
                if a != 0.0:
                    for b in range(n):
                        out[b] += a * x[start + k, b]
            at += c
        else:
            for i in range(r):
                for j in range(r):
                    a = p[at + i * r + j]
                    if a != 0.0:
                        for b in range(n):
                            out[b] += a * x[start + i, b] * x[start + j, b]
            at += r * r


@kernel(OBSERVE)
def observe(out, x, t, p, data, work):
    quadratic(out[0], x, p)
