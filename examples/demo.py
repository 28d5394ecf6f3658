"""Real data through omnizarr and back, beside the programs that others use.

Other libraries write scientific data as Zarr; omnizarr opens it, shows it, slices it, and writes it again with other
chunks and another codec; the other libraries read that back. Files of netCDF become NCZarr, which netCDF-C reads, and
come back. Every value is compared on the way. What is left behind in ``demo-output/`` are the hierarchies, the files,
and a quick look as PNG.

- the land mask of the Earth at 1 km, 21600 x 43200 (in the package global-land-mask), 933 MB in memory
- an MRI series and an anatomical volume; MRI in MINC, which is netCDF-3 or netCDF-4 (in nibabel's test data)
- stained tissue under the microscope (in scikit-image)

Run it by ``make demo``, or ``python examples/demo.py [--output DIRECTORY]``.
"""

import argparse
import shutil
import sys
import time
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl
import netCDF4
import nibabel
import numpy as np
import tensorstore as ts
import zarr
from matplotlib import image
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import omnizarr
from omnizarr import cli, netcdf

mpl.use("agg")
from matplotlib import patheffects
from matplotlib import pyplot as plt

console = Console(highlight=False)

PLACES = {
    "Zürich": (47.37, 8.54),
    "Nairobi": (-1.29, 36.82),
    "La Paz": (-16.5, -68.15),
    "Tristan da Cunha": (-37.11, -12.28),
    "Mid-Atlantic": (30.0, -40.0),
    "Point Nemo": (-48.88, -123.39),
}

ROUNDS = 3  # the best one counts; the libraries take turns

failures = []
timings = {}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--output", type=Path, default=Path("demo-output"), help="directory for what is left behind")
    output = options.parse_args().output
    started = time.perf_counter()
    output.mkdir(parents=True, exist_ok=True)
    by_zarr, by_tensorstore, by_omnizarr = (
        output / name for name in ("by-zarr-python-v2.zarr", "by-tensorstore-v3-sharded.zarr", "by-omnizarr.zarr")
    )
    for path in (by_zarr, by_tensorstore, by_omnizarr):
        shutil.rmtree(path, ignore_errors=True)

    title("1  Real data, from packages")
    data = load()
    title("2  Other libraries write it")
    write_by_zarr_python(by_zarr, data)
    write_by_tensorstore(by_tensorstore, data["land"])
    title("3  omnizarr looks into it")
    look_into(by_zarr, by_tensorstore)
    title("4  omnizarr slices it, and so does NumPy")
    slice_it(by_zarr, by_tensorstore, data)
    title("5  Everything is read, and compared")
    read_all(by_zarr, by_tensorstore, data)
    title("6  omnizarr writes it again: other chunks, another codec, the other format")
    rewrite(by_zarr, by_omnizarr)
    title("7  The other libraries read that back")
    read_back(by_omnizarr, data)
    title("8  Files of netCDF become NCZarr, which netCDF-C reads, and come back")
    through_netcdf(output, data)
    title("9  A quick look")
    draw(by_omnizarr, output / "quicklook.png")
    console.print(f"  {output / 'quicklook.png'}")
    title("Summary")
    summarize(output, time.perf_counter() - started)
    return 1 if failures else 0


# -- what the steps are made of ---------------------------------------------------


def title(text):
    console.print()
    console.rule(f"[bold]{text}", align="left", style="cyan")


def say(text):
    console.print(f"  {text}")


@contextmanager
def timed(what, who, nbytes):
    """Print and keep how long something takes."""
    start = time.perf_counter()
    yield
    report(what, who, nbytes, time.perf_counter() - start)


def report(what, who, nbytes, seconds):
    timings[what, who] = seconds
    say(f"{who:<12} {what:<26} {seconds:6.2f} s   {nbytes / seconds / 1e6:7,.0f} MB/s")


