"""Cached machine code is thrown away when anything that it is made of changes, not only its own file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from sgdsde.random.normal import fill_normals
print(sum(fill_normals.stats.cache_hits.values()), sum(fill_normals.stats.cache_misses.values()))
"""


@pytest.fixture
def copied(tmp_path):
    """The package's ground and random rooms in a folder of their own, with a cache of their own."""
    import sgdsde

    source = Path(sgdsde.__file__).parent
    target = tmp_path / "sgdsde"
    (target / "random").mkdir(parents=True)
    (target / "__init__.py").write_text("")
    for file in (*source.glob("_*.py"), *(source / "random").glob("*.py")):
        if file.name not in ("__init__.py", "__main__.py"):
            (target / file.relative_to(source)).write_text(file.read_text())
    (target / "random" / "__init__.py").write_text("")

    def run() -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return target, run


def test_an_edit_of_an_inlined_function_in_another_file_compiles_anew(copied):
    package, run = copied
    assert run() == "0 1"
    assert run() == "1 0"
    philox = package / "random" / "philox.py"
    philox.write_text(philox.read_text() + "\n# another comment is another file\n")
    assert run() == "0 1"
    assert run() == "1 0"


def test_an_edit_of_a_file_it_does_not_use_does_not(copied):
    package, run = copied
    assert run() == "0 1"
    stream = package / "random" / "integers.py"
    stream.write_text(stream.read_text() + "\n# not used by normals\n")
    assert run() == "1 0"
