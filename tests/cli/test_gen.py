"""`omnizarr gen`, run as a user runs it: what it makes is opened by `omnizarr`, and held against the CDL."""

import io
import json
import sys
import zipfile
from types import SimpleNamespace

import pytest

import omnizarr
from omnizarr import netcdf
from omnizarr.cli import main

COMMAND = "gen"

CDL = """\
netcdf tides {
dimensions:
	time = 2 ;
	x = 2 ;
variables:
	short level(time, x) ;
		level:units = "é" ;
	float depth ;

// global attributes:
		:title = "tides" ;
data:

 level =
  1, 2,
  3, 4 ;

 depth = 0.5 ;
}
"""
LEVEL = [[1, 2], [3, 4]]


@pytest.fixture
def capture(capfd):
    return capfd


@pytest.fixture
def file(tmp_path):
    (tmp_path / "tides.cdl").write_text(CDL, encoding="utf-8")
    return tmp_path / "tides.cdl"


def check(path):
    """Hold a dataset against the CDL."""
    with netcdf.Dataset(path) as ds:
        assert ds.title == "tides"
        assert (ds["level"].nctype.name, ds["level"].dimensions, ds["level"].units) == ("short", ("time", "x"), "é")
        assert ds["level"][:].tolist() == LEVEL
        assert (ds["depth"].nctype.name, ds["depth"].shape, ds["depth"][...]) == ("float", (), 0.5)
        return ds.layout


def test_dataset_of_the_cdl_is_made(run, file, tmp_path):
    assert run(file, "-o", tmp_path / "x.zarr") == (0, "", "")
    assert check(tmp_path / "x.zarr") == "D"
    assert omnizarr.open(tmp_path / "x.zarr").zarr_format == 2


@pytest.mark.parametrize(
    ("options", "layout", "zarr_format"),
    [
        ("--layout A", "A", 2),
        ("-k B", "B", 2),
        ("-k C", "C", 2),
        ("-k d", "D", 2),
        ("-k pure", "pure", 2),
        ("--zarr-format 2", "D", 2),
        ("--zarr-format 3", "v3", 3),
        ("-k pure --zarr-format 3", "pure-v3", 3),
    ],
)
def test_layout_is_the_one_asked_for(run, file, tmp_path, options, layout, zarr_format):
    assert run(file, "-o", tmp_path / "x.zarr", *options.split()) == (0, "", "")
    assert check(tmp_path / "x.zarr") == layout
    assert omnizarr.open(tmp_path / "x.zarr").zarr_format == zarr_format


KINDS = {
    "NETCDF3_CLASSIC": ["-k nc3", "-3", "-k classic", "-k 3"],
    "NETCDF3_64BIT_OFFSET": ["-k nc6", "-6", "-k 64-bit-offset"],
    "NETCDF3_64BIT_DATA": ["-k nc5", "-5"],
    "NETCDF4": ["-k nc4", "-4", "-k netCDF-4", ""],
    "NETCDF4_CLASSIC": ["-k NC7", "-7"],
}


@pytest.mark.parametrize(("kind", "option"), [(kind, each) for kind, all_ in KINDS.items() for each in all_])
def test_kind_of_a_file_is_the_one_asked_for(run, file, tmp_path, kind, option):
    import netCDF4

    assert run(file, "-o", tmp_path / "x.nc", *option.split()) == (0, "", "")
    with netCDF4.Dataset(tmp_path / "x.nc") as ds:
        assert (ds.data_model, ds["level"][:].tolist()) == (kind, LEVEL)


@pytest.mark.parametrize("option", ["-k nc4", "-4", "-k netCDF-4"])
def test_zarr_has_the_model_of_netcdf_4(run, file, tmp_path, option):
    assert run(file, "-o", tmp_path / "x.zarr", *option.split()) == (0, "", "")
    assert check(tmp_path / "x.zarr") == "D"


@pytest.mark.parametrize("option", ["-k nc3", "-3", "-7", "-k other"])
def test_other_kinds_are_refused(run, file, tmp_path, option):
    code, _, err = run(file, "-o", tmp_path / "x.zarr", *option.split())
    assert code == 2
    assert "x.nc" in err or "nc3" in err
    assert not (tmp_path / "x.zarr").exists()


