"""The command line: `sgdsde methods`, `doctor`, `warmup`, `demo`. A command is a page of this folder.

A page has a docstring (its first line is the help), `add_arguments(parser)` and `run(args) -> int`, the exit code. It
is found by its name and imported only when it is asked for, so a page imports what is slow inside `run`.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from sgdsde._errors import SgdsdeError

__all__ = ["main"]


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def pages() -> list[str]:
    """The commands: names of the pages of this folder, sorted."""
    return sorted(page.name for page in pkgutil.iter_modules(__path__) if not page.name.startswith("_"))


def parser(names: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the commands in `names`; only their pages are imported."""
    top = Parser(prog="sgdsde", description=(import_module("sgdsde").__doc__ or "").splitlines()[0], allow_abbrev=False)
    top.add_argument("--version", action="store_true", help="print the version and leave")
    commands = top.add_subparsers(metavar="command", dest="command")
    for name in names:
        page = import_module(f"{__name__}.{name}")
        text = page.__doc__ or ""
        one = commands.add_parser(
            name,
            help=text.splitlines()[0].rstrip("."),
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        page.add_arguments(one)
        one.set_defaults(run=page.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 1 when something failed, 2 when an argument cannot be used."""
    words = list(sys.argv[1:] if argv is None else argv)
    known = pages()
    wanted = words[:1] if words and words[0] in known else known
    try:
        args = parser(wanted).parse_args(words)
    except SystemExit as leave:  # argparse has said why
        return int(leave.code or 0)
    if args.version:
        print(f"sgdsde {import_module('sgdsde').__version__}")
        return 0
    if args.command is None:
        return _complain("sgdsde", f"a command is needed: {', '.join(known)} (see sgdsde --help)", 2)
    return _guarded(args)


def _guarded(args: argparse.Namespace) -> int:
    """Run a page; what a person can do something about becomes one line in place of a traceback."""
    name = f"sgdsde {args.command}"
    try:
        code = args.run(args)
        sys.stdout.flush()
        return int(code or 0)
    except SgdsdeError as error:
        return _complain(name, " ".join(str(error).split()), 2)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "sgdsde"):
            raise
        return _complain(name, f"needs the package {package!r}, which is not installed: install sgdsde[demo]", 1)
    except BrokenPipeError:  # `sgdsde methods | head -1`: the reader left, nothing is wrong
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _complain(name, str(error), 1)
    except KeyboardInterrupt:
        return _complain(name, "interrupted", 130)


def _complain(name: str, message: str, code: int) -> int:
    print(f"{name}: {message}", file=sys.stderr)
    return code
