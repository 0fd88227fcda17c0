"""Figures of claims as SVG that takes its colours from the page: one for wide pages, one with its panels stacked."""

from __future__ import annotations

import io
import re
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from validation.claim import Claim

INK, QUIET = "#010203", "#010204"
"""Colours that no claim draws with, so that a page can put its own in their place."""
THEMED = {
    INK: "ink",
    "#000000": "ink",
    QUIET: "line",
    "#0072b2": "c0",
    "#d55e00": "c1",
    "#009e73": "c2",
    "#cc79a7": "c3",
}
"""Colours that have a variable of the page, --ink and so on."""
STYLE = {
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.facecolor": "none",
    "legend.edgecolor": QUIET,
    "legend.framealpha": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": matplotlib.cycler(color=["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]),
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.titlesize": 10,
    "legend.fontsize": 8.5,
}
NARROW = (4.6, 3.5)
"""Inches of one panel of a stacked figure."""


class Stacked(Figure):
    """A figure whose panels stand one above the other, whatever grid was asked for."""

    def subplots(self, nrows: int = 1, ncols: int = 1, **options: Any) -> Any:
        self.set_size_inches(NARROW[0], NARROW[1] * nrows * ncols)
        options.pop("width_ratios", None)
        options.pop("gridspec_kw", None)
        axes = super().subplots(nrows * ncols, 1, **options)
        return axes if nrows == 1 or ncols == 1 else axes.reshape(nrows, ncols)


def drawings(claim: Claim, data: dict[str, Any], salt: str) -> dict[str, str]:
    """The figure of a claim as SVG text, "wide" and "narrow"."""
    made = {}
    for kind, figure_class in (("wide", Figure), ("narrow", Stacked)):
        with matplotlib.rc_context({**STYLE, "svg.hashsalt": f"{claim.name} {salt} {kind}"}):
            figure = figure_class(figsize=claim.size if kind == "wide" else NARROW, layout="constrained")
            claim.draw(figure, data)
            for ax in figure.axes:
                _few_ticks(ax)
            content = io.StringIO()
            figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
        made[kind] = _tidy(content.getvalue())
    return made


def _few_ticks(ax: Any) -> None:
    """Logarithmic axes with labels that do not run into each other."""
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        if axis.get_scale() == "log" and low > 0:
            axis.set_minor_formatter(NullFormatter())
            if high / low < 100:
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _tidy(svg: str) -> str:
    """The <svg> element alone, in the fonts of the page, with coordinates of no more digits than can be seen."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"(font(?:-family)?: [^;\"']*?)'DejaVu Sans'[^;\"]*", r"\1system-ui, 'DejaVu Sans', sans-serif", svg)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    used = set(re.findall(r"#([\w.-]+)", svg))  # other names would stand twice in a page of several figures
    svg = re.sub(r' id="([^"]*)"', lambda name: name.group() if name.group(1) in used else "", svg)
    # within tags alone: what stands between them is text of the figure
    return re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d+\.\d{2})\d+", r"\1", tag.group()), svg)


def themed(svg: str, title: str) -> str:
    """The drawing for a page: colours from its variables, size from its box, a title for those who do not see it."""
    for colour, name in THEMED.items():
        svg = re.sub(re.escape(colour), f"var(--{name})", svg, flags=re.IGNORECASE)
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    return svg.replace("<svg ", '<svg role="img" ', 1).replace(">", f"><title>{title}</title>", 1)
