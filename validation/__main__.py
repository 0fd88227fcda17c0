"""`python -m validation`: run the claims, print their tables, draw their figures, and exit non-zero if one fails."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib.figure import Figure

import validation
from validation.claim import Check, Claim


def claims() -> dict[str, Claim]:
    """All claims of this folder by name."""
    found = {}
    for page in pkgutil.iter_modules(validation.__path__):
        if not page.name.startswith("_"):
            claim = getattr(importlib.import_module(f"validation.{page.name}"), "CLAIM", None)
            if claim is not None:
                found[claim.name] = claim
    return found


def row(check: Check) -> str:
    verdict = ("ok" if check.good else "FAILED") + (" (fails, as it must)" if check.control and check.good else "")
    kind = "control: " if check.control else ""
    numbers = f"{check.measured:12.5g} {check.predicted:12.5g} {check.error:10.2g} {check.z:8.2f}"
    return f"  {kind + check.name:<66} {numbers}  {verdict}"


def main() -> int:
    every = claims()
    parser = argparse.ArgumentParser(prog="python -m validation", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="claim", help=f"which: {', '.join(every)} (all)")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small settings, minutes (the default)")
    size.add_argument("--full", action="store_true", help="the large settings")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("validation-report"), help="folder for figures and numbers")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in every:
            parser.error(f"no claim {name!r}; there are {', '.join(every)}")
    if arguments.seed < 0:
        parser.error(f"--seed must be at least 0, got {arguments.seed}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    n_good = n_all = 0
    for name in arguments.names or every:
        claim, begin = every[name], time.perf_counter()
        settings = claim.full if arguments.full else claim.quick
        print(f"\n{claim.name}: {claim.statement}\n  source: {claim.source}\n  settings: {dict(settings)}", flush=True)
        checks, data = claim.run(settings, arguments.seed)
        print(f"  {'':<66} {'measured':>12} {'predicted':>12} {'error':>10} {'z':>8}")
        print("\n".join(map(row, checks)), flush=True)
        figure = Figure(figsize=(10, 4.5), layout="constrained")
        claim.draw(figure, data)
        figure.savefig(arguments.out / f"{name}.png", dpi=120)
        numbers = [{**vars(check), "good": check.good} for check in checks]
        report = {"claim": name, "settings": dict(settings), "seed": arguments.seed, "checks": numbers}
        (arguments.out / f"{name}.json").write_text(json.dumps(report, indent=1, default=float))
        print(f"  {arguments.out / name}.png and .json, {time.perf_counter() - begin:.0f} s", flush=True)
        n_good += sum(check.good for check in checks)
        n_all += len(checks)
    print(f"\n{n_good} of {n_all} checks as they must be")
    return 0 if n_good == n_all else 1


if __name__ == "__main__":
    sys.exit(main())
