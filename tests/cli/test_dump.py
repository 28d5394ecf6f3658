"""`omnizarr dump`, run as a user runs it.

What it should print is what ``ncdump`` of netCDF-C 4.9.3 and of 4.10.2-development prints, with the same options, for
the NCZarr that ``ncgen -4 -lb`` makes of the same dataset.
"""

import io
import os
import subprocess
import sys
import zipfile

import h5py
import numpy as np
import pytest

import omnizarr
from omnizarr import netcdf
from omnizarr.cli import main

HEAD = """\
netcdf tides.v1 {
dimensions:
	time = UNLIMITED ; // (3 currently)
	x = 2 ;
variables:
	double time(time) ;
		time:units = "days since 2026-01-01" ;
	short level(time, x) ;
		level:_FillValue = -99s ;
		level:units = "cm" ;
	float depth ;
		string depth:note = "é" ;

// global attributes:
		:title = "tides" ;
"""
GROUP = "\ngroup: model {\n  variables:\n  \tfloat u(x) ;\n"
TAIL = """\
  } // group model
}
"""
TIME = "\n time = 0, 0.5, 1.123456789 ;\n"
LEVEL = "\n level =\n  1, 2,\n  _, 4,\n  5, 6 ;\n"
DEPTH = "\n depth = 0.1 ;\n"
U = "\n   u = 1.234568, 2 ;\n"


def cdl(data="", group_data="", *, name="tides.v1", with_data=True, with_group_data=True):
    return (
        HEAD.replace("tides.v1", name)
        + ("data:\n" if with_data else "")
        + data
        + GROUP
        + ("  data:\n" if with_group_data else "")
        + group_data
        + TAIL
    )


EVERYTHING = cdl(TIME + LEVEL + DEPTH, U)
DATES = '\n time = "2026-01-01", "2026-01-01 12", "2026-01-02 02:57:46.666570" ;\n'
HEADER = cdl(with_data=False, with_group_data=False)
ROWS = "\n level =\n  // level(0, 0-1)\n    1, 2,\n  // level(1, 0-1)\n    _, 4,\n  // level(2, 0-1)\n    5, 6 ;\n"
EACH = """
 level =
  1,   // level(1,1)
    2,  // level(2,1)
    _,   // level(1,2)
    4,  // level(2,2)
    5,   // level(1,3)
    6;  // level(2,3)
    """
