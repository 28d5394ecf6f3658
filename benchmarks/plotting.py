"""The picture for the manual: one row per workload, one dot per library, on a logarithmic axis of ratios."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from benchmarks.peers import PEERS
from benchmarks.reports import amount
from benchmarks.running import Report, Result
from benchmarks.targets import fastest_peer, verdict

mpl.use("agg")
import matplotlib.pyplot as plt

COLOURS = {
    "omnizarr": "#d6246e",
    "omnizarr-reference": "#d6246e",
    "zarr-python": "#3b6fb6",
    "zarr-python-fused": "#8fb4e3",
    "zarr-python-omnizarr": "#e88bb5",
    "zarrs-python": "#c9722b",
    "zarrista": "#eeb275",
    "tensorstore": "#3f8f5c",
    "tensorstore-fsync": "#a4d3b3",
    "z5py": "#7d5ba6",
    "h5py": "#7a7a52",
    "netcdf4": "#c2c199",
    "xarray": "#4aa3b8",
    "dask": "#c95d5d",
    "virtualizarr": "#a58fc4",
    "floor": "#333333",
}
INK, FAINT = "#222222", "#e6e6e6"
LOW, HIGH = 0.25, 100.0  # what is beyond stands at the edge


def plot(report: Report, path: Path, digest: str = "") -> None:
    """Draw a run; the picture says of which one it is by its `digest`."""
    rows: list[Result | str] = []
    for result in report.results:
        if not rows or result.group != _group(rows):
            rows.append(result.group)
        rows.append(result)
    height = 0.235 * len(rows) + 1.7
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 8.5, "text.color": INK}):
        figure, axes = plt.subplots(figsize=(10.5, height))
        figure.subplots_adjust(left=0.3, right=0.9, top=1 - 1.12 / height, bottom=0.62 / height)
        axes.set_xscale("log")
        axes.set_xlim(LOW / 1.12, HIGH * 1.12)
        axes.set_ylim(len(rows) - 0.4, -0.8)
        for place, row in enumerate(rows):
            if isinstance(row, str):
                axes.text(-0.48, place + 0.12, row, transform=axes.get_yaxis_transform(), weight="bold", va="center")
            else:
                _row(axes, report, row, place)
        _frame(axes)
        _legend(figure, report, height)
        figure.savefig(path, dpi=130, metadata={"Source": digest})
        plt.close(figure)


def _group(rows: list[Result | str]) -> str:
    last = rows[-1]
    return last if isinstance(last, str) else last.group


def _row(axes: Axes, report: Report, result: Result, place: int) -> None:
    axes.axhline(place, color=FAINT, linewidth=0.8, zorder=0)
    axes.text(-0.012, place, result.title, transform=axes.get_yaxis_transform(), ha="right", va="center", color=INK)
    best, ours = fastest_peer(result), result.median(report.ours)
    base = best[1] if best else ours
    if base is None:
        return
    for key in sorted(result.values, key=lambda key: PEERS[key].role == "ours"):
        value = result.median(key)
        assert value is not None
        _dot(axes, report, key, value / base, place)
    if ours is not None:
        _, reached = verdict(report, result)
        mark = {True: "✓", False: "✗", None: "?"}[reached]
        text = f"{mark}  {amount(ours, result.workload.unit)}"
        axes.text(
            1.012, place, text, transform=axes.get_yaxis_transform(), va="center",
            color={True: "#2c7a3f", False: "#b3261e", None: "#777777"}[reached],
        )  # fmt: skip


def _dot(axes: Axes, report: Report, key: str, times: float, place: int) -> None:
    at = min(max(times, LOW), HIGH)
    if key == "floor":
        axes.plot(
            [at, at], [place - 0.36, place + 0.36], color=COLOURS[key], linewidth=2.2, solid_capstyle="butt", zorder=3
        )
        return
    first = key == report.ours
    shape = "<" if times < LOW else ">" if times > HIGH else "D" if first else "o"
    if PEERS[key].role == "ours":
        axes.plot(
            at, place, shape, markersize=8 if first else 6.5, markerfacecolor=COLOURS[key] if first else "white",
            markeredgecolor="white" if first else COLOURS[key], markeredgewidth=0.9 if first else 1.4, zorder=6,
        )  # fmt: skip
    else:
        axes.plot(
            at, place, shape, markersize=6, markerfacecolor=COLOURS[key], markeredgecolor="white", markeredgewidth=0.5,
            alpha=0.95, zorder=4,
        )  # fmt: skip


def _frame(axes: Axes) -> None:
    ticks = [0.25, 0.5, 1, 2, 5, 10, 20, 50, 100]
    axes.axvline(1, color="#888888", linewidth=1, zorder=1)
    axes.axvspan(LOW / 1.12, 1, color="#f7f3f5", zorder=-1)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} ×"))
    axes.tick_params(axis="x", top=True, labeltop=True, length=3, color="#888888", labelcolor="#555555")
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def _legend(figure: Figure, report: Report, height: float) -> None:
    handles = []
    for key in [key for key in PEERS if key in report.versions]:
        first, ours = key == report.ours, PEERS[key].role == "ours"
        handles.append(
            Line2D(
                [],
                [],
                linestyle="",
                label=PEERS[key].label,
                marker="|" if key == "floor" else "D" if first else "o",
                markersize=11 if key == "floor" else 7,
                markeredgewidth=2.2 if key == "floor" else 1.4 if ours and not first else 0.5,
                markerfacecolor="white" if ours and not first else COLOURS[key],
                markeredgecolor=COLOURS[key] if key == "floor" or (ours and not first) else "white",
            )
        )
    figure.text(
        0.012, 1 - 0.16 / height, "Time (or memory) as a multiple of the fastest other library: left is better",
        fontsize=11, weight="bold", va="top",
    )  # fmt: skip
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0.005, 1 - 0.36 / height), ncols=6, frameon=False,
        columnspacing=1.2, handletextpad=0.3, borderaxespad=0,
    )  # fmt: skip
    figure.text(
        0.988, 1 - 0.16 / height, f"{PEERS[report.ours].label}: target, median", ha="right", va="top", color="#555555"
    )
    scale = "" if report.about["scale"] == "1/1" else f"; at {report.about['scale']} of the size"
    figure.text(
        0.012, 0.1 / height,
        f"{report.about['processor']}; {report.about['file system']}, page cache warm; {report.about['date']}{scale}. "
        "Arrows lie beyond the axis.",
        color="#777777", fontsize=7.5, va="bottom",
    )  # fmt: skip
