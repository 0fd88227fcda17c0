"""The equation of an implicit step, u = F(u), column by column and without derivatives of the user's functions.

    F(u) = a(t, y) h + b(t, y) v [− h c(t, y)],   y = base + θ u

θ = ½ and base = Y for the midpoint rule; θ = 1, v = 0 and base = Y + b ΔW for drift-implicit Euler. First the
accelerated fixed point (`_fixed_point`), which costs one evaluation an iteration; the columns that it does not take to
the end, because the equation is stiff, go on with Newton and a Jacobian by differences (`_newton`), up to d = DENSE.
Each column is frozen at its own convergence, so its bits do not depend on the others. A column whose path has been
stopped is not iterated: it would keep the others waiting at every step.
"""

from __future__ import annotations

from numba import types

from sgdsde._abi import BLOCK, CORRECTION, INCREMENT, INTS, VECTOR
from sgdsde._errors import NOT_CONVERGED, OK
from sgdsde._jit import kernel
from sgdsde._views import matrix, rest, vector
from sgdsde.schemes._fixed_point import accelerate
from sgdsde.schemes._fixed_point import size as accelerate_size
from sgdsde.schemes._newton import DENSE, newton
from sgdsde.schemes._newton import size as newton_size
from sgdsde.schemes._residual import COLUMNS, DONE

__all__ = ["implicit_work", "solve"]

SOLVE = types.void(
    types.FunctionType(INCREMENT),
    types.FunctionType(CORRECTION),
    BLOCK,  # out (d, B): F(u) at the solution, zero in a column that failed
    BLOCK,  # base (d, B)
    types.float64,  # θ
    VECTOR,  # t (B,), the time of the coefficients
    VECTOR,  # h (B,)
    BLOCK,  # v (m, B)
    types.boolean,  # whether h·c is subtracted
    INTS,  # status (2B,): only columns that are OK are solved; one that fails gets NOT_CONVERGED
    VECTOR,  # work
    VECTOR,  # p
    VECTOR,  # data
)


def implicit_work(d: int) -> int:
    """Doubles of scratch a path, those of the increment apart."""
    return 5 * d + COLUMNS + max(accelerate_size(d), newton_size(d))


@kernel(SOLVE)
def solve(increment, correction, out, base, theta, t, h, v, with_correction, status, work, p, data):
    d, n = base.shape
    y, c, u = matrix(work, 0, d, n), matrix(work, d * n, d, n), matrix(work, 2 * d * n, d, n)
    f, u_best = matrix(work, 3 * d * n, d, n), matrix(work, 4 * d * n, d, n)
    columns = matrix(work, 5 * d * n, COLUMNS, n)
    tail = rest(work, (5 * d + COLUMNS) * n)
    pending = accelerate(
        increment, correction, out, base, theta, t, h, v, with_correction, p, data, y, c, u, f, u_best, columns, status,
        tail,
    )  # fmt: skip
    if pending and d <= DENSE:
        newton(
            increment,
            correction,
            out,
            base,
            theta,
            t,
            h,
            v,
            with_correction,
            p,
            data,
            y,
            c,
            u,
            f,
            u_best,
            columns,
            tail,
        )
    state = vector(work, 5 * d * n, n)
    for b in range(n):
        if state[b] != DONE:
            if status[b] == OK:
                status[b] = NOT_CONVERGED
            for i in range(d):
                out[i, b] = 0.0