@pytest.mark.parametrize(
    ("fragment", "layout"),
    [
        ("#mode=nczarr,file", "D"),
        (r"\#mode=nczarr,file", "D"),
        ("#mode=zarr,file", "pure"),
        ("#mode=nczarr,v3", "v3"),
        ("#mode=zarr,v3", "pure-v3"),
    ],
)
def test_mode_of_the_url_says_what_is_made(run, file, tmp_path, fragment, layout):
    assert run("-4", "-lb", "-o", f"file://{tmp_path.as_posix()}/x.file{fragment}", file) == (0, "", "")
    assert check(tmp_path / "x.file") == layout


@pytest.mark.parametrize(("name", "fragment"), [("x.zip", ""), ("x.anyext", "#mode=nczarr,zip")])
def test_archive_is_made(run, file, tmp_path, name, fragment):
    assert run(file, "-o", f"file://{tmp_path.as_posix()}/{name}{fragment}") == (0, "", "")
    assert zipfile.is_zipfile(tmp_path / name)
    assert check(tmp_path / name) == "D"


def test_noxarray_writes_no_dimension_names(run, file, tmp_path):
    for name, fragment in (("with", ""), ("without", ",noxarray")):
        run(file, "-o", f"file://{tmp_path.as_posix()}/{name}#mode=nczarr,file{fragment}")
        attributes = json.loads((tmp_path / name / "level" / ".zattrs").read_text())
        assert attributes.get("_ARRAY_DIMENSIONS") == (["time", "x"] if name == "with" else None)


def test_netcdf_file_is_made(run, file, tmp_path):
    netcdf4 = pytest.importorskip("netCDF4")
    assert run("-b", file, "-o", tmp_path / "x.nc") == (0, "", "")
    with netcdf4.Dataset(tmp_path / "x.nc") as ds:
        assert ds.title == "tides"
        assert ds["level"].units == "é"
        assert ds["level"][:].tolist() == LEVEL


def test_what_a_netcdf_file_cannot_hold_is_reported(run, tmp_path):
    (tmp_path / "x.cdl").write_text(r'netcdf x { dimensions: n = 1 ; variables: string v(n) ; data: v = "a\000b" ; }')
    code, out, err = run(tmp_path / "x.cdl", "-o", tmp_path / "x.nc")
    assert (code, out) == (0, "")
    assert err.startswith("omnizarr: lost: /v: ")
    assert err.count("\n") == 1


def test_directory_may_end_with_nc_if_the_mode_says_so(run, file, tmp_path):
    assert run(file, "-o", f"file://{tmp_path.as_posix()}/x.nc#mode=nczarr,file") == (0, "", "")
    assert check(tmp_path / "x.nc") == "D"


def test_cdl_may_come_through_a_pipe(run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(CDL.encode())))
    assert run("-", "-o", tmp_path / "x.zarr") == (0, "", "")
    check(tmp_path / "x.zarr")


# -- what exists, and what goes wrong ----------------------------------------


@pytest.mark.parametrize("name", ["x.zarr", "x.zip", "x.nc"])
def test_existing_data_is_replaced_only_if_asked_for(run, file, tmp_path, name):
    assert run(file, "-o", tmp_path / name)[0] == 0
    other = tmp_path / "other.cdl"
    other.write_text("netcdf other { dimensions: y = 3 ; }")
    code, out, err = run(other, "-o", tmp_path / name)
    assert (code, out) == (1, "")
    assert name in err
    assert err.rstrip().endswith("replace it with --overwrite")
    if name != "x.nc":
        check(tmp_path / name)
    assert run(other, "-o", tmp_path / name, "--overwrite") == (0, "", "")
    if name != "x.nc":
        with netcdf.Dataset(tmp_path / name) as ds:
            assert (list(ds.dimensions), list(ds.variables)) == (["y"], [])


