"""The weak order of every method is the one its traits state: no Monte Carlo, one step against the generator.

A method has weak order q where every moment of one step agrees with the exact one up to h^{q+1}: E Π z_i^{e_i} for
z = Y' − y, up to degree 2q + 1 (Milstein 1986; Kloeden & Platen, theorem 14.5.2). The exact moment is Σ_k h^k/k! L^k of
it, L the generator. With polynomial coefficients L is exact algebra, and the step's moment is a finite sum over
Gauss-Hermite nodes of ΔW (and of what else the step is given), so that the local order is read off to two digits.
"""

import functools
import itertools
import math

import numpy as np
import pytest

from sgdsde import SDE, ArgumentError
from sgdsde._abi import CORRECTION
from sgdsde._jit import kernel_uncached
from sgdsde.equation.columns import with_columns
from sgdsde.schemes import NOISE_KINDS, methods

T0 = 0.3
MOST = 4
"""Terms of the exact moments: more than any weak order here needs, so that an order that is too modest shows too."""

# Polynomials in (t − t0, z_1, …, z_d): {exponents: coefficient}


def plus(p, q, factor=1.0):
    out = dict(p)
    for e, c in q.items():
        out[e] = out.get(e, 0.0) + factor * c
    return out


def times(p, q):
    out = {}
    for (e, a), (f, b) in itertools.product(p.items(), q.items()):
        key = tuple(i + j for i, j in zip(e, f))
        out[key] = out.get(key, 0.0) + a * b
    return out


def slope(p, i):
    return {(*e[:i], e[i] - 1, *e[i + 1 :]): c * e[i] for e, c in p.items() if e[i]}


class Equation:
    """dz = a dt + Σ_j b^j dW_j with polynomial a (d,), b (d, m); z starts at 0. As an SDE, and its generator."""

    def __init__(self, drift, columns, noise, calculus):
        self.a, self.b, self.noise, self.calculus = drift, columns, noise, calculus
        self.d, self.m = len(drift), len(columns[0])

    def sde(self):
        flat = [self.a[i] for i in range(self.d)] + [self.b[i][j] for i in range(self.d) for j in range(self.m)]
        powers = sorted(set().union(*flat))
        C = np.array([[p.get(e, 0.0) for e in powers] for p in flat])
        diffusion = {"scalar": scalar, "diagonal": diagonal}.get(self.noise, matrix)
        args = (C[: self.d].copy(), C[self.d :].reshape(self.d, self.m, -1).copy(), np.array(powers), self.start())
        return SDE(drift, diffusion, dim=self.d, noise=self.noise, calculus=self.calculus, args=args)

    def start(self):
        return np.array([0.7, -0.4, 1.1])[: self.d]

    def moments(self, h, powers):
        """Σ_k h^k/k! L^k of Π z_i^{e_i} at z = 0, t = t0, for each e of powers, up to k = MOST."""
        at = [self.basis.index((0, *e)) for e in powers]
        return sum(h**k / math.factorial(k) * row[at] for k, row in enumerate(self.at_start))

    @functools.cached_property
    def basis(self):
        """L lowers the degree in t by one, or in z by two, so above a + b/2 = MOST nothing reaches z = 0 in time."""
        every = itertools.product(range(2 * MOST + 1), repeat=1 + self.d)
        return [e for e in every if e[0] + sum(e[1:]) / 2 <= MOST]

    @functools.cached_property
    def at_start(self):
        """Values of L^k at (t0, 0) on the basis, k = 0 .. MOST."""
        number = {e: k for k, e in enumerate(self.basis)}
        L = np.zeros((len(number), len(number)))
        for column, e in enumerate(self.basis):
            for f, c in self.generator({e: 1.0}).items():
                if f in number:
                    L[number[f], column] = c
        rows = [np.eye(len(number))[number[(0,) * (1 + self.d)]]]
        for _ in range(MOST):
            rows.append(rows[-1] @ L)
        return rows

    @functools.cached_property
    def coefficients(self):
        """Itô drift and b bᵀ."""
        a, d, m = list(self.a), self.d, self.m
        if self.calculus == "stratonovich":
            for i, j, k in itertools.product(range(d), range(m), range(d)):
                a[i] = plus(a[i], times(self.b[k][j], slope(self.b[i][j], 1 + k)), 0.5)
        squares = [[{} for _ in range(d)] for _ in range(d)]
        for i, k, j in itertools.product(range(d), range(d), range(m)):
            squares[i][k] = plus(squares[i][k], times(self.b[i][j], self.b[k][j]))
        return a, squares

    def generator(self, p):
        a, squares = self.coefficients
        out = slope(p, 0)
        for i in range(self.d):
            out = plus(out, times(a[i], slope(p, 1 + i)))
            for k in range(self.d):
                out = plus(out, times(squares[i][k], slope(slope(p, 1 + i), 1 + k)), 0.5)
        return out


