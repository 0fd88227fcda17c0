"""Dense linear systems of one path, in scratch: LU with row pivots. No allocation, no exception."""

from __future__ import annotations

from sgdsde._jit import inline

__all__ = ["factorise", "solve_factored"]


@inline
def factorise(a, pivot):
    """LU of a, d² numbers in C order, in its place; pivot (d,) gets the row exchanges. True if a is regular."""
    d = pivot.shape[0]
    for k in range(d):
        row = k
        for i in range(k + 1, d):
            if abs(a[i * d + k]) > abs(a[row * d + k]):
                row = i
        pivot[k] = row
        largest = a[row * d + k]
        if not 0.0 < abs(largest) < 1e300:
            return False
        if row != k:
            for j in range(d):
                a[k * d + j], a[row * d + j] = a[row * d + j], a[k * d + j]
        for i in range(k + 1, d):
            a[i * d + k] /= largest
            factor = a[i * d + k]
            for j in range(k + 1, d):
                a[i * d + j] -= factor * a[k * d + j]
    return True


@inline
def solve_factored(a, pivot, x):
    """x = A⁻¹ x from what `factorise` left in a and pivot."""
    d = pivot.shape[0]
    for k in range(d):
        row = int(pivot[k])
        if row != k:
            x[k], x[row] = x[row], x[k]
    for i in range(1, d):
        total = x[i]
        for j in range(i):
            total -= a[i * d + j] * x[j]
        x[i] = total
    for i in range(d - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, d):
            total -= a[i * d + j] * x[j]
        x[i] = total / a[i * d + i]
