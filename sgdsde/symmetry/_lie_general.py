"""All affine generators of a problem of moderate size, from the null spaces of its per-sample gradients.

J(θ) = Aθ + b is a symmetry when J(θ) is orthogonal to every g_i(θ). At d + 1 states, the corners of a regular simplex,
J(θ_j) = N_j c_j with N_j the null space of the gradients there, and [A, b] is linear in all c_j: Σ_j dim N_j unknowns
in place of d(d + 1), in coordinates in which the norm of c is that of [A, b]. Each further state gives one condition
for every direction of its gradients. States are added until the number of solutions stops changing twice.
"""

from __future__ import annotations

import numpy as np

from sgdsde._errors import TooLargeError
from sgdsde.symmetry._lie_states import Gap, Inert, States, Triangle

__all__ = ["MOST_UNKNOWN", "general"]

MOST_UNKNOWN = 6000


def general(states: States, inert: Inert, tolerance: float, most: int) -> tuple[np.ndarray, Gap] | None:
    """All [A, b] as (k, d, d + 1), orthonormal in the norm of [α A, β b], on θ without its inert part.

    Returns them and the gap; None when there are more than `most` unknowns.
    """
    p = inert.rest()
    n = len(p)
    if n == 0:
        return np.zeros((0, states.dim, states.dim + 1)), Gap(0.0, np.inf)
    corners = _simplex(n, states.random)
    radius = states.size * np.sqrt(n)
    alpha, beta = radius * np.sqrt((n + 1) / n), np.sqrt(n + 1.0)
    v = inert.basis()

    def directions(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the gradients span at the state z, and what they leave, in rows."""
        still = states.size * states.random.standard_normal(len(v)) @ v  # the loss does not see it
        rows = states.triangle(z @ p + still) @ p.T
        _, s, vt = np.linalg.svd(rows, full_matrices=True)
        rank = int(np.sum(s > 10 * tolerance * s.max(initial=0.0)))
        return vt[:rank], vt[rank:]

    free, unknown = [], 0
    for j in range(n + 1):
        free.append(directions(radius * np.sqrt((n + 1) / n) * corners[:-1, j])[1])
        unknown += len(free[-1])
        if unknown > most:
            return None
    triangle = Triangle(unknown)
    same, before = 0, -1
    while same < 2 and unknown:
        rows = 0
        wanted = unknown * (1.0 if before < 0 else 0.25) + 1
        while rows < wanted:
            z = states.draw() @ p.T
            seen, _ = directions(z)
            w = corners.T @ np.append(z / alpha, 1.0 / beta)
            triangle.add(np.hstack([w[j] * (seen @ free[j].T) for j in range(n + 1)]))
            rows += max(len(seen), 1)
        count = triangle.zeros(tolerance)
        same = same + 1 if count == before else 0
        before = count
        if count == 0:
            break
    found, gap = triangle.null_space(tolerance)
    out = np.zeros((len(found), states.dim, states.dim + 1))
    ends = np.cumsum([0, *(len(f) for f in free)])
    for k, c in enumerate(found):
        values = np.array([free[j].T @ c[ends[j] : ends[j + 1]] for j in range(n + 1)])  # J at the corners, in rows
        ab = values.T @ corners.T
        out[k, :, :-1], out[k, :, -1] = p.T @ (ab[:, :-1] / alpha) @ p, p.T @ (ab[:, -1] / beta)
    return out, gap


def _simplex(n: int, random: np.random.Generator) -> np.ndarray:
    """An orthogonal (n + 1, n + 1) matrix, columns the corners of a simplex turned at random, last row constant."""
    start = np.hstack([np.ones((n + 1, 1)), random.standard_normal((n + 1, n))])
    q = np.linalg.qr(start)[0]
    q[:, 0] = 1.0 / np.sqrt(n + 1.0)
    return np.ascontiguousarray(np.roll(q, -1, axis=1).T)


def refuse(unknown: int) -> TooLargeError:
    """What to say of a search that is too large."""
    return TooLargeError(
        f"search='general' has more than {unknown} unknowns for this model; use search='structured', or more samples "
        "(each direction of the gradients at a state leaves fewer)"
    )
