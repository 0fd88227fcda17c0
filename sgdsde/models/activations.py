"""Activations a = φ(z) of a network, over whole arrays, and what the passes need of φ' and φ''.

Where φ' is a function of a it is computed from a, and nothing is kept of z:

    identity    z                     φ' = 1
    tanh        tanh z                φ' = 1 - a²                 φ'' = -2aφ'
    sigmoid     1/(1 + e^{-z})        φ' = a(1 - a)               φ'' = (1 - 2a)φ'
    relu        max(z, 0)             φ' = 1 where a > 0, else 0
    leaky_relu  z, slope·z for z < 0  φ' = 1 where a > 0, else slope
    gelu        zΦ(z)                 φ' = Φ(z) + zp(z)           φ'' = (2 - z²)p(z), Φ and p the normal law

`gelu` is the exact one. It leaves φ' and φ'' in two arrays of its own, `slopes` and `bends`; for the others these may
be empty.
"""

from __future__ import annotations

import numba

from sgdsde._jit import OPTIONS
from sgdsde.models.elementary import logistic, normal_law, tanh

__all__ = ["GELU", "activate", "bend", "chain"]

IDENTITY, TANH, SIGMOID, RELU, LEAKY, GELU = range(6)

inline = numba.njit(**{**OPTIONS, "forceinline": True})


@inline
def activate(kind, slope, a, slopes, bends):
    """a = φ(a) in place, for a vector."""
    n = a.shape[0]
    if kind == TANH:
        for i in range(n):
            a[i] = tanh(a[i])
    elif kind == SIGMOID:
        for i in range(n):
            a[i] = logistic(a[i])
    elif kind == RELU:
        for i in range(n):
            a[i] = 0.0 if a[i] < 0.0 else a[i]
    elif kind == LEAKY:
        for i in range(n):
            a[i] = slope * a[i] if a[i] < 0.0 else a[i]
    elif kind == GELU:
        for i in range(n):
            z = a[i]
            below, density = normal_law(z)
            a[i] = z * below
            slopes[i] = below + z * density
            bends[i] = (2.0 - z * z) * density


@inline
def chain(kind, slope, a, e, slopes):
    """a becomes φ'·e, in place: one array that is written to and one that is read make a packed loop."""
    n = a.shape[0]
    if kind == TANH:
        for i in range(n):
            a[i] = e[i] * (1.0 - a[i] * a[i])
    elif kind == SIGMOID:
        for i in range(n):
            a[i] = e[i] * (a[i] * (1.0 - a[i]))
    elif kind == RELU:
        for i in range(n):
            a[i] = e[i] if a[i] > 0.0 else 0.0 * a[i]
    elif kind == LEAKY:
        for i in range(n):
            a[i] = e[i] if a[i] > 0.0 else slope * e[i]
    elif kind == GELU:
        for i in range(n):
            a[i] = e[i] * slopes[i]
    else:
        for i in range(n):
            a[i] = e[i]


@inline
def bend(kind, out, a, delta, bends):
    """out = φ''·e·out, from a, δ = φ'·e, and of gelu from `bends` = φ''·e."""
    n = a.shape[0]
    if kind == TANH:
        for i in range(n):
            out[i] *= -2.0 * a[i] * delta[i]
    elif kind == SIGMOID:
        for i in range(n):
            out[i] *= (1.0 - 2.0 * a[i]) * delta[i]
    elif kind == GELU:
        for i in range(n):
            out[i] *= bends[i]
    else:
        for i in range(n):
            out[i] = 0.0
