"""Ornstein-Uhlenbeck splitting: the linear drift and the additive noise exactly, half a kick by the rest on each side.

    Y₁ = K(Y),   Y₂ = e^A Y₁ + h φ₁(A) c + φ₁(A) G ΔW + 6[φ₁(A) − 2φ₂(A)] G H + S ξ,   Y' = K(Y₂),   A = Bh

Van Loan 1978; Buckwar, Samson, Tamborrini & Tubikanec 2022 (the Strang splitting). f(t, x) = Bx + c + g(t, x); K is
the explicit midpoint step of x' = g over h/2, with g taken at t before and at t + h after. H = ∫(½ − s/h)dW_s ~
N(0, h/12) and ξ ~ N(0, I_d) are independent of ΔW; φ₁, φ₂ and S are in `_ou_matrices`, with SSᵀ what ΔW and H leave of
the covariance ∫e^{Bs}GGᵀe^{Bᵀs}ds.

B and c are found at the start of the run by evaluating the drift. If it is Bx + c everywhere (checked at other states
and times) there are no kicks, and with a constant G the step is exact in law for any h: its only error is rounding.
Otherwise B is the Jacobian at (t0, y0), and the step is a splitting: weak order 2.0, and without noise order 2.
If G depends on time it is taken at t + h/2, without S.

Strong order 1.0, also where the law is exact: H and ξ are drawn apart from ΔW, as the conditional law wants it, so two
step lengths that share their ΔW do not share them. H belongs to the Brownian path, and a `Brownian` gives ΔW alone.

Cost: two increments (G ΔW and G H) and products with d × d matrices; with kicks, six increments. The matrices for dt
are made once; a shorter last step, a save between steps and steps of state-dependent length make theirs anew, some
hundred d³ operations each.

Not for: noise that depends on the state, and d above 32, which are refused; drifts that grow faster than linearly,
whose kicks are explicit (`implicit-euler`); Jacobians that change much along the path.
"""

from __future__ import annotations

import math

from sgdsde._abi import AUX, AUXILIARY, STEP
from sgdsde._jit import inline, kernel
from sgdsde._views import matrix, rest, vector, zeros
from sgdsde.random.normal import fill_normals
from sgdsde.schemes._ou_matrices import SCRATCH, ou_matrices
from sgdsde.schemes._ou_prepare import LARGEST, prepare
from sgdsde.schemes._scheme import Aux, Scheme

__all__ = ["SCHEME"]


@kernel(AUX)
def fill(aux, dW, h, path, step, key, p, data, work):
    """Rows: H_j ~ N(0, h/12) for every Brownian motion, then d standard normal numbers ξ."""
    rows = aux.shape[0]
    fill_normals(aux, step * rows, path, AUXILIARY, key)
    for b in range(aux.shape[1]):
        scale = math.sqrt(h[b] / 12.0)
        for j in range(dW.shape[0]):
            aux[j, b] *= scale


@inline
def _kick(increment, x, t, half, B, c, g, y, no_noise, p, data, work):
    """x + half·g(x + ½half·g(x)), g = f − Bx − c."""
    d, n = x.shape
    for stage in range(2):
        source = y if stage == 1 else x
        increment(g, source, t, half, no_noise, p, data, work)
        for i in range(d):
            for b in range(n):
                g[i, b] -= half[b] * c[i]
            for k in range(d):
                for b in range(n):
                    g[i, b] -= half[b] * B[i * d + k] * source[k, b]
        if stage == 0:
            for i in range(d):
                for b in range(n):
                    y[i, b] = x[i, b] + 0.5 * g[i, b]
    for i in range(d):
        for b in range(n):
            x[i, b] += g[i, b]


@inline
def _flow(x, y, gw, gh, xi, c, h, matrices, d, first, last):
    """Columns first .. last − 1, all of one h: y = the OU flow of x."""
    dd = d * d
    E, P1 = vector(matrices, 0, dd), vector(matrices, dd, dd)
    D, S = vector(matrices, 2 * dd, dd), vector(matrices, 3 * dd, dd)
    for i in range(d):
        for b in range(first, last):
            y[i, b] = 0.0
        for k in range(d):
            at = i * d + k
            for b in range(first, last):
                y[i, b] += E[at] * x[k, b] + P1[at] * (gw[k, b] + h[b] * c[k]) + D[at] * gh[k, b] + S[at] * xi[k, b]


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    d, n = x.shape
    m = dW.shape[0]
    dd = d * d
    at = data.shape[0] - (6 * dd + d + 2)  # what `prepare` made
    B, Q, c = vector(data, at, dd), vector(data, at + dd, dd), vector(data, at + 2 * dd, d)
    h_made, remainder = data[at + 2 * dd + d], data[at + 2 * dd + d + 1] != 0.0
    made = vector(data, at + 2 * dd + d + 2, 4 * dd)
    fresh, scratch = vector(work, 0, 4 * dd), vector(work, 4 * dd, SCRATCH * dd)
    at = (4 + SCRATCH) * dd
    y, gw, gh = matrix(work, at, d, n), matrix(work, at + d * n, d, n), matrix(work, at + 2 * d * n, d, n)
    at += 3 * d * n
    zeros(work, at, (m + 1) * n)
    no_noise, no_time = matrix(work, at, m, n), vector(work, at + m * n, n)
    at += (m + 1) * n
    half, time = vector(work, at, n), vector(work, at + n, n)
    tail = rest(work, at + 2 * n)
    H, xi = matrix(aux, 0, m, n), matrix(aux, m * n, d, n)
    for b in range(n):
        half[b] = 0.5 * h[b]
        time[b] = t[b] + half[b]
    if remainder:
        _kick(increment, x, t, half, B, c, gw, y, no_noise, p, data, tail)
    increment(gw, x, time, no_time, dW, p, data, tail)
    increment(gh, x, time, no_time, H, p, data, tail)
    first = 0
    while first < n:
        last = first + 1
        while last < n and h[last] == h[first]:
            last += 1
        if h[first] == h_made:
            _flow(x, y, gw, gh, xi, c, h, made, d, first, last)
        else:
            ou_matrices(fresh, B, Q, h[first], d, scratch)
            _flow(x, y, gw, gh, xi, c, h, fresh, d, first, last)
        first = last
    for i in range(d):
        for b in range(n):
            x[i, b] = y[i, b]
    if remainder:
        for b in range(n):
            time[b] = t[b] + h[b]
        _kick(increment, x, time, half, B, c, gw, y, no_noise, p, data, tail)


def _work(d: int, m: int) -> tuple[int, int]:
    return ((4 + SCRATCH) * min(d, LARGEST) ** 2, 3 * d + m + 3)


_ONLY = "the exact flow is that of noise which does not depend on the state; use 'implicit-euler' for a stiff drift"

SCHEME = Scheme(
    "ou-splitting",
    step,
    calculus=("ito", "stratonovich"),
    strong={"additive": 1.0},
    weak={"additive": 2.0},
    work=_work,
    aux=Aux(fill, rows=lambda d, m: m + d),
    prepare=prepare,
    evaluations="2; with a remainder 6",
    ode_order=2,
    reference="Van Loan 1978; Buckwar, Samson, Tamborrini & Tubikanec 2022, Appl. Numer. Math. 179, 191",
    summary="additive noise; exact in law at any step where the drift is linear",
    extra=dict.fromkeys(("scalar", "diagonal", "commutative", "general"), _ONLY),
)
