"""One look for the plots of every bench: each is saved as a PNG and an SVG."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.ticker import StrMethodFormatter

OURS, OURS_TOO, OTHERS = "#1769aa", "#8fb8d9", "#b9bfc7"
INK, FAINT, GRID = "#20262e", "#68727d", "#e6e9ec"
COLOURS = (OURS, "#d1603d", "#3c8d5a", "#8a5fb0", "#b08a1e", "#4fa3a5", "#7a7f87")
NUMBERS = "{x:,.10g}"  # rather than powers of ten
STYLE: dict[str, Any] = {
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "xtick.color": FAINT,
    "ytick.color": INK,
    "svg.hashsalt": "penstock",
    "svg.fonttype": "none",
    "legend.frameon": False,
}


def bars(
    path: Path,
    panels: Mapping[str, Mapping[str, float]],
    *,
    title: str,
    subtitle: str = "",
    note: str = "",
    highlight: str = "",
    about: Mapping[str, str] | None = None,
    unit: str = "",
    log: bool = True,
) -> None:
    """A panel for each question, in it a bar for each name, the shortest on top; `about` says a word under a name.

    Names that begin as the highlighted one are its kin. Values are told, also as multiples of the highlighted one's.
    """
    most = max(len(values) for values in panels.values())
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(panels), figsize=(5.9 * len(panels), 1.7 + 0.5 * most), squeeze=False, layout="constrained"
        )
        for axis, (name, values) in zip(axes[0], panels.items(), strict=True):
            draw_bars(axis, values, highlight, unit)
            name_bars(axis, highlight, about or {})
            scale_bars(axis, list(values.values()), log=log)
            axis.set_title(name, loc="left", fontsize=11, color=INK, pad=8)
        save(figure, path, title, subtitle, note)


def draw_bars(axis: Any, values: Mapping[str, float], highlight: str, unit: str) -> None:
    ordered = sorted(values.items(), key=lambda item: item[1], reverse=True)
    colours = [pick_colour(name, highlight) for name, _ in ordered]
    axis.barh([name for name, _ in ordered], [value for _, value in ordered], color=colours, height=0.62)
    base = values.get(highlight)
    for place, (name, value) in enumerate(ordered):
        ours = name == highlight
        ratio = f"   {tell_ratio(value / base)}" if base and not ours else ""
        axis.annotate(
            f"{value:,.0f} {unit}{ratio}",
            xy=(value, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            fontweight="bold" if ours else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )


def tell_ratio(ratio: float) -> str:
    """To two digits: more would be noise."""
    return f"{ratio:.0f} x" if ratio >= 10 else f"{float(f'{ratio:.1e}'):g} x"


def name_bars(axis: Any, highlight: str, about: Mapping[str, str]) -> None:
    """The name of each bar at its left, and under it what is to be known of it."""
    names = [tick.get_text() for tick in axis.get_yticklabels()]
    axis.set_yticks(range(len(names)), [""] * len(names))
    for place, name in enumerate(names):
        under = about.get(name, "")
        for text, up, size, colour in ((name, 6 if under else 0, 10, INK), (under, -7, 7.5, FAINT)):
            axis.annotate(
                text,
                xy=(0, place),
                xycoords=("axes fraction", "data"),
                xytext=(-6, up),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=size,
                color=colour,
                fontweight="bold" if name == highlight and text == name else "normal",
            )


def scale_bars(axis: Any, lengths: Sequence[float], *, log: bool) -> None:
    if log:
        axis.set_xscale("log")
        axis.set_xlim(10 ** math.floor(math.log10(min(lengths)) - 0.1), max(lengths) * 12)
        axis.xaxis.set_major_formatter(StrMethodFormatter(NUMBERS))
    else:
        axis.set_xlim(0, max(lengths) * 1.3)
    axis.grid(visible=False, axis="y")
    axis.tick_params(which="both", length=0)
    axis.spines["bottom"].set_visible(False)


def pick_colour(name: str, highlight: str) -> str:
    if name == highlight:
        return OURS
    return OURS_TOO if highlight and name.startswith(highlight) else OTHERS


def lines(
    path: Path,
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
    subtitle: str = "",
    note: str = "",
    x_label: str = "",
    y_label: str = "",
    log_x: bool = False,
    log_y: bool = False,
) -> None:
    """A line for each name through its points; the name stands at the line's end."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(9, 5), layout="constrained")
        ends: list[Any] = []
        for place, (name, points) in enumerate(series.items()):
            colour = COLOURS[place % len(COLOURS)]
            axis.plot(*zip(*points, strict=True), color=colour, linewidth=2, marker="o", markersize=4)
            how = {"textcoords": "offset points", "va": "center", "color": colour, "fontsize": 9}
            ends.append(axis.annotate(name, points[-1], (8, 0), **how))
        axis.set_xscale("log" if log_x else "linear")
        axis.set_yscale("log" if log_y else "linear")
        for side in (axis.xaxis,) * log_x + (axis.yaxis,) * log_y:
            side.set_major_formatter(StrMethodFormatter(NUMBERS))
        if not log_y:
            axis.set_ylim(bottom=0)
        axis.margins(x=0.12)
        axis.set_xlabel(x_label)
        axis.set_ylabel(y_label)
        axis.tick_params(which="both", length=0)
        figure.canvas.draw()
        set_apart(axis, ends)
        save(figure, path, title, subtitle, note)


def set_apart(axis: Any, names: list[Any]) -> None:
    """Move names that would stand over each other up, by no more than they need."""
    above = float("-inf")
    for name in sorted(names, key=lambda name: axis.transData.transform(name.xy)[1]):
        height = axis.transData.transform(name.xy)[1] * 72 / axis.figure.dpi
        place = max(height, above)
        name.set_position((8, place - height))
        above = place + name.get_fontsize() * 1.25


def save(figure: Any, path: Path, title: str, subtitle: str, note: str) -> None:
    """With the words around the plot; `path` without its ending."""
    width, height = figure.get_size_inches()
    above = textwrap.wrap(subtitle, int(width * 13))
    below = textwrap.wrap(note, int(width * 15))
    top, bottom = (0.52 + 0.19 * len(above)) / height, (0.1 + 0.16 * len(below)) / height
    figure.get_layout_engine().set(rect=(0.012, bottom, 0.976, 1 - top - bottom))
    figure.text(0.012, 1 - 0.14 / height, title, fontsize=15, fontweight="bold", va="top")
    figure.text(0.012, 1 - 0.45 / height, "\n".join(above), fontsize=9.5, color=FAINT, va="top", linespacing=1.4)
    figure.text(0.012, 0.06 / height, "\n".join(below), fontsize=8, color=FAINT, va="bottom", linespacing=1.4)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path.with_suffix(".png"), dpi=160)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    plt.close(figure)