PRINTED = {
    "": EVERYTHING,
    "-h": HEADER,
    "-hc": HEADER,
    "-c": cdl(TIME),
    "-v level": cdl(LEVEL),
    "-v /model/u": cdl("", U),
    "-v u,depth": cdl(DEPTH, U),
    "-v u -v depth": cdl(DEPTH, U),
    "-g model": cdl("", U, with_data=False),
    "-g /model": cdl("", U, with_data=False),
    "-n other -h": cdl(name="other", with_data=False, with_group_data=False),
    "-p 3": cdl(TIME + LEVEL + DEPTH, U.replace("1.234568", "1.23")),
    "-p 3,4": cdl(TIME.replace("1.123456789", "1.123") + LEVEL + DEPTH, U.replace("1.234568", "1.23")),
    "-l 20": cdl(TIME.replace("0.5, 1", "0.5, \n    1") + LEVEL + DEPTH, U),
    "-t": cdl(DATES + LEVEL + DEPTH, U),
    "-i": cdl(DATES.replace("1 12", "1T12").replace("2 02", "2T02") + LEVEL + DEPTH, U),
    "-b c": cdl(TIME + ROWS + DEPTH, U),
    "-v level -f f": cdl(EACH),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("dump") / "tides.v1.zarr"
    with netcdf.Dataset(path, "w") as ds:
        ds.title = "tides"
        ds.createDimension("time", None)
        ds.createDimension("x", 2)
        time = ds.createVariable("time", "f8", "time")
        time.units = "days since 2026-01-01"
        time[:] = [0, 0.5, 1.123456789]
        level = ds.createVariable("level", "i2", ("time", "x"), fill_value=-99, chunksizes=(1, 2))
        level.units = "cm"
        level[:] = np.ma.masked_equal([[1, 2], [-99, 4], [5, 6]], -99)
        depth = ds.createVariable("depth", "f4")
        depth.note = "é"
        depth[...] = 0.1
        ds.createVariable("model/u", "f4", ("x",))[:] = [1.23456789, 2]
    return path


@pytest.fixture
def run(capfdbinary):
    """Run in this process; give exit code, stdout, stderr."""

    def run(*arguments):
        code = main([str(argument) for argument in ("dump", *arguments)])
        captured = capfdbinary.readouterr()
        return code, captured.out.decode().replace(os.linesep, "\n"), captured.err.decode()

    return run


@pytest.mark.parametrize("options", PRINTED)
def test_options_are_those_of_ncdump(run, path, options):
    assert run(*options.split(), path) == (0, PRINTED[options], "")


def test_special_attributes_are_printed_if_asked_for(run, path):
    _, plain, _ = run("-h", path)
    code, out, _ = run("-hs", path)
    assert code == 0
    assert [line for line in plain.splitlines() if line not in out.splitlines()] == []
    added = [line.strip() for line in out.splitlines() if line not in plain.splitlines()]
    assert 'level:_Storage = "chunked" ;' in added
    assert "level:_ChunkSizes = 1, 2 ;" in added
    assert 'level:_Endianness = "little" ;' in added
    assert any(line.startswith(':_NCProperties = "version=2,omnizarr=') for line in added)


@pytest.mark.parametrize("form", ["{path}", "file://{path}", "file://{path}#mode=nczarr,file", "{path}/"])
def test_paths_and_urls_name_the_same_dataset(run, path, form):
    assert run(form.format(path=path.as_posix())) == (0, EVERYTHING, "")


def test_archives_are_printed(run, path, tmp_path):
    packed = tmp_path / "tides.v1.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in path.rglob("*"):
            if file.is_file():
                archive.write(file, file.relative_to(path).as_posix())
    assert run(f"file://{packed.as_posix()}#mode=nczarr,zip") == (0, EVERYTHING, "")


def test_netcdf_files_are_printed(run, tmp_path):
    netcdf4 = pytest.importorskip("netCDF4")
    for name, kind in (("a.b.nc", "NETCDF3_CLASSIC"), ("a.b.nc4", "NETCDF4")):
        with netcdf4.Dataset(tmp_path / name, "w", format=kind) as ds:
            ds.createDimension("x", 2)
            ds.createVariable("v", "i4", ("x",))[:] = [1, 2]
        text = "netcdf a.b {\ndimensions:\n\tx = 2 ;\nvariables:\n\tint v(x) ;\ndata:\n\n v = 1, 2 ;\n}\n"
        assert run(tmp_path / name) == (0, text, "")


def test_zarr_that_is_no_nczarr_is_printed(run, tmp_path):
    omnizarr.create_array(
        tmp_path / "x.zarr", name="v", data=np.arange(2, dtype="i4"), zarr_format=3, dimension_names=["x"]
    )
    text = "netcdf x {\ndimensions:\n\tx = 2 ;\nvariables:\n\tint v(x) ;\ndata:\n\n v = 0, 1 ;\n}\n"
    assert run(tmp_path / "x.zarr") == (0, text, "")


# -- what goes wrong -----------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "word"),
    [("-v nope", "nope"), ("-g nope", "nope")],
)
def test_unknown_names_are_an_error(run, path, options, word):
    code, out, err = run(*options.split(), path)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert word in err