def check(what, is_right):
    """Print and keep whether a comparison came out."""
    say(f"[green]equal[/]   {escape(what)}" if is_right else f"[bold red]DIFFERS[/] {escape(what)}")
    if not is_right:
        failures.append(what)


def equal(one, other, rows=1024):
    """Return whether two arrays are equal, without a third of their size in memory; NaN equals NaN."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    starts = range(0, max(1, len(one)), rows)
    return all(
        np.array_equal(one[at : at + rows], other[at : at + rows], equal_nan=one.dtype.kind == "f") for at in starts
    )


def stored(path):
    """Return the bytes in a directory."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


# -- the steps -----------------------------------------------------------------


def inside(package, *parts):
    """Return the path of a file in a package, which need not be imported for that."""
    return Path(find_spec(package).origin).parent.joinpath(*parts)


def load():
    archive = np.load(inside("global_land_mask", "globe_combined_mask_compressed.npz"))
    sea = archive["mask"]
    volumes = inside("nibabel", "tests", "data")
    tissue = image.imread(inside("skimage", "data", "ihc.png"))
    data = {
        "land": np.logical_not(sea, out=sea),
        "lat": archive["lat"],
        "lon": archive["lon"],
        "series": np.asarray(nibabel.load(volumes / "example4d.nii.gz").dataobj),
        "anatomy": nibabel.load(volumes / "anatomical.nii").get_fdata(dtype="float32"),
        "tissue": np.round(tissue[..., :3] * 255).astype("uint8"),
    }
    for name, array in data.items():
        say(f"{name:<8} {array.shape!s:<20} {array.dtype!s:<8} {array.nbytes / 1e6:8,.1f} MB")
    return data


def write_by_zarr_python(path, data):
    root = zarr.open_group(path, mode="w", zarr_format=2, attributes={"title": "Land, brains and tissue"})
    land = data["land"]
    with timed("writes v2", "zarr-python", land.nbytes):
        array = root.create_array(
            "earth/land",
            shape=land.shape,
            dtype=land.dtype,
            chunks=(2160, 2160),
            attributes={"_ARRAY_DIMENSIONS": ["lat", "lon"], "long_name": "land at 1 km", "source": "GLOBE"},
        )
        array[:] = land
    for name in ("lat", "lon"):
        attributes = {"_ARRAY_DIMENSIONS": [name], "units": "degrees_north" if name == "lat" else "degrees_east"}
        root.create_array(f"earth/{name}", data=data[name], chunks=(10800,), attributes=attributes)
    root.create_array("brain/series", data=data["series"], chunks=(64, 48, 12, 1), order="F")
    root.create_array("brain/anatomy", data=data["anatomy"], chunks=(16, 16, 16), fill_value=np.nan)
    root.create_array("tissue/ihc", data=data["tissue"], chunks=(128, 128, 3))
    zarr.consolidate_metadata(root.store)


def write_by_tensorstore(path, land):
    codecs = [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 3}}]
    inner = {"chunk_shape": [540, 540], "codecs": codecs, "index_location": "end"}
    inner["index_codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    with timed("writes sharded v3", "TensorStore", land.nbytes):
        array = ts.open(
            {
                "driver": "zarr3",
                "kvstore": {"driver": "file", "path": str(path)},
                "metadata": {
                    "shape": land.shape,
                    "data_type": "bool",
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5400, 5400]}},
                    "codecs": [{"name": "sharding_indexed", "configuration": inner}],
                    "dimension_names": ["lat", "lon"],
                    "attributes": {"long_name": "land at 1 km"},
                },
                "create": True,
            }
        ).result()
        array.write(land).result()


def look_into(by_zarr, by_tensorstore):
    for command in (["tree", by_zarr], ["info", by_zarr], ["info", by_tensorstore]):
        arguments = [str(part) for part in command]
        console.print(f"\n  [bold]$ omnizarr {' '.join(arguments)}")
        console.file.flush()
        if cli.main(arguments) != 0:
            failures.append(f"omnizarr {' '.join(arguments)}")


