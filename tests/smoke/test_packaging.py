"""The files around the package agree with each other and with what is installed."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest

import sgdsde

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_version_everywhere():
    wanted = PROJECT["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE).group(1) == wanted
    assert re.search(r"^## (\S+)", changes, re.MULTILINE).group(1) == wanted
    try:
        assert version("sgdsde") == wanted == sgdsde.__version__
    except PackageNotFoundError:
        assert sgdsde.__version__ == "0+not.installed"


def test_the_core_is_four_packages():
    names = {re.match(r"[\w-]+", line).group() for line in PROJECT["dependencies"]}
    assert names == {"numpy", "scipy", "numba", "threadpoolctl"}


def test_no_extra_of_a_first_user_pulls_a_framework():
    for extra in ("demo", "plot", "test", "testing", "validation"):
        assert not re.search(r"torch|jax", " ".join(PROJECT["optional-dependencies"][extra]))


def test_installed_files_are_complete():
    # A folder without __init__.py, or data that setup.cfg does not name, is missing from an installed package alone.
    installed, source = Path(sgdsde.__file__).parent, ROOT / "sgdsde"
    for file in source.rglob("*"):
        if file.suffix in (".py", ".typed"):
            assert (installed / file.relative_to(source)).exists(), file


def test_readme_begins_with_the_two_lines():
    lines = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if "pip install" in line]
    assert lines[0] == 'python -m pip install ".[demo]" && sgdsde demo'
    assert lines[1] == 'python -m pip install ".[test]" && python -m pytest -n auto --dist loadfile'


def test_installed_metadata_has_the_extras():
    try:
        lines = requires("sgdsde") or []
    except PackageNotFoundError:
        pytest.skip("sgdsde is on the path without being installed")
    for extra in PROJECT["optional-dependencies"]:
        assert any(f'extra == "{extra}"' in line for line in lines), extra
