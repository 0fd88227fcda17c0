"""`import sgdsde` is cheap, and what it promises is there: names, rooms, documentation, types."""

import ast
import inspect
import subprocess
import sys
import types
from pathlib import Path

import pytest

import sgdsde

SOURCE = Path(sgdsde.__file__).read_text(encoding="utf-8")


def fresh(code):
    """What a new process prints that runs `code`."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_import_loads_nothing_heavy():
    loaded = set(fresh("import sys, sgdsde; print(*sys.modules)"))
    heavy = {"numpy", "scipy", "numba", "matplotlib", "torch", "jax", "sklearn", "hypothesis", "sdeint"}
    assert "sgdsde" in loaded
    assert not loaded & heavy


def test_import_takes_less_than_a_second():
    code = "import time; s = time.perf_counter(); import sgdsde; print(time.perf_counter() - s)"
    assert min(float(fresh(code)[0]) for _ in range(3)) < 1.0


def test_rooms_that_describe_a_problem_compile_nothing():
    # An SDE and a generator can be written down before any kernel of the engine is there.
    code = "import sys, sgdsde; sgdsde.SDE, sgdsde.Generator, sgdsde.models; print(*sys.modules)"
    assert "sgdsde.run.engine" not in fresh(code)


def test_heavy_optional_packages_stay_out_of_a_run():
    code = "import sys, sgdsde as sg; [getattr(sg, n) for n in sg._NAMES]; print(*sys.modules)"
    assert not set(fresh(code)) & {"matplotlib", "torch", "jax", "sklearn", "hypothesis", "sdeint"}


def test_names_for_type_checkers_are_the_names_at_run_time():
    guard = next(node for node in ast.parse(SOURCE).body if isinstance(node, ast.If))
    shown = {}
    for node in guard.body:
        if isinstance(node, ast.ImportFrom):
            shown.update({alias.asname: node.module for alias in node.names})
    rooms = {name for name, module in shown.items() if module == "sgdsde"}
    assert rooms == set(sgdsde._ROOMS)
    assert {name: module for name, module in shown.items() if name not in rooms} == sgdsde._NAMES


def test_dir_lists_every_name():
    assert set(sgdsde.__all__) <= set(dir(sgdsde))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = sgdsde.no_such_name


@pytest.mark.parametrize("name", sgdsde._ROOMS)
def test_rooms_are_modules(name):
    assert isinstance(getattr(sgdsde, name), types.ModuleType)


@pytest.mark.parametrize("name", sorted(sgdsde._NAMES))
def test_public_names_are_documented_and_typed(name):
    value = getattr(sgdsde, name)
    assert (inspect.getdoc(value) or "").strip(), f"{name} has no docstring"
    if inspect.isfunction(value):
        signature = inspect.signature(value)
        bare = [p.name for p in signature.parameters.values() if p.annotation is p.empty]
        assert not bare, f"{name}: no type for {bare}"
        assert signature.return_annotation is not signature.empty, f"{name}: no type for what it returns"


def test_every_folder_says_what_it_is_for():
    root = Path(sgdsde.__file__).parent
    for folder in {file.parent for file in root.rglob("*.py")} - {root}:
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
        assert text, f"{folder.name}/__init__.py has no docstring"


def test_no_file_is_long():
    root = Path(sgdsde.__file__).parent
    lengths = {file.relative_to(root): file.read_text(encoding="utf-8").count("\n") for file in root.rglob("*.py")}
    assert {file: lines for file, lines in lengths.items() if lines > 350} == {}
