"""SRI2 and SRS2: the formula of the pages in NumPy, and the special kinds of noise against the general one."""

import numpy as np
import pytest

from sgdsde.schemes import methods

SIZES = [(d, m, n) for d in (1, 2, 3) for m in (1, 2, 4) for n in (1, 3, 8)]
METHODS = [("sri2", "ito"), ("srs2", "stratonovich")]
FREE = np.array([1.0, 0.7, 0.0, 0.9])


def formula(a, b, y, t, h, w, I):
    root, m = np.sqrt(h), w.size
    predicted = y + a(t, y) * h
    total = y + 0.5 * (a(t, y) + a(t + h, predicted)) * h + b(t, y) @ w
    for k in range(m):
        moved = sum(b(t, y)[:, l] * I[l, k] for l in range(m)) / root
        total = total + 0.5 * root * (b(t + h, predicted + moved)[:, k] - b(t + h, predicted - moved)[:, k])
    return total


def integrals(dW, h, calculus, area):
    """I (n, m, m), with random areas or none."""
    m, n = dW.shape
    A = np.random.default_rng([5, m, n]).normal(size=(n, m, m)) * h[:, None, None] * area
    symmetric = 0.5 * (dW.T[:, :, None] * dW.T[:, None, :] - h[:, None, None] * np.eye(m) * (calculus == "ito"))
    return symmetric + A - A.transpose(0, 2, 1)


def compare(lab, name, noise, calculus, size, p, area):
    d, m, n = size
    scheme, diagonal = methods[name], noise == "diagonal"
    x, t, h, dW = lab.draw(d, m, n)
    I = integrals(dW, h, calculus, area)
    aux = I.transpose(1, 2, 0).reshape(m * m, n) if noise == "general" else None
    step, increment = scheme.kernel(noise, calculus), lab.apart if diagonal else lab.mixed
    got = lab.take(step, increment, x, t, h, dW, p, scheme.work(d, m)[1], aux=aux)
    for k in range(n):
        wanted = formula(
            lambda s, y: lab.drift(s, y, p),
            lambda s, y: lab.columns(s, y, p, m, diagonal),
            x[:, k],
            t[k],
            h[k],
            dW[:, k],
            I[k],
        )
        np.testing.assert_allclose(got[:, k], wanted, rtol=0, atol=4e-15)


@pytest.mark.parametrize("name, calculus", METHODS)
@pytest.mark.parametrize("size", SIZES)
def test_general_noise_reads_the_integrals(lab, name, calculus, size):
    compare(lab, name, "general", calculus, size, lab.p, area=1.0)


@pytest.mark.parametrize("name, calculus", METHODS)
@pytest.mark.parametrize("size", SIZES)
def test_commutative_noise_makes_the_symmetric_part_itself(lab, name, calculus, size):
    compare(lab, name, "commutative", calculus, size, lab.p, area=0.0)


@pytest.mark.parametrize("name, calculus", METHODS)
@pytest.mark.parametrize("size", SIZES)
def test_scalar_and_diagonal_noise(lab, name, calculus, size):
    if size[1] == 1:
        compare(lab, name, "scalar", calculus, size, lab.p, area=0.0)
    if size[0] == size[1]:  # one formula for every component, whatever the areas of pairs are
        compare(lab, name, "diagonal", calculus, size, lab.p, area=1.0)


@pytest.mark.parametrize("name", ["sri2", "srs2"])
@pytest.mark.parametrize("calculus", ["ito", "stratonovich"])
@pytest.mark.parametrize("size", SIZES)
def test_additive_noise_is_taken_from_either_calculus(lab, name, calculus, size):
    compare(lab, name, "additive", calculus, size, FREE, area=1.0)


@pytest.mark.parametrize("name, calculus", METHODS)
def test_integrals_are_asked_for_where_areas_matter(name, calculus):
    scheme = methods[name]
    assert scheme.aux_for("general", calculus).brownian == calculus
    for noise in ("scalar", "diagonal", "commutative", "additive"):
        assert scheme.aux_for(noise, calculus) is None
    assert scheme.aux_for("additive", "ito") is None and scheme.aux_for("additive", "stratonovich") is None


def test_a_transposed_area_is_seen(lab):
    x, t, h, dW = lab.draw(3, 2, 8)
    I = integrals(dW, h, "ito", 1.0)
    step, scratch = methods["sri2"].kernel("general", "ito"), methods["sri2"].work(3, 2)[1]
    one, two = (
        lab.take(step, lab.mixed, x, t, h, dW, lab.p, scratch, aux=one.transpose(1, 2, 0).reshape(4, 8))
        for one in (I, I.transpose(0, 2, 1))
    )
    assert np.abs(one - two).max() > 1e-3
