"""The examples in the docstrings of every module of the package.

An ordinary test in place of `--doctest-modules`: it runs the examples of the package that is imported, installed or
not, and never imports a second copy of a module from the source folder.
"""

import doctest
import importlib
import importlib.util
import pkgutil

import pytest

import sgdsde

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
LEFT_OUT = ["__main__", *(f"_foreign_{name}" for name in ("torch", "jax") if importlib.util.find_spec(name) is None)]
MODULES = [m.name for m in pkgutil.walk_packages(sgdsde.__path__, "sgdsde.") if m.name.split(".")[-1] not in LEFT_OUT]
MODULES.insert(0, "sgdsde")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = []
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name)):
        runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_the_package_has_examples():
    finder = doctest.DocTestFinder()
    counts = [len(t.examples) for name in MODULES for t in finder.find(importlib.import_module(name))]
    assert sum(counts) > 50