def slice_it(by_zarr, by_tensorstore, data):
    land, lat, lon = data["land"], data["lat"], data["lon"]
    rows, columns = np.array([(nearest(lat, at[0]), nearest(lon, at[1])) for at in PLACES.values()]).T
    for path, writer in ((by_zarr / "earth/land", "v2"), (by_tensorstore, "sharded v3")):
        array = omnizarr.open(path, mode="r")
        found = array.vindex[rows, columns]
        check(
            f"{writer}: array.vindex[rows, columns], {len(PLACES)} places", np.array_equal(found, land[rows, columns])
        )
        check(f"{writer}: array[::-720, 100::720]", np.array_equal(array[::-720, 100::720], land[::-720, 100::720]))
        part = np.s_[5000:6500, 21000:24000]
        check(f"{writer}: array[5000:6500, 21000:24000]", np.array_equal(array[part], land[part]))
        lines = [3, 10_000, 21_599]
        check(
            f"{writer}: array.oindex[{lines}, 40000:]", np.array_equal(array.oindex[lines, 40000:], land[lines, 40000:])
        )
    say(", ".join(f"{name}: {'land' if is_land else 'sea'}" for name, is_land in zip(PLACES, found, strict=True)))
    root = omnizarr.open(by_zarr, mode="r")
    check(
        'root["brain/series"][..., 12, 1]', np.array_equal(root["brain/series"][..., 12, 1], data["series"][..., 12, 1])
    )
    check('root["tissue/ihc"][::-1, :, 0]', np.array_equal(root["tissue/ihc"][::-1, :, 0], data["tissue"][::-1, :, 0]))


def nearest(axis, value):
    return int(np.abs(axis - value).argmin())


def read_all(by_zarr, by_tensorstore, data):
    compare_readers("reads v2", by_zarr / "earth/land", data["land"])
    compare_readers("reads sharded v3", by_tensorstore, data["land"])
    root = omnizarr.open(by_zarr, mode="r")
    for path, name in {"brain/series": "series", "brain/anatomy": "anatomy", "tissue/ihc": "tissue"}.items():
        check(f"omnizarr reads {path} {root[path].shape}", equal(root[path][:], data[name]))


def compare_readers(what, path, expected):
    """Let each library read the whole array; compare what it read in the last round."""
    best = {}
    for turn in range(ROUNDS):
        for who, read in READERS.items():
            # New memory from the system can cost more than the read itself, so the first reader would pay for all. So
            # the same amount is touched and released before each read.
            np.ones(expected.shape, expected.dtype)
            start = time.perf_counter()
            values = read(path)
            best[who] = min(best.get(who, np.inf), time.perf_counter() - start)
            if turn == ROUNDS - 1:
                report(what, who, expected.nbytes, best[who])
                check(f"{who}, all {values.size:,} elements", equal(values, expected))
            del values


def by_omnizarr_array(path):
    return omnizarr.open_array(path, mode="r")[:]


def by_zarr_array(path):
    return zarr.open_array(path, mode="r")[:]


def by_tensorstore_array(path):
    driver = "zarr" if (path / ".zarray").exists() else "zarr3"
    return ts.open({"driver": driver, "kvstore": {"driver": "file", "path": str(path)}}).result().read().result()


READERS = {"omnizarr": by_omnizarr_array, "zarr-python": by_zarr_array, "TensorStore": by_tensorstore_array}


