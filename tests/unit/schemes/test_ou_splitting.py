"""Ornstein-Uhlenbeck splitting: exact in law where the drift is linear, a Strang splitting where it is not."""

import itertools

import numpy as np
import pytest
import scipy.linalg

import sgdsde as sg
from sgdsde._errors import ArgumentError
from sgdsde.random.normal import fill_normals
from sgdsde.run.idle import no_correction
from sgdsde.schemes._ou_matrices import SCRATCH, ou_matrices
from sgdsde.schemes._ou_prepare import numbers, prepare
from sgdsde.schemes.ou_splitting import SCHEME, fill

X, WEIGHTS = np.polynomial.legendre.leggauss(40)
NODES = list(zip(0.5 * (X + 1), 0.5 * WEIGHTS, strict=True))


def covariance(B, Q, h):
    """∫₀ʰ e^{Bs}Qe^{Bᵀs}ds by Gauss-Legendre nodes, exact to rounding for the h‖B‖ here."""
    flows = [(scipy.linalg.expm(B * h * y), w) for y, w in NODES]
    return h * sum(w * E @ Q @ E.T for E, w in flows)


def phis(A):
    d = len(A)
    block = np.zeros((3 * d, 3 * d))
    block[:d, :d], block[:d, d : 2 * d], block[d : 2 * d, 2 * d :] = A, np.eye(d), np.eye(d)
    E = scipy.linalg.expm(block)
    return E[:d, :d], E[:d, d : 2 * d], E[:d, 2 * d :]


@pytest.mark.parametrize("h", [1e-4, 0.03, 0.6, 3.0])
@pytest.mark.parametrize("d", [1, 2, 3, 32])
def test_matrices(d, h):
    rng = np.random.default_rng(d)
    B = rng.normal(size=(d, d)) / np.sqrt(d) - np.eye(d)
    G = rng.normal(size=(d, 2))
    Q, out = G @ G.T, np.full(4 * d * d + 1, 7.25)
    work = np.full(SCRATCH * d * d + 1, np.nan)
    work[-1] = 7.25
    ou_matrices(out, B.ravel(), Q.ravel(), h, d, work)
    assert out[-1] == work[-1] == 7.25
    E, P1, D, S = out[:-1].reshape(4, d, d)
    e, p1, p2 = phis(B * h)
    legendre = sum(12 * w * (y - 0.5) * scipy.linalg.expm(B * h * y) for y, w in NODES)
    for got, wanted in [(E, e), (P1, p1), (D, 6 * (p1 - 2 * p2)), (D, legendre)]:
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-13 * max(1.0, np.abs(wanted).max()))
    V = covariance(B, Q, h)
    np.testing.assert_allclose(h * P1 @ Q @ P1.T + h / 12 * D @ Q @ D.T + S @ S.T, V, rtol=0, atol=1e-13 * V.max())


def test_matrices_of_a_stiff_step():
    """Eigenvalues −1 and −10⁷: the slow one moves, the fast one has its stationary variance q/2λ."""
    B, Q, out = np.array([[-1.0, 0.0], [0.0, -1e7]]), np.eye(2), np.empty(16)
    ou_matrices(out, B.ravel(), Q.ravel(), 0.5, 2, np.empty(SCRATCH * 4))
    E, P1, D, S = out.reshape(4, 2, 2)
    V = 0.5 * P1 @ Q @ P1.T + 0.5 / 12 * D @ Q @ D.T + S @ S.T
    np.testing.assert_allclose(np.diag(V), [0.5 * (1 - np.exp(-1.0)), 0.5e-7], rtol=1e-7)
    np.testing.assert_allclose(E, np.diag([np.exp(-0.5), 0.0]), atol=1e-14)


B = np.array([[-1.0, 0.5], [-0.8, -0.3]])
C = np.array([0.3, -0.7])
G = np.array([[0.5, 0.2, 0.1], [0.0, 0.7, 0.3]])


def line(t, y):
    return (-1.0 * y[0] + 0.5 * y[1] + 0.3, -0.8 * y[0] - 0.3 * y[1] - 0.7)


