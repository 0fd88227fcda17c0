"""The directive `schemes-table`: one row per method, read from the traits at build time."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class SchemesTable(SphinxDirective):
    has_content = False

    def run(self) -> list[nodes.Node]:
        from sgdsde.cli.methods import rows

        head, *body = rows()
        return [_table(head, body)]


def _table(head: list[str], rows: list[list[str]]) -> nodes.table:
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    group += nodes.thead("", _row(head))
    group += nodes.tbody("", *(_row(row) for row in rows))
    return nodes.table("", group, classes=["colwidths-auto"])


def _row(cells: list[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph(text=str(cell))) for cell in cells))


def setup(app: Any) -> dict[str, Any]:
    app.add_directive("schemes-table", SchemesTable)
    return {"version": "1", "parallel_read_safe": True}
