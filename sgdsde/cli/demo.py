"""Show SGD on handwritten digits, its SDE, and the Noether charge following its law, with a figure.

A linear network of two layers, inputs -> 10 -> outputs with squared loss, is trained on the digits of scikit-learn by
discrete SGD and by its stochastic differential equation (SDE). The charge C = |W2|² - |W1|² belongs to the symmetry
W1 -> exp(-lambda) W1, W2 -> exp(lambda) W2 of every sample's loss. It is measured against the law that predicts it,
and runs into the noise equilibrium from both sides. A table, a figure and the numbers go to a folder. Takes less than
a minute on two cores, and half a minute more the first time on a machine, to compile.
"""

from __future__ import annotations

import argparse
import sys
import time

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What can be changed."""
    add = parser.add_argument
    add("--seed", type=int, default=0, help="of the start and of every run (default 0)")
    add("--out", default="sgdsde-demo", metavar="FOLDER", help="where results go (default ./sgdsde-demo)")
    add("--paths", type=int, default=8, help="independent paths of each run, at least 3 (default 8)")
    add(
        "--steps",
        type=int,
        default=4000,
        help="steps of SGD towards the equilibrium; the law of the charge is tested on the first eighth (default 4000)",
    )
    add("--learning-rate", type=float, default=0.02, metavar="ETA", help="η > 0 (default 0.02)")
    add("--batch-size", type=int, default=1, metavar="S", help="S, drawn with replacement (default 1)")
    add("--gamma", type=float, default=0.02, help="γ >= 0 of the objective L + γ|θ|² (default 0.02)")
    add("--data", metavar="FILE.npz", help="arrays X (N, inputs) and Y (N, outputs) or (N,) in place of the digits")


def run(args: argparse.Namespace) -> int:
    """Run everything, print the table, write the results."""
    begin = time.perf_counter()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # Greek letters must not end a run on a terminal that has none
    from sgdsde.cli import _demo_settings

    settings = _demo_settings.read(args)
    _say("reading compiled code (the first time on a machine it is made, which takes half a minute or so) … ", end="")
    from sgdsde.cli import _demo_figure, _demo_runs, _demo_table

    problem, theta0 = _demo_settings.problem_and_start(settings)
    _demo_runs.warm(problem, theta0)
    _say(f"{time.perf_counter() - begin:.1f} s")
    results = _demo_runs.run(problem, theta0, settings)
    text = _demo_table.text(results)
    print(text)
    files = [settings.out / name for name in ("figure.png", "numbers.npz", "table.txt")]
    _demo_figure.figure(results).savefig(files[0])
    _demo_table.save(results, files[1])
    files[2].write_text(text + "\n", encoding="utf-8")
    print(f"\nwrote {', '.join(map(str, files))} ({time.perf_counter() - begin:.0f} s in all)")
    return 0


def _say(message: str, end: str = "\n") -> None:
    print(message, end=end, file=sys.stderr, flush=True)
