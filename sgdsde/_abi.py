"""The signatures through which the one compiled engine talks to schemes, equations, observers and trackers.

A run moves a *block* of B paths side by side. A state is an array (d, B), C-contiguous, column b is one path; noise is
(m, B); `t` and `h` are (B,), one time and one step length per path. All kernels are `numba.types.FunctionType` values
of the signatures below: the engine is compiled once per machine and serves every scheme and equation.

`p` holds an equation's numbers and `data` its arrays (flattened); both belong to the kernel they are passed to. `work`
is scratch: its contents are undefined on entry and worthless on return. A caller that uses scratch itself takes the
front of `work` and hands the rest on; how much a kernel needs is declared beside it (`Kernels.work`, `Scheme.work`).
No kernel allocates per step, raises, reads a column other than the one it writes, or writes outside `out`/`x`/`work`.

INCREMENT(out[d,B], x[d,B], t[B], h[B], v[m,B], p, data, work)
    out = f(t, x)·h + G(t, x)·v, column by column. h = 0 gives the noise alone, v = 0 the drift; neither may divide by
    h. `out` never overlaps `x`.
CORRECTION(out[d,B], x[d,B], t[B], p, data, work)
    out = ½ Σ_j (b_j·∇) b_j, with b = G the whole noise coefficient (for SGD √(2σ²)G, so (σ²/2)∇Tr Σ for the per-sample
    factor). Itô drift = Stratonovich drift + this.
STEP(increment, correction, x[d,B], t[B], h[B], dW[m,B], aux[r,B], status[B], work, p, data)
    advances x in place from t to t + h. h > 0 in every column, also in idle ones (the engine puts back their state).
    `aux` holds what the scheme's `aux` asks for beyond dW, filled by an AUX kernel. status has 2B entries: a scheme
    that fails in column b sets status[b] to a code of `_errors` and leaves the other columns alone; an implicit scheme
    freezes each column at its own convergence. status[B + b] counts events that a person should know of (normal
    numbers that an implicit step clipped); a step adds to it.
PROJECT(x[d,B], x0[d,B], t[B], h[B], status[2B], p, data, work)
    after a step from (t, x0) to (t + h, x): moves x in place to where it must be. A column that it cannot move gets a
    code in status[b].
AUX(aux[r,B], dW[m,B], h[B], path[B], step, key, p, data, work)
    fills aux for step number `step` of the paths numbered `path` from the random stream of `key`; addressed, so that
    the same (key, path, step) gives the same numbers whatever the block.
OBSERVE(out[q,B], x[d,B], t[B], p, data, work)
    q numbers of a state, at the times that are saved.
TRACK(acc[q,B], x0[d,B], x1[d,B], t[B], h[B], p, data, work)
    adds to the accumulators what the step from (t, x0) to (t + h, x1) contributes.
"""

from __future__ import annotations

from numba import types

VECTOR = types.float64[::1]
BLOCK = types.float64[:, ::1]
INTS = types.int64[::1]
PATHS = types.uint64[::1]

INCREMENT = types.void(BLOCK, BLOCK, VECTOR, VECTOR, BLOCK, VECTOR, VECTOR, VECTOR)
CORRECTION = types.void(BLOCK, BLOCK, VECTOR, VECTOR, VECTOR, VECTOR)
STEP = types.void(
    types.FunctionType(INCREMENT),
    types.FunctionType(CORRECTION),
    BLOCK,
    VECTOR,
    VECTOR,
    BLOCK,
    BLOCK,
    INTS,
    VECTOR,
    VECTOR,
    VECTOR,
)
AUX = types.void(BLOCK, BLOCK, VECTOR, PATHS, types.int64, types.uint64, VECTOR, VECTOR, VECTOR)
PROJECT = types.void(BLOCK, BLOCK, VECTOR, VECTOR, INTS, VECTOR, VECTOR, VECTOR)
OBSERVE = types.void(BLOCK, BLOCK, VECTOR, VECTOR, VECTOR, VECTOR)
TRACK = types.void(BLOCK, BLOCK, BLOCK, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR)

# Purposes: streams of random numbers that share a key and a path but never a number (random/philox.py).
DRIVING = 0  # the Brownian increments of the grid
BRIDGE = 1  # Brownian bridges to save times between grid points
BATCH = 2  # mini-batch indices of discrete SGD
AUXILIARY = 3  # what schemes need beyond increments (areas, two-point variables)
INITIAL = 4  # random initial states
REFINEMENT = 5  # Brownian bridges to the ends of steps that depend on the state