def rewrite(by_zarr, by_omnizarr):
    source = omnizarr.open(by_zarr, mode="r")
    target = omnizarr.create_group(by_omnizarr, attributes=dict(source.attrs))
    land = source["earth/land"]
    codec = {
        "name": "blosc",
        "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "bitshuffle", "typesize": 1, "blocksize": 0},
    }
    with timed("v2 to sharded v3", "omnizarr", land.nbytes):
        new = target.create_array(
            "earth/land",
            shape=land.shape,
            dtype=land.dtype,
            chunks=(720, 1440),
            shards=(4320, 8640),
            compressors=codec,
            dimension_names=land.attrs["_ARRAY_DIMENSIONS"],
            attributes=dict(land.attrs),
        )
        # A row of shards at a time: the whole need not fit into memory.
        for start in range(0, land.shape[0], new.shards[0]):
            rows = slice(start, start + new.shards[0])
            new[rows] = land[rows]
    target.create_array("brain/series", data=source["brain/series"][:], chunks=(32, 32, 24, 1), compressors="gzip")
    target.create_array("brain/anatomy", data=source["brain/anatomy"][:], chunks=(33, 41, 5), fill_value=np.nan)
    target.create_array("tissue/ihc", data=source["tissue/ihc"][:], chunks=(256, 256, 1), compressors="zstd")
    omnizarr.consolidate_metadata(by_omnizarr)
    console.print(f"\n  [bold]$ omnizarr info {by_omnizarr}")
    console.file.flush()
    cli.main(["info", str(by_omnizarr)])


def read_back(by_omnizarr, data):
    compare_readers("reads what omnizarr wrote", by_omnizarr / "earth/land", data["land"])
    for path, name in {"brain/series": "series", "brain/anatomy": "anatomy", "tissue/ihc": "tissue"}.items():
        for who, read in READERS.items():
            check(f"{who} reads {path}", equal(np.asarray(read(by_omnizarr / path)), data[name]))
    group = zarr.open_consolidated(by_omnizarr)
    names = {path for path, _ in group.members(max_depth=None)}
    check("zarr-python finds all nodes in the consolidated metadata", names == set(omnizarr_names(by_omnizarr)))


def omnizarr_names(path):
    return [name for name, _ in omnizarr.open(path, mode="r").members(max_depth=None)]


def through_netcdf(output, data):
    for name in ("tiny", "small"):  # netCDF-3, netCDF-4
        file = inside("nibabel", "tests", "data", f"{name}.mnc")
        nczarr, back = output / f"minc-{name}.zarr", output / f"minc-{name}.nc"
        say(f"{file.name} -> {nczarr.name} -> {back.name}")
        done = [
            omnizarr.convert(file, f"{nczarr.absolute().as_uri()}#mode=nczarr", zarr_format=2, overwrite=True),
            omnizarr.convert(nczarr, back, overwrite=True),
        ]
        check("nothing was lost", not any(each.losses for each in done))
        with netCDF4.Dataset(file) as original, by_netcdf_c(nczarr) as theirs, netCDF4.Dataset(back) as again:
            check(f"netCDF-C reads {nczarr.name} as it reads {file.name}", same_netcdf(original, theirs))
            check(f"{back.name} is {file.name} again, attributes too", same_netcdf(original, again, attributes=True))
    coast = output / "aegean.zarr"
    write_cf(coast, data)
    with by_netcdf_c(coast) as theirs:
        found = theirs["land"][:]
        check(f"netCDF-C reads land{found.shape} of {coast.name}", np.array_equal(found, data["land"][AEGEAN]))
    console.print(f"\n  [bold]$ omnizarr dump -h {coast}")
    console.file.flush()
    if cli.main(["dump", "-h", str(coast)]) != 0:
        failures.append("omnizarr dump")


def write_cf(path, data):
    rows, columns = AEGEAN
    with netcdf.Dataset(path, "w") as ds:
        ds.Conventions = "CF-1.11"
        for axis, places, units in (("lat", rows, "degrees_north"), ("lon", columns, "degrees_east")):
            ds.createDimension(axis, places.stop - places.start)
            ds.createVariable(axis, "f8", (axis,))[:] = data[axis][places]
            ds[axis].units = units
        land = ds.createVariable("land", "i1", ("lat", "lon"), zlib=True, chunksizes=(300, 250), fill_value=-1)
        land.setncatts({"flag_values": np.int8([0, 1]), "flag_meanings": "sea land"})
        land[:] = data["land"][AEGEAN]


