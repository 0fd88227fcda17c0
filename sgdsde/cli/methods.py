"""Print the table of methods: calculus, orders for each kind of noise, cost, source.

A cell of a noise kind shows strong / weak order, a dash for strong order where paths do not converge; a kind that the
method refuses shows a dash alone.
"""

from __future__ import annotations

import argparse
import textwrap

__all__ = ["add_arguments", "rows", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace) -> int:
    """Print the table, then a line or two about each method."""
    from sgdsde.schemes import table

    cells = rows()
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print("\nFor each kind of noise: strong / weak order; - / weak where paths do not converge; - where it is refused.")
    for one in table():
        print(f"\n{one['name']}")
        about = (one["summary"], f"Source: {one['reference']}" if one["reference"] else "")
        for text in filter(None, about):
            print(textwrap.fill(text, 100, initial_indent="    ", subsequent_indent="    "))
    return 0


def rows() -> list[list[str]]:
    """The head and one row of cells for each method; the docs show the same."""
    from sgdsde.schemes import NOISE_KINDS, table

    head = ["method", "calculus", *NOISE_KINDS, "ODE", "evaluations a step"]
    body = [
        [
            one["name"],
            one["calculus"],
            *(_orders(one["strong"].get(kind), one["weak"].get(kind)) for kind in NOISE_KINDS),
            f"{one['ode_order']:g}",
            one["evaluations"],
        ]
        for one in table()
    ]
    return [head, *body]


def _orders(strong: float | None, weak: float | None) -> str:
    if strong is None and weak is None:
        return "-"
    return " / ".join("?" if order is None else f"{order:g}" if order else "-" for order in (strong, weak))