@pytest.mark.parametrize("options", ["-l 9", "-p 0", "-p x", "-p 1,2,3", "-p 99", "-q"])
def test_options_that_are_not_valid_are_an_error(run, path, options):
    code, out, err = run(*options.split(), path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_no_dataset_is_an_error(run, tmp_path):
    code, out, err = run(tmp_path / "nothing.zarr")
    assert (code, out) == (1, "")
    assert err.startswith("omnizarr: ")
    assert "nothing.zarr" in err


def test_files_are_printed_without_netcdf_c(run, tmp_path, monkeypatch):
    (tmp_path / "x.nc").write_bytes(b"CDF\x01" + bytes(28))
    monkeypatch.setitem(sys.modules, "netCDF4", None)
    assert run(tmp_path / "x.nc")[:2] == (0, "netcdf x {\n}\n")


def test_files_that_lead_to_others_are_printed_without_netcdf_c(run, tmp_path, monkeypatch):
    with h5py.File(tmp_path / "elsewhere.h5", "w") as file:
        file["v"] = 7
    with h5py.File(tmp_path / "x.nc", "w") as file:
        file["other"] = h5py.ExternalLink("elsewhere.h5", "/v")
    monkeypatch.setitem(sys.modules, "netCDF4", None)
    code, out, _ = run(tmp_path / "x.nc")
    assert code == 0
    assert "other = 7 ;" in out


def test_url_of_a_kind_that_is_unknown_is_reported(run):
    code, out, err = run("nothing://bucket/x.zarr#mode=nczarr")
    assert (code, out) == (1, "")
    assert "nothing://" in err


def test_h_is_the_header_and_help_is_help(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "Usage: omnizarr dump" in out


# -- streams -------------------------------------------------------------------


def test_output_is_utf_8_whatever_the_locale_says(path):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    command = [sys.executable, "-m", "omnizarr", "dump", str(path)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True, env=environment)
    assert done.stdout.decode("utf-8").replace(os.linesep, "\n") == EVERYTHING


def test_terminal_is_not_commanded_by_the_data(tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    with netcdf.Dataset(tmp_path / "x.zarr", "w") as ds:
        ds.title = "é\x1b[31m"
    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    assert main(["dump", str(tmp_path / "x.zarr")]) == 0
    assert "\x1b" not in shown.getvalue()
    assert "é" in shown.getvalue()


def test_reader_that_goes_away_is_no_error(tmp_path):
    omnizarr.create_array(tmp_path / "x.zarr", name="v", data=np.arange(300_000.0))
    process = subprocess.Popen(
        [sys.executable, "-m", "omnizarr", "dump", str(tmp_path / "x.zarr")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline().split() == [b"netcdf", b"x", b"{"]
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 0


# -- notes ---------------------------------------------------------------------


@pytest.fixture
def flawed(tmp_path):
    """A big-endian variable as netCDF-C 4.9.0 wrote it: little-endian."""
    attributes = {"_NCProperties": "version=2,netcdf=4.9.0,nczarr=2.0.0"}
    root = omnizarr.create_group(tmp_path / "old.zarr", zarr_format=2, attributes=attributes)
    array = root.create_array("v", shape=(2,), dtype=">i2", compressors=None, attributes={"_ARRAY_DIMENSIONS": ["x"]})
    array[:] = np.array([1, 2], "i2").byteswap()
    return tmp_path / "old.zarr"


def test_repairs_are_reported_if_asked_for(run, flawed):
    code, out, err = run(flawed)
    assert (code, err) == (0, "")
    assert " v = 1, 2 ;" in out
    code, again, err = run("--notes", flawed)
    assert (code, again) == (0, out)
    assert err.startswith("/v: ")


def test_the_header_is_printed_without_the_modules_of_other_commands(tmp_path):
    with netcdf.Dataset(tmp_path / "x.zarr", "w") as dataset:
        dataset.createDimension("x", 2)
        dataset.createVariable("v", "f4", ("x",))[:] = 1
    others = ["rich", "numpy.ma", "omnizarr.tools.convert", "omnizarr.tools.describe"]
    program = f"import sys\nfrom omnizarr.cli import main\nmain()\nassert not sys.modules.keys() & set({others})"
    done = subprocess.run(
        [sys.executable, "-c", program, "dump", "-h", str(tmp_path / "x.zarr")], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"float v(x)" in done.stdout
