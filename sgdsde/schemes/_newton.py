"""Newton's method with a Jacobian by forward differences and a line search: for stiff implicit steps, d up to DENSE."""

from __future__ import annotations

import math

from sgdsde._jit import inline
from sgdsde._views import matrix, rest, vector
from sgdsde.schemes._linear_solve import factorise, solve_factored
from sgdsde.schemes._residual import DONE, LEFT, LOOSE, OPEN, TIGHT, evaluate, measure

__all__ = ["DENSE", "newton", "size"]

DENSE = 128
"""Largest d for which d² numbers a path are kept and d evaluations a Jacobian spent."""
LIMIT = 100
"""Iterations, halved steps counted."""
SHORTEST = 2.0**-12
"""Of a Newton step, in the line search."""
DIFFERENCE = 2.0**-26


def size(d: int) -> int:
    return d * d + 4 * d if d <= DENSE else 0


@inline
def newton(
    increment, correction, out, base, theta, t, h, v, with_correction, p, data, y, c, u, f, u_best, columns, work
):  # fmt: skip
    """Go on from u_best, out = F(u_best) in the columns that are LEFT.

    A Jacobian serves as long as the residual falls to a tenth; its age is -1 where a new one is wanted.
    """
    d, n = base.shape
    jacobian, pivot = matrix(work, 0, n, d * d), matrix(work, d * d * n, n, d)
    step, delta = matrix(work, (d * d + d) * n, n, d), matrix(work, (d * d + 2 * d) * n, d, n)
    tail = rest(work, (d * d + 4 * d) * n)
    state, residual, scale, best = columns[0], columns[1], columns[2], columns[4]
    length, age, at_best = columns[5], columns[6], columns[8]
    for b in range(n):
        if state[b] == LEFT and best[b] < math.inf:
            state[b] = OPEN
            length[b], age[b] = 1.0, -1.0
    for _ in range(LIMIT):
        running, wanted = False, False
        for b in range(n):
            running = running or state[b] == OPEN
            wanted = wanted or (state[b] == OPEN and age[b] < 0.0)
        if not running:
            return
        measure(out, u_best, base, columns)
        if wanted:
            for i in range(d):
                for b in range(n):
                    at = abs(base[i, b] / theta + u_best[i, b])
                    delta[i, b] = DIFFERENCE * max(at, scale[b] * 0.001) + 1e-300
            for j in range(d):
                for i in range(d):
                    for b in range(n):
                        u[i, b] = u_best[i, b] + (delta[j, b] if i == j else 0.0)
                evaluate(increment, correction, f, u, base, theta, t, h, v, with_correction, p, data, y, c, tail)
                for b in range(n):
                    if state[b] == OPEN and age[b] < 0.0:
                        for i in range(d):
                            jacobian[b, i * d + j] = (f[i, b] - out[i, b]) / (u[j, b] - u_best[j, b])
                        jacobian[b, j * d + j] -= 1.0
            for b in range(n):
                if state[b] == OPEN and age[b] < 0.0:
                    age[b] = 0.0
                    if not factorise(vector(jacobian, b * d * d, d * d), vector(pivot, b * d, d)):
                        state[b] = LEFT
        for b in range(n):
            for i in range(d):
                u[i, b] = u_best[i, b]
            if state[b] != OPEN:
                continue
            s = vector(step, b * d, d)
            for i in range(d):
                s[i] = u_best[i, b] - out[i, b]
            solve_factored(vector(jacobian, b * d * d, d * d), vector(pivot, b * d, d), s)
            largest = 0.0
            for i in range(d):
                largest = max(largest, abs(s[i])) + 0.0 * s[i]
                u[i, b] += length[b] * s[i]
            if largest <= TIGHT * scale[b]:
                state[b] = DONE
                for i in range(d):
                    out[i, b] = u_best[i, b] + s[i]
        evaluate(increment, correction, f, u, base, theta, t, h, v, with_correction, p, data, y, c, tail)
        measure(f, u, base, columns)
        for b in range(n):
            if state[b] != OPEN:
                continue
            if residual[b] < (1.0 - 1e-4 * length[b]) * best[b]:
                age[b] = age[b] + 1.0 if residual[b] < 0.1 * best[b] else -1.0
                best[b], at_best[b], length[b] = residual[b], scale[b], 1.0
                for i in range(d):
                    u_best[i, b] = u[i, b]
                    out[i, b] = f[i, b]
                if residual[b] <= TIGHT * scale[b]:
                    state[b] = DONE
            elif age[b] > 0.0:
                age[b], length[b] = -1.0, 1.0
            elif length[b] > SHORTEST:
                length[b] *= 0.5
            else:
                state[b] = DONE if best[b] <= LOOSE * at_best[b] else LEFT
    for b in range(n):
        if state[b] == OPEN:
            state[b] = DONE if best[b] <= LOOSE * at_best[b] else LEFT
