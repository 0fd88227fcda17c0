"""The command line: what it prints, and how it refuses."""

import os
import subprocess
import sys

import pytest

import sgdsde
from sgdsde import cli

COMMANDS = {"methods", "doctor", "warmup", "demo"}


def test_commands_are_found_by_name():
    assert set(cli.pages()) == COMMANDS


def test_every_page_offers_what_a_command_needs():
    help_text = cli.parser(cli.pages()).format_help()
    for name in cli.pages():
        assert name in help_text


def test_only_the_page_that_is_asked_for_is_imported():
    code = "import sys; from sgdsde.cli import main; main(['methods', '--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "sgdsde.cli.methods" in done.stdout.split()
    assert not {"sgdsde.cli.demo", "numba", "matplotlib"} & set(done.stdout.split())


def test_methods_prints_every_scheme_with_its_orders(capsys):
    assert cli.main(["methods"]) == 0
    text = capsys.readouterr().out
    for name in ("euler-maruyama", "milstein", "milstein-symmetric", "heun"):
        assert any(line.startswith(name + " ") for line in text.splitlines()), name


def test_methods_from_a_new_process():
    done = subprocess.run([sys.executable, "-m", "sgdsde", "methods"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
    assert "heun" in done.stdout


def test_doctor_finds_this_installation_well(capsys):
    code = cli.main(["doctor"])
    text = capsys.readouterr().out
    assert code == 0, text
    for word in ("numpy", "scipy", "numba", "llvmlite", "threadpoolctl", "processors", "BLAS", "cache folder", "SVML"):
        assert word in text
    assert text.splitlines()[-1] == "all is well"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX only: a folder below a file cannot be made")
def test_doctor_says_that_the_cache_cannot_be_written(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(blocker / "cache")}
    command = [sys.executable, "-c", "from sgdsde.cli import doctor; print(*list(doctor._compiler())[-1], sep='|')"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.startswith(f"cache folder|NUMBA_CACHE_DIR={blocker / 'cache'} cannot be written")
    assert done.stdout.rstrip().endswith("|False")


def test_doctor_says_that_there_is_no_cache(monkeypatch):
    from numba.core import caching

    from sgdsde.cli import doctor

    def refuse(function):
        raise RuntimeError("cannot cache function 'kernel': no locator available")

    monkeypatch.setattr(caching, "CompileResultCacheImpl", refuse)
    what, found, well = list(doctor._compiler())[-1]
    assert (what, well) == ("cache folder", False) and "cannot cache" in found and "NUMBA_CACHE_DIR" in found


def test_doctor_fails_when_a_test_fails(monkeypatch, capsys):
    from sgdsde.cli import doctor

    monkeypatch.setattr(doctor, "_known_numbers", lambda: "not the known numbers")
    assert cli.main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "not the known numbers" in text and text.splitlines()[-1] == "1 thing wrong"


def test_warmup_reports_modules_with_kernels(capsys):
    assert cli.main(["warmup"]) == 0
    assert any(line.startswith("sgdsde.run.engine ") for line in capsys.readouterr().out.splitlines())


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"sgdsde {sgdsde.__version__}\n"


@pytest.mark.parametrize(
    "words, about",
    [
        ([], "a command is needed"),
        (["metods"], "metods"),
        (["methods", "--wrong"], "--wrong"),
        (["demo", "--paths", "x"], "paths"),
    ],
)
def test_bad_arguments_get_one_line(words, about, capsys):
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert about in err and err.count("\n") == 1


@pytest.mark.parametrize(
    "error, code, about",
    [
        (sgdsde.ArgumentError("--gamma must be positive,\ngot -1"), 2, "--gamma must be positive, got -1"),
        (ModuleNotFoundError("no", name="sklearn.datasets"), 1, "'sklearn'"),
        (PermissionError(13, "Permission denied", "/out"), 1, "Permission denied"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_a_person_can_do_something_about_is_one_line(error, code, about, monkeypatch, capsys):
    from sgdsde.cli import methods

    def fail(args):
        raise error

    monkeypatch.setattr(methods, "run", fail)
    assert cli.main(["methods"]) == code
    err = capsys.readouterr().err
    assert err.startswith("sgdsde methods: ") and about in err and err.count("\n") == 1


def test_a_fault_of_the_package_keeps_its_traceback(monkeypatch):
    from sgdsde.cli import methods

    monkeypatch.setattr(methods, "run", lambda args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.main(["methods"])