def bent(t, y):
    return (-1.0 * y[0] + np.sin(y[1]) + np.cos(t), -0.8 * y[0] * y[1] - 0.3 * y[1])


def constant(t, y):
    return (0.5, 0.2, 0.1), (0.0, 0.7, 0.3)


def breathing(t, y):
    s = 1 + 0.5 * np.sin(2 * t)
    return (0.5 * s, 0.2, 0.1), (0.0, 0.7 * s, 0.3)


def silent(t, y):
    return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)


Y0 = np.array([1.0, -0.4])


def one_step(drift, diffusion, x, t, h, dW, aux, dt=0.5):
    """One step of blocks (d, n), prepared for dt at (0, Y0); scratch as declared, with a guard behind it."""
    equation = sg.SDE(drift, diffusion, dim=2, noise="additive").bind(0.0, Y0)
    kernels = equation.kernels()
    x, n, m = np.array(x, float), np.shape(x)[1], len(dW)
    data = np.concatenate([kernels.data, prepare(equation, kernels, 0.0, Y0, dt)])
    fixed, per_path = SCHEME.work(2, m)
    size = fixed + kernels.work[0] + (per_path + kernels.work[1]) * n
    work, status = np.full(size + 8, np.nan), np.zeros(2 * n, np.int64)
    work[size:] = 7.25
    arrays = [np.ascontiguousarray(a, float) for a in (t, h, dW, aux)]
    SCHEME.step(kernels.increment, no_correction, x, *arrays, status, work, kernels.p, data)
    assert np.all(work[size:] == 7.25) and not status.any()
    return x


@pytest.mark.parametrize("h", [0.5, 0.37, 0.01, 2.0])
def test_a_step_of_a_linear_equation_has_the_exact_law(h):
    """The step is affine in (x, ΔW, H, ξ): its columns, probed, give mean and covariance, with no sampling."""
    n = 1 + 3 + 3 + 2
    probes = np.zeros((8, n))
    probes[:, 1:] = np.eye(8)
    x = np.repeat(Y0[:, None], n, axis=1)
    got = one_step(line, constant, x, np.full(n, 0.7), np.full(n, h), probes[:3], probes[3:])
    e, p1, p2 = phis(B * h)
    np.testing.assert_allclose(got[:, 0], e @ Y0 + h * p1 @ C, rtol=0, atol=1e-12)
    parts = got[:, 1:] - got[:, :1]
    variance = np.concatenate([np.full(3, h), np.full(3, h / 12), np.ones(2)])
    np.testing.assert_allclose((parts * variance) @ parts.T, covariance(B, G @ G.T, h), rtol=0, atol=1e-12)
    np.testing.assert_allclose(parts[:, :3], p1 @ G, rtol=0, atol=1e-12)  # Cov(Y', ΔW)/h of the equation
    np.testing.assert_allclose(parts[:, 3:6], 6 * (p1 - 2 * p2) @ G, rtol=0, atol=1e-12)


def drawn(n, h, seed=0):
    rng = np.random.default_rng(seed)
    aux = np.concatenate([rng.normal(size=(3, n)) * np.sqrt(h / 12), rng.normal(size=(2, n))])
    return rng.normal(size=(2, n)), rng.uniform(0, 2, n), rng.normal(size=(3, n)) * np.sqrt(h), aux


@pytest.mark.parametrize("drift, diffusion", [(line, constant), (bent, constant), (bent, breathing)])
def test_bits_do_not_depend_on_the_block_nor_on_the_steps_of_others(drift, diffusion):
    h = np.array([0.5, 0.5, 0.2, 0.2, 0.2, 0.5, 0.31, 0.5])
    x, t, dW, aux = drawn(8, h)
    whole = one_step(drift, diffusion, x, t, h, dW, aux)
    for k in range(8):
        alone = one_step(drift, diffusion, x[:, [k]], t[[k]], h[[k]], dW[:, [k]], aux[:, [k]])
        assert np.array_equal(alone[:, 0], whole[:, k])