@pytest.mark.parametrize(
    "options",
    [
        "-k E",
        "-k A --zarr-format 3",
        "--zarr-format 4",
        "-o x.nc -k B",
        "-o x.zarr#mode=v3 --zarr-format 2",
        "-o x.zarr#mode=v3 -k C",
        "-o x.zarr#mode=zarr -k D",
        "-o x.zarr#mode=nczarr,v3 -k pure",
        "-lc",
    ],
)
def test_options_that_are_not_valid_are_an_error(run, file, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(file, "-o", "x.zarr", *options.split())
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["tides.cdl"]


def test_output_must_be_said(run, file):
    code, _, err = run(file)
    assert code == 2
    assert "-o" in err


@pytest.mark.parametrize("text", ["netcdf x { variables: int v(nope) ; }", "netcdf x {", "", "no CDL", "\x00"])
def test_broken_cdl_makes_nothing(run, tmp_path, text):
    (tmp_path / "broken.cdl").write_text(text)
    code, out, err = run(tmp_path / "broken.cdl", "-o", tmp_path / "x.zarr")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "bug" not in err
    assert not (tmp_path / "x.zarr").exists()


LONG = 'netcdf x { dimensions: n = 1 ; variables: int a(n) ; string v(n) ;%s data: a = 1 ; v = "%s" ; }'


@pytest.mark.parametrize("name", ["x.zarr", "x.zip"])
def test_nothing_is_left_of_a_dataset_that_fails(run, tmp_path, name):
    (tmp_path / "long.cdl").write_text(LONG % (" v:_nczarr_maxstrlen = 128 ;", "a" * 129))
    code, out, err = run(tmp_path / "long.cdl", "-o", tmp_path / name)
    assert (code, out) == (1, "")
    assert "_nczarr_maxstrlen" in err
    assert [each.name for each in tmp_path.iterdir()] == ["long.cdl"]


def test_what_was_there_before_is_left_when_a_dataset_fails(run, tmp_path):
    (tmp_path / "long.cdl").write_text(LONG % (" v:_nczarr_maxstrlen = 128 ;", "a" * 129))
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "notes.txt").write_text("mine")
    assert run(tmp_path / "long.cdl", "-o", tmp_path / "x")[0] == 1
    assert (tmp_path / "x" / "notes.txt").read_text() == "mine"


def test_strings_are_stored_whole_where_nobody_said_how_long_they_may_be(run, tmp_path):
    (tmp_path / "long.cdl").write_text(LONG % ("", "ä" * 300))
    assert run(tmp_path / "long.cdl", "-o", tmp_path / "x.zarr") == (0, "", "")
    with netcdf.Dataset(tmp_path / "x.zarr") as ds:
        assert ds["v"][0] == "ä" * 300
        assert ds["v"].ncattrs() == []


def test_strings_may_be_as_long_as_the_cdl_says(run, tmp_path):
    (tmp_path / "long.cdl").write_text(LONG % (" v:_nczarr_maxstrlen = 129 ;", "a" * 129))
    assert run(tmp_path / "long.cdl", "-o", tmp_path / "x.zarr") == (0, "", "")
    with netcdf.Dataset(tmp_path / "x.zarr") as ds:
        assert ds["v"][0] == "a" * 129


@pytest.mark.parametrize(("name", "package"), [("x.zarr", "lark"), ("x.nc", "netCDF4")])
def test_missing_package_is_named_with_its_extra(run, file, tmp_path, monkeypatch, name, package):
    from omnizarr.netcdf.cdl import compiling

    for function in vars(compiling).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    code, out, err = run(file, "-o", tmp_path / name)
    assert (code, out) == (1, "")
    assert package in err
    assert "omnizarr[netcdf]" in err
    assert not (tmp_path / name).exists()


def test_no_cdl_is_an_error(run, tmp_path):
    code, _, err = run(tmp_path / "nothing.cdl", "-o", tmp_path / "x.zarr")
    assert code == 1
    assert "nothing.cdl" in err


def test_url_of_a_kind_that_is_unknown_is_reported(run, file):
    code, _, err = run(file, "-o", "nothing://bucket/x.zarr")
    assert code == 1
    assert "nothing://" in err


# -- both ways -----------------------------------------------------------------


def test_directory_in_the_way_of_a_file_is_not_replaced(run, file, tmp_path):
    (tmp_path / "x.nc").mkdir()
    code, out, err = run(file, "-o", tmp_path / "x.nc", "--overwrite")
    assert (code, out) == (1, "")
    assert "x.nc" in err
    assert "--overwrite" not in err


@pytest.mark.parametrize("layout", ["A", "B", "C", "D"])
def test_what_is_printed_is_the_cdl_again(run, file, tmp_path, layout, capfd):
    assert run(file, "-o", tmp_path / "tides.zarr", "-k", layout)[0] == 0
    assert main(["dump", str(tmp_path / "tides.zarr")]) == 0
    assert capfd.readouterr().out == CDL
