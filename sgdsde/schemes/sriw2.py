"""SRIW2: Rößler's method of strong order 1.5 for scalar and diagonal Itô noise whose drift has order 3.

    H⁰₂ = Y + a₁ h                                    a₁ = a(t, Y),  b₁ = b(t, Y),    a₂ = a(t+h, H⁰₂)
    H¹₂ = Y + ¼ a₁ h − ½ b₁ √h                                                        b₂ = b(t+¼h, H¹₂)
    H⁰₃ = Y + ¼ (a₁ + a₂) h + (b₁ + ½ b₂) u                                           a₃ = a(t+½h, H⁰₃)
    H¹₃ = Y +   a₁ h + b₁ √h                                                          b₃ = b(t+h, H¹₃)
    H¹₄ = Y + ¼ a₃ h + (2 b₁ − b₂ + ½ b₃) √h                                          b₄ = b(t+¼h, H¹₄)
    Y'  = Y + (⅙ a₁ + ⅙ a₂ + ⅔ a₃) h + (−b₁ + 4/3 b₂ + ⅔ b₃) ΔW + (b₁ − 4/3 b₂ + ⅓ b₃) I₁₁/√h
            + (2 b₁ − 4/3 b₂ − ⅔ b₃) u + (−2 b₁ + 5/3 b₂ − ⅔ b₃ + b₄) I₁₁₁/h                        Rößler 2010, SRIW2

    I₁₁ = ½(ΔW² − h), I₁₁₁ = (ΔW³ − 3hΔW)/6, u = I₁₀/h = ½ΔW + H, H the space-time area

Strong order 1.5. Weak order 1.5, 2.0 when the noise is additive, as for `sriw1`. 'Diagonal' as in Kloeden & Platen:
m = d, and b^i has component i alone, a function of y_i alone. With no noise it has order 3, which is what it is for:
small noise. Additive noise, of any m: it is `sra3`, whose drifts and supports are these, for less noise.

Cost: 7 increments, of which 3 are drifts alone and 4 are noises alone. As many normal numbers again as ΔW has, for H.

Not for: commutative and general noise, which are refused (`sri2`, `milstein`), and noise that is diagonal as a matrix
while entry i depends on other components; Stratonovich equations (convert with `to_ito`); noise that is not small,
where `sriw1` errs no more and costs less.
"""

from __future__ import annotations

from sgdsde._abi import STEP
from sgdsde._jit import kernel
from sgdsde.schemes import _sri, sra3
from sgdsde.schemes._aux import space_time
from sgdsde.schemes._scheme import Scheme

__all__ = ["SCHEME", "TABLEAU", "step"]

TABLEAU = _sri.SRI(
    A0=((0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (1 / 4, 1 / 4, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)),
    A1=((0.0, 0.0, 0.0, 0.0), (1 / 4, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 1 / 4, 0.0)),
    B0=((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), (1.0, 1 / 2, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)),
    B1=((0.0, 0.0, 0.0, 0.0), (-1 / 2, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (2.0, -1.0, 1 / 2, 0.0)),
    alpha=(1 / 6, 1 / 6, 2 / 3, 0.0),
    c0=(0.0, 1.0, 1 / 2, 0.0),
    c1=(0.0, 1 / 4, 1.0, 1 / 4),
    beta1=(-1.0, 4 / 3, 2 / 3, 0.0),
    beta2=(1.0, -4 / 3, 1 / 3, 0.0),
    beta3=(2.0, -4 / 3, -2 / 3, 0.0),
    beta4=(-2.0, 5 / 3, -2 / 3, 1.0),
)


@kernel(STEP)
def step(increment, correction, x, t, h, dW, aux, status, work, p, data):
    _sri.advance(TABLEAU, increment, x, t, h, dW, aux, work, p, data)


SCHEME = Scheme(
    "sriw2",
    {
        ("additive", "ito"): sra3.step,
        ("additive", "stratonovich"): sra3.step,
        ("scalar", "ito"): step,
        ("diagonal", "ito"): step,
    },
    calculus=("ito",),
    strong={"additive": 1.5, "scalar": 1.5, "diagonal": 1.5},
    weak={"additive": 2.0, "scalar": 1.5, "diagonal": 1.5},
    aux=space_time(),
    work=_sri.work(sra3.SCHEME.work),
    evaluations="3 drifts, 4 noises; additive 3 drifts, 3 noises",
    ode_order=3,
    reference="Rößler 2010, SIAM J. Numer. Anal. 48, 922, SRIW2",
    summary="strong order 1.5 for scalar and diagonal noise, order 3 without",
    extra=_sri.REFUSED,
)