@pytest.mark.parametrize("diffusion", [constant, breathing])
def test_the_splitting_is_its_formula(diffusion):
    """Kicks by f − Bx − c with B the Jacobian at (0, Y0), half on each side of the exact flow."""
    h = np.array([0.5, 0.1, 0.02])
    x, t, dW, aux = drawn(3, h)
    got = one_step(bent, diffusion, x, t, h, dW, aux)
    J = np.array([[-1.0, np.cos(Y0[1])], [-0.8 * Y0[1], -0.8 * Y0[0] - 0.3]])
    c = np.array(bent(0.0, Y0)) - J @ Y0

    def kick(s, y, half):
        def g(z):
            return np.array(bent(s, z)) - J @ z - c

        return y + half * g(y + 0.5 * half * g(y))

    for k in range(3):
        e, p1, p2 = phis(J * h[k])
        g = np.array(diffusion(t[k] + h[k] / 2, Y0))
        y = kick(t[k], x[:, k], h[k] / 2)
        y = e @ y + h[k] * p1 @ c + p1 @ g @ dW[:, k] + 6 * (p1 - 2 * p2) @ g @ aux[:3, k]
        if diffusion is constant:
            out = np.empty(16)
            ou_matrices(out, J.ravel(), (G @ G.T).ravel(), h[k], 2, np.empty(SCRATCH * 4))
            y = y + out[12:].reshape(2, 2) @ aux[3:, k]
        wanted = kick(t[k] + h[k], y, h[k] / 2)
        np.testing.assert_allclose(got[:, k], wanted, rtol=0, atol=2e-8 * h[k])  # J itself is by differences


