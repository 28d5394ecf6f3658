"""The picture of `benchmarks.growth`: a panel for each operation, CPU time over items, on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

from benchmarks.growth import Curve
from benchmarks.operations import LIBRARIES, OPERATIONS
from benchmarks.plotting import COLOURS, FAINT, INK

mpl.use("agg")
import matplotlib.pyplot as plt

COLUMNS = 4
_COLOURS = {"omnizarr": COLOURS["omnizarr"], "zarr": COLOURS["zarr-python"], "tensorstore": COLOURS["tensorstore"]}


def plot(found: Sequence[Curve], path: Path) -> None:
    """Draw all curves."""
    operations = [each for each in OPERATIONS if any(curve.operation is each for curve in found)]
    rows = -(-len(operations) // COLUMNS)
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 8, "text.color": INK}):
        figure, grid = plt.subplots(rows, COLUMNS, figsize=(11, 2.25 * rows + 0.7), squeeze=False)
        for panel in grid.flat[len(operations) :]:
            panel.set_visible(False)
        for operation, panel in zip(operations, grid.flat, strict=False):
            _panel(panel, operation.title, operation.items, [each for each in found if each.operation is operation])
        handles = [plt.Line2D([], [], color=_COLOURS[key], marker="o", label=label) for key, label in LIBRARIES.items()]
        handles.append(plt.Line2D([], [], color="#999999", linestyle=":", label="linear"))
        title = "CPU time over the number of items; the numbers are exponents"
        figure.suptitle(title, x=0.012, ha="left", weight="bold", fontsize=11)
        figure.legend(handles=handles, loc="upper right", ncols=4, frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 0.985))
        figure.savefig(path, dpi=110)
        plt.close(figure)


def _panel(panel: Any, title: str, items: str, found: Sequence[Curve]) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_title(title, loc="left", fontsize=8.5)
    panel.set_xlabel(items, fontsize=7, color="#555555", labelpad=1)
    panel.grid(color=FAINT, linewidth=0.7)
    panel.tick_params(labelsize=7, colors="#555555", length=0)
    for spine in panel.spines.values():
        spine.set_visible(False)
    _linear(panel, found)
    for curve in found:
        colour = _COLOURS[curve.library]
        sizes, costs = [each.items for each in curve.points], [each.cpu * 1e3 for each in curve.points]
        panel.plot(sizes, costs, color=colour, marker="o", markersize=3, linewidth=1.3)
        grows = curve.exponent_of("cpu")
        if grows is not None:
            panel.annotate(
                f"{grows:.2f}", (sizes[-1], costs[-1]), xytext=(3, 0), textcoords="offset points", color=colour,
                fontsize=7, va="center", annotation_clip=False,
            )  # fmt: skip
    panel.yaxis.set_major_formatter(lambda value, _: f"{value / 1e3:g} s" if value >= 1e3 else f"{value:g} ms")
    panel.margins(x=0.12)


def _linear(panel: Any, found: Sequence[Curve]) -> None:
    """Draw what would be linear, through the first point of omnizarr's curve."""
    ours = next((each for each in found if each.library == "omnizarr"), None)
    if ours is not None:
        largest = max(each.last.items for each in found)
        first = ours.points[0]
        sizes = (first.items, largest)
        costs = [first.cpu * 1e3 * size / first.items for size in sizes]
        panel.plot(sizes, costs, color="#999999", linestyle=":", linewidth=1)
