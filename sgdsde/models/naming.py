"""The symmetries of a model by name, each made when it is looked up: there may be thousands, of d numbers each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, islice
from typing import Any, Generic, TypeVar

from sgdsde.algebra import Generator

__all__ = ["Family", "Named", "charged"]

T = TypeVar("T")


@dataclass(frozen=True)
class Family(Generic[T]):
    """One symmetry for each pair i < j, or i <= j, of `size` things: "head(i,j)" or "head[i,j]"."""

    head: str
    """With the bracket that opens."""
    size: int
    make: Callable[[int, int, str], T]
    """(i, j, name) -> the symmetry."""
    charged: bool = False
    """Whether they are linear and symmetric, and so have charges."""
    twice: bool = False
    """i = j, too."""

    @property
    def tail(self) -> str:
        return {"(": ")", "[": "]"}[self.head[-1]]

    def __len__(self) -> int:
        return self.size * (self.size + (1 if self.twice else -1)) // 2

    def __iter__(self) -> Iterator[str]:
        pairs = combinations_with_replacement if self.twice else combinations
        return (f"{self.head}{i},{j}{self.tail}" for i, j in pairs(range(self.size), 2))

    def has(self, i: int, j: int) -> bool:
        return 0 <= i < j < self.size or (self.twice and 0 <= i == j < self.size)


class Named(Mapping[str, T], Generic[T]):
    """Name -> symmetry: some made by functions of their own, then families of pairs.

    Parameters
    ----------
    own : mapping
        Name -> function that makes it.
    families : iterable of Family
    """

    def __init__(self, own: Mapping[str, Callable[[], T]], families: Iterable[Family[T]] = ()) -> None:
        self._own = dict(own)
        self._families = {one.head: one for one in families if len(one)}

    def __getitem__(self, name: str) -> T:
        if name in self._own:
            return self._own[name]()
        read = re.fullmatch(r"(.*[\[(])(0|[1-9]\d*),(0|[1-9]\d*)[\])]", name) if isinstance(name, str) else None
        family = self._families.get(read[1]) if read else None
        if (
            read is None
            or family is None
            or not name.endswith(family.tail)
            or not family.has(int(read[2]), int(read[3]))
        ):
            raise KeyError(name)
        return family.make(int(read[2]), int(read[3]), name)

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        for family in self._families.values():
            yield from family

    def __len__(self) -> int:
        return len(self._own) + sum(map(len, self._families.values()))

    def __repr__(self) -> str:
        if not len(self):
            return "<no symmetries>"
        names = list(islice(self, 7))
        return f"<{len(self)} symmetries: {', '.join(names[:6])}{', …' if len(names) > 6 else ''}>"

    def charged(self) -> Named[T]:
        """Those with a charge θᵀAθ: linear and symmetric."""
        own = {name: make for name, make in self._own.items() if _has_charge(make())}
        return Named(own, [one for one in self._families.values() if one.charged])

    def but(self, kind: str) -> Named[T]:
        """All but the families with `kind` in their heads."""
        return Named(self._own, [one for head, one in self._families.items() if kind not in head])


def charged(symmetries: Mapping[str, Any], most: int | None = None) -> dict[str, Any]:
    """The generators with a charge θᵀAθ among a model's symmetries, the first `most` of them."""
    if isinstance(symmetries, Named):
        symmetries = symmetries.charged()
    return dict(islice(((name, a) for name, a in symmetries.items() if _has_charge(a)), most))


def _has_charge(a: Any) -> bool:
    return isinstance(a, Generator) and a.is_symmetric