def test_local_weak_order_three():
    """E φ(Y') against the Taylor series of the equation up to h², for φ = x and x², by quadrature over ΔW, H and ξ."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    grid = np.array(list(itertools.product(range(12), repeat=3)))
    z, weight = nodes[grid].T, (weights[grid] / weights.sum()).prod(axis=1)
    s, x0 = 0.8, 0.6

    def drift(t, y):
        return (np.sin(2 * y[0]) - y[0] + 0.3,)

    def noise(t, y):
        return ((0.8,),)

    equation = sg.SDE(drift, noise, dim=1, noise="additive").bind(0.0, np.array([x0]))
    kernels = equation.kernels()
    f, df, ddf = np.sin(2 * x0) - x0 + 0.3, 2 * np.cos(2 * x0) - 1, -4 * np.sin(2 * x0)
    L2x = f * df + 0.5 * s * s * ddf  # L f
    Lx2 = 2 * x0 * f + s * s
    L2x2 = f * (2 * f + 2 * x0 * df) + 0.5 * s * s * (4 * df + 2 * x0 * ddf)

    def error(h):
        n = z.shape[1]
        data = np.concatenate([kernels.data, prepare(equation, kernels, 0.0, np.array([x0]), h)])
        x, fixed = np.full((1, n), x0), SCHEME.work(1, 1)
        work = np.empty(fixed[0] + kernels.work[0] + (fixed[1] + kernels.work[1]) * n)
        aux = np.stack([z[1] * np.sqrt(h / 12), z[2]])
        dW = np.ascontiguousarray(z[:1] * np.sqrt(h))
        t, status = np.zeros(n), np.zeros(2 * n, np.int64)
        SCHEME.step(kernels.increment, no_correction, x, t, t + h, dW, aux, status, work, kernels.p, data)
        mean, square = weight @ x[0], weight @ x[0] ** 2
        return np.array([mean - x0 - h * f - 0.5 * h * h * L2x, square - x0**2 - h * Lx2 - 0.5 * h * h * L2x2])

    orders = np.log2(np.abs(error(2.0**-8) / error(2.0**-10))) / 2
    assert (np.abs(orders - 3) < 0.2).all(), orders


def test_without_noise_it_is_of_order_two_and_exact_where_it_is_linear():
    sde = sg.SDE(bent, silent, dim=2, noise="additive")
    ends = [sg.solve(sde, (0, 1), Y0, method=SCHEME, dt=1 / n, rng=0).y[-1] for n in (16, 32, 64, 2048)]
    errors = [np.abs(end - ends[3]).max() for end in ends[:3]]
    assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.1 and abs(np.log2(errors[1] / errors[2]) - 2) < 0.1
    sde = sg.SDE(line, silent, dim=2, noise="additive")
    found = sg.solve(sde, (0, 1), Y0, method=SCHEME, dt=0.4, rng=0, t_eval=[0, 0.3, 1.0])
    for k, t in enumerate(found.t):
        e, p1, _ = phis(B * t)
        np.testing.assert_allclose(found.y[k], e @ Y0 + t * p1 @ C, rtol=0, atol=1e-13)


def test_a_run_has_the_exact_law_at_any_step():
    """Three steps of 0.4, 0.4 and 0.2 and a save in between: means and covariances within five standard errors."""
    n = 20000
    sde = sg.SDE(line, constant, dim=2, noise="additive", calculus="stratonovich")
    found = sg.solve(sde, (0, 1), Y0, method="ou-splitting", dt=0.4, n_paths=n, rng=5, t_eval=[0, 0.5, 1.0])
    for k, t in ((1, 0.5), (2, 1.0)):
        e, p1, _ = phis(B * t)
        V = covariance(B, G @ G.T, t)
        mean = found.y[:, k].mean(axis=0) - e @ Y0 - t * p1 @ C
        assert (np.abs(mean) < 5 * np.sqrt(np.diag(V) / n)).all()
        spread = np.sqrt((V**2 + np.outer(np.diag(V), np.diag(V))) / n)
        assert (np.abs(np.cov(found.y[:, k].T) - V) < 5 * spread).all()


def test_the_numbers_beside_the_increments():
    path, h = np.arange(6, dtype=np.uint64), np.linspace(0.1, 0.6, 6)
    aux, wanted, dW = np.empty((5, 6)), np.empty((5, 6)), np.zeros((3, 6))
    fill(aux, dW, h, path, 7, np.uint64(9), np.zeros(1), np.zeros(1), np.zeros(1))
    fill_normals(wanted, 35, path, 3, np.uint64(9))
    wanted[:3] *= np.sqrt(h / 12)
    np.testing.assert_allclose(aux, wanted, rtol=1e-15)


def test_refusals():
    def curved(t, y):
        return (max(y[0], 2.0),), (0.7,)  # constant near the start

    equation = sg.SDE(line, curved, dim=2, noise="additive").bind(0.0, Y0)
    with pytest.raises(ArgumentError, match="additive noise, and this diffusion depends on the state"):
        prepare(equation, equation.kernels(), 0.0, Y0, 0.1)
    with pytest.raises(ArgumentError, match="additive noise, and this diffusion depends on the state"):
        sg.solve(sg.SDE(line, curved, dim=2), (0, 1), Y0, method="ou-splitting", dt=0.1)

    def many(t, y):
        return -y

    def one(t, y):
        return np.ones((33, 1))

    with pytest.raises(ArgumentError, match="at most 32 components.*33"):
        sg.solve(sg.SDE(many, one, dim=33, noise="additive"), (0, 1), np.ones(33), method="ou-splitting", dt=0.1)

    def broken(t, y):
        return (np.log(y[0]), y[1])

    with pytest.raises(ArgumentError, match="finite around y0"):
        equation = sg.SDE(broken, constant, dim=2, noise="additive").bind(0.0, np.array([1e-9, 1.0]))
        prepare(equation, equation.kernels(), 0.0, np.array([1e-9, 1.0]), 0.1)


@pytest.mark.parametrize("drift, remainder", [(line, 0.0), (bent, 1.0)])
def test_a_linear_drift_is_recognised(drift, remainder):
    equation = sg.SDE(drift, constant, dim=2, noise="additive").bind(0.0, Y0)
    made = prepare(equation, equation.kernels(), 0.0, Y0, 0.1)
    assert made.size == numbers(2) and made[11] == remainder and made[10] == 0.1
    if not remainder:
        np.testing.assert_allclose(made[:4], B.ravel(), rtol=0, atol=1e-15)
        np.testing.assert_allclose(made[8:10], C, rtol=0, atol=1e-15)
    np.testing.assert_allclose(made[4:8], (G @ G.T).ravel(), rtol=1e-15)
