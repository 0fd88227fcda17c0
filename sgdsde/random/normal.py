"""Standard normal numbers by their address: Box and Muller's formula, the same bits on every processor.

G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", Ann. Math. Stat. 29 (1958) 610. A call
of Philox gives two 64-bit words v, w, and they give two numbers that are independent:

    u = ((v >> 11) + 1) / 2**53                      in (0, 1]
    x = (((w >> 12) | 1) - 2**51) / 2**52            odd multiples of 2**-52 in (-1/2, 1/2), symmetric, never 0
    r = sqrt(-2 log u),  with the minus sign if bit 1 of w is set
    c, s = cos(pi x / 2), sin(pi x / 2);  exchanged if bit 0 of w is set
    z0, z1 = r c, r s

(c, s) runs over a quarter of the circle; exchange and sign carry it to the other three. The largest number is
sqrt(106 log 2) = 8.57, so the tails end beyond 8.5 sigma (what is missing has probability 1e-17).

log, cos and sin are polynomials, minimax in the relative error (Remez; 1.2e-18, 3.3e-20, 3.5e-18 before rounding), with
only sums, products, one division and one square root around them, each correctly rounded and never contracted. So the
bits do not depend on the processor, on the shape of the block or on the place in it; and, u and x being exact, the
relative error of z0 and z1 is below 6e-16 everywhere, also near their zeros (4.6e-16 seen).
"""

from __future__ import annotations

import numpy as np
from numba import types

from sgdsde._abi import BLOCK, PATHS
from sgdsde._jit import kernel
from sgdsde._stack import local_array, local_words
from sgdsde.random._lanes import LANES, addresses, calls, padded, scatter
from sgdsde.random.philox import EXACT, exact, words

__all__ = ["fill_normals"]

ONE, ELEVEN, TWELVE, MANTISSA, TO_SIGN = (np.uint64(i) for i in (1, 11, 12, 52, 62))
SIGN = np.uint64(1 << 63)
ODD_ABOVE_1 = np.uint64(0x3FF0000000000001)  # exponent of [1, 2), last bit set
TWO52 = np.uint64(0x4330000000000000)  # bits of 2.0**52
SQRT_HALF = np.uint64(0x3FE6A09E667F3BCD)  # bits of sqrt(1/2)

# log(1 + f) = 2s + s z L(z), s = f / (2 + f), z = s**2, |f| <= sqrt(2) - 1; log 2 with 47 bits, and the rest
L0, L1, L2, L3 = 0.6666666666666734, 0.39999999999414687, 0.28571428742386473, 0.22222198573278898
L4, L5, L6 = 0.1818356432179074, 0.15314050651414476, 0.14795948827546962
LOG2, LOG2_REST = 0.693147180559933, 1.23466660414777e-14
# sin(pi x / 2) = x (pi/2 + z S(z)), cos(pi x / 2) = 1 + z C(z), z = x**2 <= 1/4
HALF_PI, HALF_PI_REST = 1.5707963267948966, 6.123233995736766e-17
S0, S1, S2, S3 = -0.645964097506245, 0.07969262624606273, -0.004681754132616296, 0.00016044115259867018
S4, S5 = -3.598649341148521e-06, 5.6346751351024706e-08
C0, C1, C2, C3 = -1.2337005501361697, 0.2536695079010469, -0.020863480763315442, 0.0009192602742250383
C4, C5, C6 = -2.5202036991559027e-05, 4.7106156582210805e-07, -6.321892493969778e-09


@exact
def _radius(v):
    """sqrt(-2 log u), u = ((v >> 11) + 1) / 2**53."""
    bits = np.float64((v >> ELEVEN) + ONE).view(np.uint64)  # 2**53 u, exact
    e = (bits - SQRT_HALF) >> MANTISSA  # 2**53 u = 2**e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2))
    f = np.uint64(bits - (e << MANTISSA)).view(np.float64) - 1.0
    k = np.uint64(e | TWO52).view(np.float64) - 4503599627370549.0  # e - 53 as a double
    s = f / (2.0 + f)
    z = s * s
    y = z * z
    R = z * ((L0 + y * (L2 + y * (L4 + y * L6))) + z * (L1 + y * (L3 + y * L5)))
    h = 0.5 * f * f
    return np.sqrt(-2.0 * (k * LOG2 - ((h - (s * (h + R) + k * LOG2_REST)) - f)))  # 2s + s R = f - (h - s (h + R))


@exact
def _cos_sin(w):
    """cos(pi x / 2) and sin(pi x / 2), x = (((w >> 12) | 1) - 2**51) / 2**52."""
    x = np.uint64((w >> TWELVE) | ODD_ABOVE_1).view(np.float64) - 1.5
    z = x * x
    y = z * z
    c = 1.0 + z * ((C0 + y * (C2 + y * (C4 + y * C6))) + z * (C1 + y * (C3 + y * C5)))
    s = x * HALF_PI + x * (HALF_PI_REST + z * ((S0 + y * (S2 + y * S4)) + z * (S1 + y * (S3 + y * S5))))
    return c, s


@kernel(types.void(BLOCK, types.int64, PATHS, types.int64, types.uint64), **EXACT)
def fill_normals(out, first, path, purpose, key):
    """out[r, b] = standard normal number first + r of path[b], of the stream `purpose` of the seed `key`.

    Parameters
    ----------
    out : float64 (R, B)
    first : int64
        0 <= first, first + R < 2**63.
    path : uint64 (B,)
        Each below 2**56.
    purpose : int64
        0..255, see `sgdsde._abi`.
    key : uint64

    A block may be cut in any way, by rows or by columns, without changing a bit. Two numbers share a call of Philox, so
    even `first` and R save up to half the work. Blocks down to 64 numbers are equally fast per number, wide or tall.
    """
    R, B = out.shape
    call, who = local_words(LANES), local_words(LANES)
    v, w = local_words(LANES), local_words(LANES)
    z0, z1 = local_array(LANES), local_array(LANES)
    stream = np.uint64(purpose)
    q0, nq = calls(first, R)
    for start in range(0, nq * B, LANES):
        n = min(LANES, nq * B - start)
        addresses(call, who, start, n, q0, nq, path)
        lanes = padded(n)
        for i in range(lanes):
            v[i], w[i] = words(call[i], who[i], stream, key)
        for i in range(lanes):
            z0[i] = _radius(v[i])
        for i in range(lanes):
            c, s = _cos_sin(w[i])
            r = np.uint64(np.float64(z0[i]).view(np.uint64) ^ ((w[i] << TO_SIGN) & SIGN)).view(np.float64)
            exchange = (w[i] & ONE) != 0
            z0[i] = r * (s if exchange else c)
            z1[i] = r * (c if exchange else s)
        scatter(out, z0, z1, start, n, first, q0, nq)
