"""Simplified weak Euler: its formula, and the laws of its steps by enumerating all signs."""

import itertools

import numpy as np
import pytest

from sgdsde._abi import CORRECTION, INCREMENT
from sgdsde._jit import kernel_uncached
from sgdsde.schemes import NOISE_KINDS
from sgdsde.schemes.weak_euler import SCHEME


@pytest.mark.parametrize("size", [(d, m, n) for d in (1, 2, 3) for m in (1, 2, 4) for n in (1, 3, 8)])
def test_formula(lab, size):
    d, m, n = size
    x, t, h, dW = lab.draw(d, m, n)
    got = lab.take(SCHEME.kernel("general", "ito"), lab.mixed, x, t, h, dW, lab.p, SCHEME.work(d, m)[1])
    for k in range(n):
        noise = lab.columns(t[k], x[:, k], lab.p, m) @ (np.sqrt(h[k]) * np.sign(dW[:, k]))
        wanted = x[:, k] + lab.drift(t[k], x[:, k], lab.p) * h[k] + noise
        np.testing.assert_allclose(got[:, k], wanted, rtol=0, atol=1e-14)


def test_formula_for_diagonal_noise(lab):
    x, t, h, dW = lab.draw(3, 3, 8)
    got = lab.take(SCHEME.kernel("diagonal", "ito"), lab.apart, x, t, h, dW, lab.p, SCHEME.work(3, 3)[1])
    for k in range(8):
        noise = lab.columns(t[k], x[:, k], lab.p, 3, diagonal=True) @ (np.sqrt(h[k]) * np.sign(dW[:, k]))
        np.testing.assert_allclose(
            got[:, k], x[:, k] + lab.drift(t[k], x[:, k], lab.p) * h[k] + noise, rtol=0, atol=1e-14
        )


A = np.array([[-0.7, 0.4], [0.2, -0.3]])
B = np.array([[[0.5, 0.1], [-0.2, 0.4]], [[0.0, 0.6], [0.3, 0.0]], [[-0.2, 0.0], [0.1, 0.3]]])  # m = 3, d = 2
DATA = np.concatenate([A.ravel(), B.ravel()])


@kernel_uncached(INCREMENT)
def linear(out, x, t, h, v, p, data, work):
    """A x h + Σ_j B_j x v_j, the numbers of the matrices in p."""
    d = x.shape[0]
    for b in range(x.shape[1]):
        for i in range(d):
            out[i, b] = 0.0
            for k in range(d):
                out[i, b] += p[i * d + k] * x[k, b] * h[b]
                for j in range(v.shape[0]):
                    out[i, b] += p[d * d * (j + 1) + i * d + k] * x[k, b] * v[j, b]


@kernel_uncached(CORRECTION)
def none(out, x, t, p, data, work):
    out[:] = 0.0


@pytest.mark.parametrize("n_steps", [1, 2])
def test_means_and_second_moments_over_all_signs(lab, n_steps):
    """E Y' = (1 + A h) E Y and E Y'Y'ᵀ = (1 + A h) E YYᵀ (1 + A h)ᵀ + h Σ_j B_j E YYᵀ B_jᵀ, as for Euler-Maruyama."""
    h, m = 0.3, 3
    x = np.array([[1.0], [0.5]])
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=m))).T
    first, second = x[:, 0], np.outer(x, x)
    for _ in range(n_steps):
        many = x.shape[1]
        x, dW = np.repeat(x, 2**m, axis=1), np.tile(signs, (1, many)) * 0.123  # the size of ΔW does not matter
        n = x.shape[1]
        size = SCHEME.work(2, m)[1]
        x = lab.take(SCHEME.step, linear, x, np.zeros(n), np.full(n, h), dW, DATA, size, made=none)
        grow = np.eye(2) + h * A
        first = grow @ first
        second = grow @ second @ grow.T + h * sum(one @ second @ one.T for one in B)
    np.testing.assert_allclose(x.mean(axis=1), first, rtol=0, atol=1e-14)
    np.testing.assert_allclose(x @ x.T / x.shape[1], second, rtol=0, atol=1e-14)


def test_it_has_no_strong_order_and_says_so():
    assert SCHEME.strong == dict.fromkeys(NOISE_KINDS, 0.0) and set(SCHEME.weak.values()) == {1.0}