def by_netcdf_c(path):
    return netCDF4.Dataset(f"file://{path.resolve().as_posix()}#mode=nczarr,file")


def same_netcdf(one, other, *, attributes=False):
    """Return whether two groups with all in them are the same: dimensions, types and values; if asked, attributes."""
    if list(one.variables) != list(other.variables) or list(one.groups) != list(other.groups):
        return False
    for name, variable in one.variables.items():
        twin = other[name]
        variable.set_auto_maskandscale(False)
        twin.set_auto_maskandscale(False)
        if (variable.dimensions, variable.dtype) != (twin.dimensions, twin.dtype):
            return False
        if not np.array_equal(variable[...], twin[...]) or (attributes and not same_attributes(variable, twin)):
            return False
    if attributes and not same_attributes(one, other):
        return False
    return all(same_netcdf(group, other[name], attributes=attributes) for name, group in one.groups.items())


def same_attributes(one, other):
    names = one.ncattrs()
    return names == other.ncattrs() and all(np.all(one.getncattr(name) == other.getncattr(name)) for name in names)


# -- the picture ----------------------------------------------------------------

INK, PAPER, LAND, SEA, ACCENT = "#e8e6df", "#10151c", "#d9c9a3", "#1b3a57", "#e4572e"
LIBRARIES = {"omnizarr": ACCENT, "TensorStore": "#7a9cc6", "zarr-python": "#8d99a6"}


def draw(path, target):
    root = omnizarr.open(path, mode="r")
    land = root["earth/land"]
    plt.rcParams.update({"font.family": "DejaVu Sans", "text.color": INK, "axes.labelcolor": INK, "font.size": 9})
    figure = plt.figure(figsize=(14, 9.6), facecolor=PAPER)
    grid = figure.add_gridspec(
        2,
        4,
        height_ratios=[1.62, 1],
        width_ratios=[1, 1, 1, 1.25],
        left=0.03,
        right=0.97,
        top=0.90,
        bottom=0.04,
        hspace=0.2,
        wspace=0.12,
    )
    figure.text(0.03, 0.948, "Read by omnizarr", fontsize=20, weight="bold")
    figure.text(
        0.97, 0.952, f"omnizarr {omnizarr.__version__} · Zarr v3, sharded · zarr-python {zarr.__version__} · "
        f"TensorStore {version('tensorstore')}", ha="right", fontsize=9, alpha=0.7,
    )  # fmt: skip
    draw_earth(figure.add_subplot(grid[0, :3]), land)
    draw_aegean(figure.add_subplot(grid[0, 3]), land)
    draw_brain(figure.add_subplot(grid[1, 0]), root["brain/series"])
    draw_anatomy(figure.add_subplot(grid[1, 1]), root["brain/anatomy"])
    draw_tissue(figure.add_subplot(grid[1, 2]), root["tissue/ihc"])
    draw_timings(figure.add_subplot(grid[1, 3]))
    figure.savefig(target, dpi=130, facecolor=PAPER)
    plt.close(figure)


HALO = [patheffects.withStroke(linewidth=2.5, foreground=PAPER)]
COLOURS = mpl.colors.LinearSegmentedColormap.from_list("land", [SEA, LAND])
AEGEAN = (slice(5820, 6720), slice(24290, 25030))  # at full resolution


