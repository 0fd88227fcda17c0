"""Every python block of README.md and docs/ runs. The blocks of a page are one script, from top to bottom.

A block after a line `<!-- not run: reason -->` is left out.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)]
BLOCK = re.compile(r"^(<!-- not run: [^\n]+ -->\n+)?```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def script(page):
    """The python blocks of a page, each on its own lines, so that a traceback names the line of the page."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * text.count("\n")
    for skipped, code in ((m.group(1), m) for m in BLOCK.finditer(text)):
        if not skipped:
            first = text.count("\n", 0, code.start(2))
            for k, line in enumerate(code.group(2).splitlines()):
                lines[first + k] = line
    return "\n".join(lines) + "\n"


WITH_CODE = [page for page in PAGES if script(page).strip()]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(script(page), str(page), "exec"), {"__name__": "page"})


def test_blocks_are_found():
    # A fence that the pattern misses would silently not be run.
    fences = sum(page.read_text(encoding="utf-8").count("```python") for page in PAGES)
    assert fences == sum(len(BLOCK.findall(page.read_text(encoding="utf-8"))) for page in PAGES) > 10


def test_a_failing_block_is_named_by_its_line(tmp_path):
    page = tmp_path / "page.md"
    left_out = "<!-- not run: shown only -->\n```python\nraise SystemExit\n```\n"
    page.write_text(f"text\n\n```python\nx = 1\n```\n\n{left_out}\n```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        exec(compile(script(page), str(page), "exec"), {})
    assert caught.traceback[-1].lineno + 1 == 13
