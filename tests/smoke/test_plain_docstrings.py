"""docs/_ext/plain_docstrings.py: docstrings as they are written, made reStructuredText."""

import importlib.util
from pathlib import Path

import pytest

PLACE = Path(__file__).parents[2] / "docs" / "_ext" / "plain_docstrings.py"
SPEC = importlib.util.spec_from_file_location("plain_docstrings", PLACE)
plain = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(plain)


@pytest.mark.parametrize(
    "written, wanted",
    [
        ("a `name` here", "a ``name`` here"),
        ("``rng=2**64`` stays", "``rng=2**64`` stays"),
        ("|θ| <= 2**64, λ*", r"\|θ\| <= 2\*\*64, λ\*"),
        ("g_ but not W_1", r"g\_ but not W_1"),
        ("`x`(t) and 2`x`", "``x``\\ (t) and 2\\ ``x``"),
        ("a `long\nname` on two lines", "a ``long name`` on two lines"),
        (":class:`sgdsde.SDE`", ":class:`sgdsde.SDE`"),
        (">>> f(*args)\n|x|\n\n|x|", ">>> f(*args)\n|x|\n\n" + r"\|x\|"),
    ],
)
def test_escape(written, wanted):
    assert plain.escape(written) == wanted


def test_indented_formula_becomes_a_literal_block():
    out = plain.blocks(["The law is", "    C* = |x|", "and `C`."])
    assert [line for line in out if line] == ["The law is", "::", "    C* = |x|", "and ``C``."]
    assert out[out.index("::") + 1] == "" == out[out.index("::") - 1]


def test_descriptions_of_arguments_stay_descriptions():
    lines = ["Do.", "", "Parameters", "----------", "x : float", "    With *any* sign."]
    out = plain.blocks(lines)
    assert "::" not in out
    assert r"    With \*any\* sign." in out


def test_outputs_of_doctests_are_not_literal_blocks():
    lines = ["Examples", "--------", ">>> table()", "    a b", "    c d", "", "End."]
    assert plain.blocks(lines)[: len(lines)] == lines
