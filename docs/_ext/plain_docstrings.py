"""Docstrings are written for a terminal: `code` in single backticks, |x| and θ* as in mathematics, formulas indented.

This makes reStructuredText of them: code becomes literal, * | and a final _ are escaped, and an indented stretch
outside the sections that describe arguments becomes a literal block. Doctests are left alone.
"""

from __future__ import annotations

import re
from typing import Any

DOCTEST = r"^[ ]*>>> .*(?:\n.*\S.*)*"
LITERAL = r"``.+?``"
ROLE = r":[\w:]+:`[^`]+`"
CODE = r"`[^`\n]+(?:\n[^`\n]+)?`"
TOKEN = re.compile(rf"(?P<keep>{DOCTEST}|{LITERAL}|{ROLE})|(?P<code>{CODE})", re.MULTILINE)
MARKUP = re.compile(r"[*|]|(?<=\w)_(?!\w)")
FIELDS = {"Parameters", "Other Parameters", "Returns", "Yields", "Attributes", "Raises", "Warns", "See Also", "Methods"}


def escape(text: str) -> str:
    """Code to literals, letters that reStructuredText would read as markup escaped."""
    out, end = [], 0
    for found in TOKEN.finditer(text):
        out.append(MARKUP.sub(r"\\\g<0>", text[end : found.start()]))
        out.append(found["keep"] or _literal(text, found))
        end = found.end()
    out.append(MARKUP.sub(r"\\\g<0>", text[end:]))
    return "".join(out)


def _literal(text: str, found: re.Match[str]) -> str:
    """A literal, parted by an escaped blank from a letter that touches it: `x`(t), 2`x`."""
    before, after = text[: found.start()][-1:], text[found.end() :][:1]
    left = "\\ " if before.isalnum() else ""
    right = "\\ " if after.isalnum() or after == "(" else ""
    return f"{left}``{' '.join(found['code'][1:-1].split())}``{right}"


def display(lines: list[str]) -> list[str]:
    """Lines with indented stretches outside of field sections made literal blocks."""
    out: list[str] = []
    fields = literal = doctest = False
    for k, line in enumerate(lines):
        following = lines[k + 1] if k + 1 < len(lines) else ""
        if re.fullmatch(r"-{3,}", following):
            fields = line in FIELDS
        doctest = bool(line.strip()) and (doctest or line.lstrip().startswith(">>>"))
        indented = line.startswith(" ") and not fields and not doctest
        if indented and not literal:
            out += ["", "::", ""]
        elif literal and line.strip() and not indented:
            out.append("")
        literal = indented or (literal and not line.strip())
        out.append(line)
    return out


def blocks(lines: list[str]) -> list[str]:
    """The whole treatment: `display`, then `escape` on what is not literal."""
    out: list[str] = []
    plain: list[str] = []
    literal = False
    for line in [*display(lines), ""]:
        if literal and (line.startswith(" ") or not line.strip()):
            out.append(line)
            continue
        literal = line == "::"
        if literal:
            out += [*escape("\n".join(plain)).split("\n"), line]
            plain = []
        else:
            plain.append(line)
    return out + escape("\n".join(plain)).split("\n")


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = blocks(lines)


def setup(app: Any) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", process, priority=100)  # before napoleon reads the sections
    return {"version": "1", "parallel_read_safe": True}