def monomials(t, y, powers, start):
    out = np.ones(powers.shape[0])
    for k in range(powers.shape[0]):
        for _ in range(powers[k, 0]):
            out[k] *= t - T0
        for i in range(y.size):
            for _ in range(powers[k, 1 + i]):
                out[k] *= y[i] - start[i]
    return out


def drift(t, y, A, B, powers, start):
    return A @ monomials(t, y, powers, start)


def matrix(t, y, A, B, powers, start):
    values, out = monomials(t, y, powers, start), np.zeros(B.shape[:2])
    for i in range(B.shape[0]):
        out[i] = B[i] @ values
    return out


def scalar(t, y, A, B, powers, start):
    values, out = monomials(t, y, powers, start), np.zeros(B.shape[0])
    for i in range(B.shape[0]):
        out[i] = B[i, 0] @ values
    return out


def diagonal(t, y, A, B, powers, start):
    values, out = monomials(t, y, powers, start), np.zeros(B.shape[0])
    for i in range(B.shape[0]):
        out[i] = B[i, i] @ values
    return out


# Equations of every kind, of degree two in everything, time included


def draw(rng, d, only=None, degree=2, time=2):
    """A random polynomial; `only` names the components it depends on."""
    out = {}
    for e in itertools.product(range(degree + 1), repeat=1 + d):
        seen = all(not e[1 + i] or only is None or i in only for i in range(d))
        if sum(e) <= 2 and sum(e[1:]) <= degree and e[0] <= time and seen:
            out[e] = rng.uniform(-0.6, 0.6)
    return out


@functools.cache
def make(noise, calculus, i=0, linear=False):
    """Number i of the equations of this kind; `linear`: a drift that is linear in the state and free of time."""
    rng = np.random.default_rng([NOISE_KINDS.index(noise), i, 11])
    d, m = {"scalar": (2, 1), "diagonal": (2, 2), "general": [(3, 2), (2, 3)][i]}.get(noise, [(2, 3), (3, 2)][i])
    a = [draw(rng, d, degree=1, time=0) if linear else draw(rng, d) for _ in range(d)]
    none = [[{} for _ in range(m)] for _ in range(d)]
    if noise == "diagonal":
        b = none
        for k in range(d):
            b[k][k] = draw(rng, d, only=[k])
    elif noise == "commutative":  # multiples of one field by functions of time
        field, of_time = [draw(rng, d, time=0) for _ in range(d)], [draw(rng, d, only=[]) for _ in range(m)]
        b = [[times(field[k], of_time[j]) for j in range(m)] for k in range(d)]
    else:
        only = [] if noise == "additive" else None
        b = [[draw(rng, d, only=only) for _ in range(m)] for _ in range(d)]
    return Equation(a, b, noise, calculus)


# One step over all nodes

POINTS = {"platen": 3, "weak-euler": 2}
"""Gauss-Hermite nodes for methods that map ΔW to as many points: on those nodes the map is the identity."""


def nodes(n, size):
    """All combinations of n Gauss-Hermite nodes in `size` directions, (size, N), with weights (N,)."""
    z, w = np.polynomial.hermite_e.hermegauss(n)
    grid = np.array(list(itertools.product(range(n), repeat=size))).reshape(-1, size).T
    return z[grid], (w / w.sum())[grid].prod(axis=0)


def signs(h, d, m):
    """±h for every pair of Brownian motions: Platen's V, and areas as far as two moments see them (with half of it)."""
    pairs = m * (m - 1) // 2
    more = np.array(list(itertools.product((-h, h), repeat=pairs))).reshape(-1, pairs).T
    return more, np.full(more.shape[1], 1 / more.shape[1])


def space_time(h, d, m):
    """H_j ~ N(0, h/12)."""
    more, weight = nodes(5, m)
    return np.sqrt(h / 12) * more, weight


def space_time_and_more(h, d, m):
    """H_j, and d standard normal numbers."""
    more, weight = nodes(3, m + d)
    more[:m] *= np.sqrt(h / 12)
    return more, weight


LAWS = {"space-time": space_time, "ito": signs, "stratonovich": signs, "platen": signs,
        "ou-splitting": space_time_and_more}  # fmt: skip
"""By what a Brownian path gives, or by method where aux is not of the path: (h, d, m) -> nodes (r, N), weights (N,)."""