def draw_earth(axes, land):
    # Means over blocks of 24 x 24, a band of shards at a time, draw smoother coasts than every 24th element.
    band = 4320
    means = [
        land[start : start + band].reshape(band // 24, 24, land.shape[1] // 24, 24).mean((1, 3), dtype="float32")
        for start in range(0, land.shape[0], band)
    ]
    frame(axes, "Land at 1 km, 21600 × 43200, every 24 × 24 elements averaged")
    axes.imshow(np.concatenate(means), cmap=COLOURS, extent=(-180, 180, -90, 90), interpolation="antialiased")
    rows, columns = AEGEAN
    west, north = columns.start / 120 - 180, 90 - rows.start / 120
    size = ((columns.stop - columns.start) / 120, (rows.stop - rows.start) / 120)
    axes.add_patch(plt.Rectangle((west, north - size[1]), *size, fill=False, color=ACCENT, linewidth=1.4))
    for name, (lat, lon) in PLACES.items():
        axes.plot(lon, lat, "o", color=ACCENT, markersize=3.5)
        axes.annotate(name, (lon, lat), xytext=(5, 4), textcoords="offset points", fontsize=8, path_effects=HALO)


def draw_aegean(axes, land):
    rows, columns = AEGEAN
    frame(axes, f"land[{rows.start}:{rows.stop}, {columns.start}:{columns.stop}], the Aegean", ACCENT)
    axes.imshow(land[AEGEAN], cmap=COLOURS, interpolation="nearest")


def draw_brain(axes, series):
    frame(axes, f"MRI series, {series.dtype}, series[:, :, 12, 0]")
    axes.imshow(series[:, ::-1, 12, 0].T, cmap="bone", aspect="auto")


def draw_anatomy(axes, anatomy):
    frame(axes, f"Anatomical MRI, {anatomy.dtype}, anatomy[:, :, 12]")
    axes.imshow(anatomy[:, ::-1, 12].T, cmap="bone", aspect="auto")


def draw_tissue(axes, tissue):
    frame(axes, "Colonic glands, stained, ihc[:400]")
    axes.imshow(tissue[:400, :], aspect="auto")


def draw_timings(axes):
    frame(axes, f"Land mask read whole, seconds, best of {ROUNDS}")
    texts = {
        "reads v2": "v2, blosc",
        "reads sharded v3": "v3, shards, zstd",
        "reads what omnizarr wrote": "v3, shards, blosc",
    }
    longest = max(timings[what, who] for what in texts for who in LIBRARIES)
    position = 0.0
    for what, text in texts.items():
        axes.text(0, position - 0.75, text, va="center", fontsize=8.5, alpha=0.75)
        for who, colour in LIBRARIES.items():
            seconds = timings[what, who]
            axes.barh(position, seconds, color=colour, height=0.8)
            axes.text(seconds + longest / 60, position, f"{seconds:.2f}  {who}", va="center", fontsize=8)
            position += 1
        position += 1.1
    axes.set_ylim(position - 1.2, -1.3)
    axes.set_xlim(0, longest * 1.45)
    for side in axes.spines.values():
        side.set_visible(False)


def frame(axes, text, colour="#3a4450"):
    axes.set_title(text, fontsize=9.5, loc="left", pad=6)
    axes.set_facecolor(PAPER)
    axes.set_anchor("NW")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color(colour)


def summarize(output, seconds):
    table = Table(box=None, padding=(0, 3, 0, 2))
    table.add_column("seconds for 933 MB")
    for who in LIBRARIES:
        table.add_column(who, justify="right")
    for what in dict.fromkeys(what for what, _ in timings):
        table.add_row(what, *(f"{timings[what, who]:.2f}" if (what, who) in timings else "" for who in LIBRARIES))
    console.print(table)
    say(
        f"Reads are the best of {ROUNDS}, in turns, from the page cache into memory touched before; writes are one run."
    )
    console.print()
    for path in sorted(output.iterdir()):
        say(f"{path!s:<48} {(stored(path) if path.is_dir() else path.stat().st_size) / 1e6:8.1f} MB")
    console.print()
    if failures:
        say(f"[bold red]{len(failures)} comparisons came out wrong:[/] {'; '.join(failures)}")
    else:
        say(f"[bold green]All comparisons came out equal[/], in {seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
