"""The pictures of docs/symmetries: each is drawn by the script, kept as a file, and shown by its page."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def script():
    spec = importlib.util.spec_from_file_location("symmetries_figures", DOCS / "_figures" / "symmetries.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_files_and_pages_are_the_same():
    names = set(script().PICTURES)
    files = {path.stem.removeprefix("symmetry_"): path for path in (DOCS / "_static").glob("symmetry_*.svg")}
    assert set(files) == names
    assert all(path.stat().st_size < 60_000 for path in files.values())
    assert {path.stem for path in (DOCS / "symmetries").glob("*.md")} == names | {"index"}
    index = (DOCS / "symmetries" / "index.md").read_text(encoding="utf-8")
    for name in names:
        assert f"](../_static/symmetry_{name}.svg)" in (DOCS / "symmetries" / f"{name}.md").read_text(encoding="utf-8")
        assert f"]({name}.md)" in index and f"\n{name}\n" in index
