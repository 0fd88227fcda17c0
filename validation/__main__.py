"""`python -m validation`: run the claims, print their tables, write a report, and exit non-zero if one fails.

Results are kept in the folder of `--out` and used again as long as neither the code, the settings nor the seed changed,
so that a run that was stopped goes on where it was; `--fresh` computes all anew.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import validation
from validation import _markdown, _runner, _table
from validation._report import write

SEEDS = {"quick": "1", "full": "1,2,3"}


def arguments(words: Sequence[str] | None, every: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m validation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="claim", help=f"which: {', '.join(every)} (all)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small settings and one seed, minutes (the default)")
    size.add_argument("--full", action="store_true", help="the large settings and three seeds, up to an hour")
    parser.add_argument("--seeds", help="such as 1,2,3 (quick: 1; full: 1,2,3)")
    parser.add_argument("--jobs", type=int, help="claims at a time, each in a process (as many as there are cores)")
    parser.add_argument("--out", type=Path, default=Path("validation-report"), help="folder for report and results")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the table of claims as Markdown too")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--fresh", action="store_true", help="compute all anew, whatever is kept")
    again.add_argument("--resume", action="store_true", help="use results that are kept (the default, said aloud)")
    parser.add_argument("--list", action="store_true", help="name the claims and leave")
    args = parser.parse_args(words)
    for name in args.names:
        if name not in every:
            parser.error(f"no claim {name!r}; there are {', '.join(every)}")
    args.size = "full" if args.full else "quick"
    try:
        args.seeds = [int(seed) for seed in (args.seeds or SEEDS[args.size]).split(",")]
    except ValueError:
        parser.error(f"--seeds must be whole numbers with commas between, got {args.seeds!r}")
    if min(args.seeds) < 0 or len(set(args.seeds)) < len(args.seeds):
        parser.error(f"--seeds must be different and at least 0, got {args.seeds}")
    if args.jobs is not None and args.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {args.jobs}")
    return args


def main(words: Sequence[str] | None = None, package: ModuleType = validation) -> int:
    """Run what the words ask for: 0 when every check is as it must be, 1 when one is not, 130 when interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    modules = _runner.claims(package)
    args = arguments(words, list(modules))
    if args.list:
        print("\n".join(f"{name:<26} {_runner.load(module).statement}" for name, module in modules.items()))
        return 0
    names = list(dict.fromkeys(args.names)) or list(modules)
    if args.jobs is None:
        from sgdsde.run.executor import available_cores

        args.jobs = available_cores()
    tasks = _runner.plan(modules, names, args.size, args.seeds)
    found: dict[str, list] = {name: [] for name in names}
    begin, n_kept, stopped = time.perf_counter(), 0, False

    def tell(text: str) -> None:
        print(f"[{sum(map(len, found.values()))}/{len(tasks)}] {text}", file=sys.stderr, flush=True)

    try:
        for task, outcome, again in _runner.run_all(tasks, args.out, args.jobs, fresh=args.fresh, tell=tell):
            found[task.name].append(outcome)
            n_kept += again
            print(_table.block(outcome, _runner.load(task.module).statement, again), flush=True)
            word = "as it must be" if _runner.is_good(outcome) else "NOT as it must be"
            tell(f"{task.name}, seed {task.seed}: {word}" + (", kept from an earlier run" if again else ""))
    except KeyboardInterrupt:
        stopped = True
    for some in found.values():
        some.sort(key=lambda outcome: args.seeds.index(outcome["seed"]))
    found = {name: some for name, some in found.items() if some}
    seconds = time.perf_counter() - begin
    print(f"\n{_table.summary(found)}\n")
    if n_kept:
        print(f"{n_kept} of {len(tasks)} are kept from earlier runs of the same code; --fresh computes them anew")
    claims = {name: _runner.load(modules[name]) for name in found}
    path = write(args.out, claims, found, args.size, seconds, len(tasks))
    print(f"{path}, {seconds:.0f} s")
    if args.table and not stopped:
        print(_markdown.write(args.table, claims, found, args.size))
    if stopped:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0 if all(_runner.is_good(outcome) for some in found.values() for outcome in some) else 1


if __name__ == "__main__":
    sys.exit(main())
