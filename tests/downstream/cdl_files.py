# ruff: noqa: T201 - a program of the command line
"""Hold `omnizarr gen` and `omnizarr dump` against ncgen and ncdump, by netCDF-C's own CDL files.

``python -m tests.downstream.cdl_files`` takes each file of CDL in netCDF-C's folders ncdump and nczarr_test. ncgen
makes a netCDF-4 file of it, a netCDF-3 file, or NCZarr, and ncdump prints that; omnizarr makes Zarr of it and prints
that. The texts are equal, or `KNOWN` says why they are not, and who is right; else the run fails. A file in which
``ncdump -t`` printed dates for numbers has to be printed again, as ncgen does not read it. Files with types that a
program defines are apart: NCZarr has none. So are those that neither reads.

The sources of netCDF-C are cloned once into ``.downstream``; ``--sources`` names others. The programs are those on the
path, or in the folder ``--programs``.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from omnizarr import netcdf
from omnizarr.errors import NotRepresentableError, OmnizarrError
from omnizarr.netcdf.cdl import writing

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / ".downstream" / "netcdf-c"
REPOSITORY = "https://github.com/Unidata/netcdf-c"
FOLDERS = ("ncdump", "ncdump/cdl", "nczarr_test", "nczarr_test/refs")
TOO_LARGE = ("bigf1", "bigf2", "bigf3", "bigr1", "bigr2", "bigr3")
"""Data of several GB, to be printed."""

Right = Literal["omnizarr", "netCDF-C", "both"]
Way = Literal["netCDF-4", "netCDF-3", "NCZarr"]
Outcome = Way | Literal["dates", "otherwise", "user-defined types", "read by neither", "too large"]


class Known(NamedTuple):
    """Why texts differ, and who is right."""

    right: Right
    why: str


_UNWRITTEN = Known(
    "omnizarr",
    "elements never written, without a fill value: ncdump prints what happens to be in memory, `dump` fill marks",
)
_PLUG_IN = Known("both", "chunks in bzip2: ncgen needs a plug-in for them, `gen` does not")
_NIL = Known(
    "both",
    "NIL, a pointer to no string: Zarr has the empty string instead. Of such attributes on NCZarr, netCDF-C prints "
    "what happens to be in memory",
)

EQUAL: Mapping[Outcome, str] = {
    "netCDF-4": "as netCDF-4",
    "netCDF-3": "only as netCDF-3",
    "NCZarr": "only as NCZarr",
    "dates": "as the file itself, which `ncdump -t` printed",
}
"""What texts are equal to."""

KNOWN: Mapping[str, Known] = {
    **dict.fromkeys((f"{each}/ref_tst_special_atts3.cdl" for each in ("ncdump", "ncdump/cdl")), _UNWRITTEN),
    **dict.fromkeys((f"ncdump/cdl/{each}.cdl" for each in ("ref_niltest", "ref_tst_h_scalar")), _NIL),
    "ncdump/cdl/ref_const_test.cdl": Known(
        "omnizarr",
        "numbers that do not fit: ncgen makes 251 of `-5b` in a ubyte, and 1863462912 of `-200000000000L` in an int64; "
        "`gen` refuses the first and reads the second as it is written",
    ),
    "ncdump/cdl/ref_tst_unlim2.cdl": Known(
        "omnizarr",
        "strings along an unlimited dimension: ncgen joins those of several rows, `gen` leaves each in its row",
    ),
    **dict.fromkeys(("nczarr_test/ref_bzip2.cdl", "nczarr_test/ref_filtered.cdl"), _PLUG_IN),
    "nczarr_test/ref_byte.cdl": Known(
        "omnizarr", "a variable that is called `byte`: ncdump prints it, but ncgen does not read it; `gen` does"
    ),
    "nczarr_test/ref_nulls.cdl": Known("omnizarr", r"`'\0'` is a byte of zero; the digit zero to ncgen before 4.9.3"),
    "nczarr_test/ref_string.cdl": Known(
        "omnizarr", "a text longer than its `_nczarr_maxstrlen`: netCDF-C cuts it silently, `gen` refuses it"
    ),
}


def found(sources: Path) -> Iterator[Path]:
    """Yield the files of CDL."""
    for folder in FOLDERS:
        yield from sorted((sources / folder).glob("*.cdl"))


def by_netcdf_c(path: Path, programs: str, way: Way) -> str | None:
    """Return what ncdump prints of what ncgen makes of a file; None if one of them fails."""
    with tempfile.TemporaryDirectory() as folder:
        made = f"file://{folder}/x#mode=nczarr,file" if way == "NCZarr" else f"{folder}/x.nc"
        kind = "-3" if way == "netCDF-3" else "-4"
        for command in (["ncgen", kind, "-o", made, str(path)], ["ncdump", "-n", "x", made]):
            command[0] = programs + command[0]
            done = subprocess.run(command, capture_output=True, timeout=120, check=False)
            if done.returncode:
                return None
    return done.stdout.decode("utf-8", "surrogateescape")


def by_omnizarr(path: Path, *, times: bool = False) -> str | OmnizarrError:
    """Return what `omnizarr dump` prints of what `omnizarr gen` makes of a file, or what is wrong."""
    try:
        with netcdf.Dataset.fromcdl(path, {}, mode="r") as dataset:
            return "".join(writing.dump(dataset.as_source(), name="x", times=times))
    except OmnizarrError as error:
        return error


def outcome(path: Path, programs: str) -> tuple[Outcome, str]:
    """Return the result for a file: the text that its own text is equal to, or another end; and a remark."""
    if path.stem in TOO_LARGE:
        return "too large", ""
    ours = by_omnizarr(path)
    if isinstance(ours, NotRepresentableError) and "NCZarr has no types that users define" in str(ours):
        return "user-defined types", ""
    theirs = by_netcdf_c(path, programs, "netCDF-4")
    if isinstance(ours, OmnizarrError):
        return ("read by neither", "") if theirs is None else ("otherwise", str(ours))
    if theirs == ours:
        return "netCDF-4", ""
    ways: tuple[Way, ...] = ("netCDF-3", "NCZarr")
    for way in ways:
        if by_netcdf_c(path, programs, way) == ours:
            return way, ""
    text = path.read_text(encoding="utf-8")
    if by_omnizarr(path, times=True) == re.sub(r"^netcdf \S+ {", "netcdf x {", text):
        return "dates", ""
    return "otherwise", "netCDF-C fails" if theirs is None else _first_difference(theirs, ours)


def _first_difference(theirs: str, ours: str) -> str:
    pairs = zip(theirs.splitlines(), [*ours.splitlines(), ""], strict=False)
    return next((f"{one.strip()} | {other.strip()}" for one, other in pairs if one != other), "")


def version(programs: str) -> str:
    """Return the release of netCDF-C."""
    said = subprocess.run([f"{programs}ncdump"], capture_output=True, text=True, check=False).stderr
    number = re.search(r"netcdf library version (\S+)", said)
    return number[1] if number else "unknown"


def table(differing: Mapping[str, str]) -> str:
    """Return what differs as a table of the manual, files of one reason in one row."""
    rows: dict[Known, list[str]] = {}
    for name in sorted(differing):
        rows.setdefault(KNOWN[name], []).append(f"`{name}`")
    lines = ["| file of netCDF-C | right is | why |", "|---|---|---|"]
    lines += [f"| {', '.join(names)} | {known.right} | {known.why} |" for known, names in rows.items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run all files."""
    parser = argparse.ArgumentParser(prog="python -m tests.downstream.cdl_files", description=__doc__)
    parser.add_argument("--sources", type=Path, default=SOURCES, help="a checkout of netCDF-C")
    parser.add_argument("--programs", default="", help="the folder of ncgen and ncdump; default: those on the path")
    parser.add_argument("--differences", action="store_true", help="print the first difference of listed files too")
    parser.add_argument("--table", type=Path, help="page of the manual to write the counts and the differences into")
    options = parser.parse_args()
    programs = f"{options.programs}/" if options.programs else ""
    if not options.sources.is_dir():
        subprocess.run(["git", "clone", "--quiet", "--depth=1", REPOSITORY, str(options.sources)], check=True)
    ends = {str(each.relative_to(options.sources)): outcome(each, programs) for each in found(options.sources)}
    counts = Counter(end for end, _ in ends.values())
    differing = {name: what for name, (end, what) in ends.items() if end == "otherwise"}
    unknown = {name: what for name, what in differing.items() if name not in KNOWN}
    equal = sum(counts[each] for each in EQUAL)
    compared = equal + counts["otherwise"]
    right = Counter(KNOWN[name].right for name in differing if name in KNOWN)
    said = ", ".join(f"{count} where {who} {'are' if who == 'both' else 'is'} right" for who, count in right.items())
    apart = ", ".join(f"{counts[each]} {each}" for each in ("user-defined types", "read by neither", "too large"))
    ways = ", ".join(f"{counts[each]} {what}" for each, what in EQUAL.items())
    summary = (
        f"With netCDF-C {version(programs)}, {equal} of {compared} files give the same text: {ways}. "
        f"The others: {said}. Apart: {apart}."
    )
    print(summary)
    for name, what in (differing if options.differences else unknown).items():
        print(f"  {name}: {what[:300]}")
    if options.table and not unknown:
        page = options.table.read_text(encoding="utf-8")
        part = re.compile("(<!-- cdl -->\n).*?(<!-- end -->)", re.DOTALL)
        text = f"{summary}\n\n{table(differing)}"
        options.table.write_text(part.sub(lambda found: found[1] + text + found[2], page), encoding="utf-8")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