def noise_of(scheme, equation, h):
    """ΔW (m, N), aux (r, N) and weights (N,): the law of what the step is given, as far as moments see it."""
    m, aux = equation.m, scheme.aux_for(equation.noise, equation.calculus)
    z, weight = nodes(POINTS.get(scheme.name, 5), m)
    dW = np.sqrt(h) * z
    if aux is None:
        return dW, np.empty((0, weight.size)), weight
    more, w = LAWS[aux.brownian or scheme.name](h, equation.d, m)
    dW, more, weight = np.repeat(dW, w.size, axis=1), np.tile(more, (1, weight.size)), np.outer(weight, w).ravel()
    if aux.brownian in ("ito", "stratonovich"):
        integrals = 0.5 * dW[:, None] * dW[None, :]
        for area, (j, k) in zip(more, itertools.combinations(range(m), 2)):
            integrals[j, k] += 0.5 * area
            integrals[k, j] -= 0.5 * area
        if aux.brownian == "ito":
            integrals -= 0.5 * h * np.eye(m)[..., None]
        more = integrals.reshape(m * m, -1)
    assert len(more) == aux.rows(equation.d, m)
    return dW, more, weight


GUARD = 100_000


def one_step(scheme, equation, h):
    """z after one step on every node, and the weights."""
    bound = equation.sde().bind(T0, equation.start())
    asks = set(scheme.needs_for(equation.noise, equation.calculus))
    assert asks <= {"correction", "columns"}
    kernels = bound.kernels(correction="correction" in asks)
    kernels = with_columns(bound, kernels) if "columns" in asks else kernels
    extra = scheme.prepare(bound, kernels, T0, equation.start(), h) if scheme.prepare is not None else []
    dW, aux, weight = noise_of(scheme, equation, h)
    n = weight.size
    x = np.repeat(equation.start()[:, None], n, axis=1)
    fixed, per_path = (a + b for a, b in zip(scheme.work(equation.d, equation.m), kernels.work))
    status, work = np.zeros(2 * n, np.int64), np.full(fixed + per_path * n + GUARD, np.pi)
    data = np.concatenate([kernels.data, extra])
    step = scheme.kernel(equation.noise, equation.calculus)
    correction = kernels.correction if kernels.correction is not None else no_correction
    t, length, dW, aux = np.full(n, T0), np.full(n, h), np.ascontiguousarray(dW), np.ascontiguousarray(aux)
    step(kernels.increment, correction, x, t, length, dW, aux, status, work, kernels.p, data)
    assert not status.any(), "the step failed, or clipped a node"
    assert np.all(work[-GUARD:] == np.pi), "the step wrote behind the scratch it declares"
    return x - equation.start()[:, None], weight


@kernel_uncached(CORRECTION)
def no_correction(out, x, t, p, data, work):
    out[:] = np.nan


STEPS = (2.0**-10, 2.0**-12)


def local_order(scheme, equation):
    """Order in h of the largest error of a moment of one step, less one."""
    most = 2 * math.ceil(scheme.weak[equation.noise]) + 1
    powers = [e for e in itertools.product(range(most + 1), repeat=equation.d) if 1 <= sum(e) <= most]
    errors = []
    for h in STEPS:
        z, weight = one_step(scheme, equation, h)
        got = np.array([weight @ np.prod(z ** np.array(e)[:, None], axis=0) for e in powers])
        errors.append(np.abs(got - equation.moments(h, powers)).max())
    return np.log2(errors[0] / errors[1]) / np.log2(STEPS[0] / STEPS[1]) - 1


def cases():
    """(name, noise, calculus, number of the equation); methods that share a step for a kind of noise once."""
    seen = set()
    for name, scheme in methods.items():
        for noise, calculus in itertools.product(scheme.strong, ("ito", "stratonovich")):
            if calculus in scheme.calculus or noise == "additive":
                step = (id(scheme.kernel(noise, calculus)), noise, calculus)
                if step not in seen:
                    seen.add(step)
                    for i in range(1 if noise in ("scalar", "diagonal") else 2):
                        yield pytest.param(name, noise, calculus, i, id=f"{name}-{noise}-{calculus}-{i}")


@pytest.mark.parametrize("name, noise, calculus, i", list(cases()))
def test_weak_order_is_the_trait(name, noise, calculus, i):
    scheme = methods[name]
    try:
        found = local_order(scheme, make(noise, calculus, i))
    except ArgumentError as error:
        assert "linear" in str(error), error
        found = local_order(scheme, make(noise, calculus, i, linear=True))
    assert abs(found - scheme.weak[noise]) < 0.15
