"""`hold`: two arrays agree to a tolerance, or a BrokenLaw says where they do not, by how much, and from what inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["BrokenLaw", "hold"]


class BrokenLaw(AssertionError):
    """A law that does not hold, with a witness.

    Attributes
    ----------
    law : str
    got, wanted, tolerance : float
        At the worst place.
    index : tuple of int
        Where that is in the array compared.
    witness : dict
        The inputs: problem, generator, theta, …
    """

    def __init__(
        self, law: str, got: float, wanted: float, tolerance: float, index: tuple[int, ...], witness: dict[str, Any]
    ) -> None:
        self.law, self.got, self.wanted, self.tolerance = law, got, wanted, tolerance
        self.index, self.witness = index, witness
        super().__init__(str(self))

    def __reduce__(self) -> Any:
        return BrokenLaw, (self.law, self.got, self.wanted, self.tolerance, self.index, self.witness)

    def __str__(self) -> str:
        error = abs(self.got - self.wanted)
        lines = [
            f"{self.law}: got {self.got!r}, wanted {self.wanted!r}",
            f"  error {error:.3g}, {error / self.tolerance if self.tolerance else np.inf:.3g} times the tolerance "
            f"{self.tolerance:.3g}",
        ]
        if self.index:
            lines.append(f"  at index {', '.join(map(str, self.index))}")
        return "\n".join(lines + [f"  {name} = {_words(value)}" for name, value in self.witness.items()])


def hold(law: str, got: Any, wanted: Any, tolerance: Any, **witness: Any) -> float:
    """The largest |got - wanted| / tolerance, if it is at most 1; otherwise raises a BrokenLaw.

    A number that is not finite breaks every law. Witnesses that are functions are called with the index of the worst
    place.
    """
    got, wanted, tolerance = (np.asarray(a, dtype=np.float64) for a in (got, wanted, tolerance))
    got, wanted, tolerance = np.broadcast_arrays(got, wanted, tolerance)
    if not got.size:
        return 0.0
    error = np.abs(got - wanted)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error == 0, 0.0, error / tolerance)
    ratio = np.where(np.isnan(ratio), np.inf, ratio)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(ratio)), ratio.shape))
    if ratio[index] > 1:
        said = {name: value(index) if callable(value) else value for name, value in witness.items()}
        raise BrokenLaw(law, float(got[index]), float(wanted[index]), float(tolerance[index]), index, said)
    return float(ratio[index])


def _words(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, separator=", ", floatmode="unique", threshold=100, max_line_width=110)
    return repr(value)
