"""HDF5 files that lead to other files: nothing outside their directory is read unless the user trusts them."""

import os

import h5py
import netCDF4
import numpy as np
import pytest
from click.testing import CliRunner

import omnizarr
from omnizarr.cli.dump import dump
from omnizarr.errors import MetadataError, NotRepresentableError, SettingError
from omnizarr.netcdf import files

VALUES = np.frombuffer(b"root:x:0:0:secret:::", "u1")


@pytest.fixture
def places(tmp_path):
    """A directory with a file beside, and one outside with what must not be read."""
    for name in ("own", "outside"):
        (tmp_path / name / "below").mkdir(parents=True)
        for place in ("raw.bin", "below/raw.bin"):
            (tmp_path / name / place).write_bytes(VALUES.tobytes())
        for place in ("other.h5", "below/other.h5"):
            with h5py.File(tmp_path / name / place, "w") as file:
                file["d"] = VALUES
    return tmp_path


def external_link(file, other):
    file["v"] = h5py.ExternalLink(other, "d")


def group_link(file, other):
    file["g"] = h5py.ExternalLink(other, "/")


def soft_link(file, other):
    file["v"] = h5py.SoftLink("/z/d")
    file["z"] = h5py.ExternalLink(other, "/")


def virtual(file, other):
    layout = h5py.VirtualLayout((20,), "u1")
    layout[:] = h5py.VirtualSource(other, "d", (20,))
    file.create_virtual_dataset("v", layout, fillvalue=7)


def storage(file, other):
    file.create_dataset("v", (20,), "u1", external=[(other.replace("other.h5", "raw.bin"), 0, 20)])


KINDS = [external_link, group_link, soft_link, virtual, storage]
OUTSIDE = ["{outside}/other.h5", "../outside/other.h5", "linked.h5", "linked/other.h5", "below/../../outside/other.h5"]


def made(places, kind, other, *, below=""):
    path = places / "own" / below / "evil.h5"
    for name, target in {"linked.h5": "other.h5", "raw.bin.link": "raw.bin", "linked": ""}.items():
        link = places / "own" / name
        if not os.path.lexists(link):
            link.symlink_to(places / "outside" / target)
    with h5py.File(path, "w") as file:
        file["own"] = np.arange(3)
        kind(file, other.format(outside=places / "outside", own=places / "own"))
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", OUTSIDE)
def test_nothing_outside_is_read_unless_trusted(places, kind, other, monkeypatch):
    if kind is storage and other == "linked.h5":
        other = "linked/other.h5"
    monkeypatch.chdir(places / "own")  # HDF5 looks for external storage here
    path = made(places, kind, other)
    name = {"group_link": "g/d"}.get(kind.__name__, "v")
    for done in (omnizarr.convert(path, dry_run=True), omnizarr.convert(path, places / "x.zarr")):
        told = [f"{each.path} {each.what} {each.why}" for each in done.losses]
        assert any(name[0] in each for each in told)
        assert {"out of the directory of the file; it is read only if you trust the file" in each for each in told} == {
            True
        }
    written = omnizarr.open(places / "x.zarr")
    assert [path for path, _ in written.members(max_depth=None)] == ["own"]
    np.testing.assert_array_equal(written["own"][:], np.arange(3))
    with pytest.raises(NotRepresentableError, match="out of the directory"):
        omnizarr.convert(path, places / "y.zarr", strict=True)
    assert not (places / "y.zarr").exists()
    dumped = CliRunner().invoke(dump, [str(path)])
    assert not dumped.exit_code
    assert "own = 0, 1, 2" in dumped.output
    assert "114, 111" not in dumped.output
    done = omnizarr.convert(path, places / "x.zarr", references="trusted", overwrite=True)
    assert not done.losses
    np.testing.assert_array_equal(omnizarr.open(places / "x.zarr")[name][:], VALUES)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", ["other.h5", "below/other.h5", "{own}/other.h5"])
def test_files_in_the_same_directory_are_read(places, kind, other, monkeypatch):
    monkeypatch.chdir(places / "own")
    path = made(places, kind, other)
    assert not omnizarr.convert(path, places / "x.zarr", strict=True).losses
    name = {"group_link": "g/d"}.get(kind.__name__, "v")
    np.testing.assert_array_equal(omnizarr.open(places / "x.zarr")[name][:], VALUES)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_file_inside_leads_to_is_checked_too(places, kind, monkeypatch):
    monkeypatch.chdir(places / "own")
    with h5py.File(places / "own" / "other.h5", "w") as file:
        kind(file, str(places / "outside" / "other.h5"))
        file.move("v" if "v" in file else "g", "d")
    for outer in (external_link, group_link, virtual):
        done = omnizarr.convert(made(places, outer, "other.h5"), dry_run=True)
        assert {"out of the directory" in each.why for each in done.losses} == {True}


def test_a_virtual_dataset_without_its_file_is_a_loss(places):
    path = made(places, virtual, "missing.h5")
    done = omnizarr.convert(path, places / "x.zarr")
    assert [(each.path, "missing.h5" in each.why) for each in done.losses] == [("v", True)]
    assert omnizarr.open(places / "x.zarr")["v"][:].tolist() == [7] * 20
    with pytest.raises(NotRepresentableError, match=r"missing\.h5"):
        omnizarr.convert(path, places / "y.zarr", strict=True)


def test_a_virtual_dataset_of_its_own_file_is_read(places):
    path = places / "own" / "self.h5"
    with h5py.File(path, "w") as file:
        file["d"] = VALUES
        layout = h5py.VirtualLayout((20,), "u1")
        layout[:] = h5py.VirtualSource(file["d"])
        file.create_virtual_dataset("v", layout)
    assert omnizarr.convert(path, places / "x.zarr").is_lossless
    np.testing.assert_array_equal(omnizarr.open(places / "x.zarr")["v"][:], VALUES)


@pytest.fixture
def linked(places):
    """A file of netCDF-4, and one that leads to it as a whole, to its group and to its variables."""
    with netCDF4.Dataset(places / "own" / "part.nc", "w") as ds:
        ds.createDimension("t", None)
        ds.createDimension("x", 4)
        ds.createVariable("t", "f8", ("t",))[:] = [1, 2, 3]
        ds.createVariable("v", "i2", ("t", "x"), zlib=True, fill_value=-1)[:] = np.arange(12).reshape(3, 4)
        ds.createVariable("texts", str, ("x",))[:] = np.array(["a", "bb", "", "cä"], object)
        kind = ds.createEnumType("u1", "kind", {"land": 1, "sea": 2})
        ds.createVariable("kinds", kind, ("x",))[:] = [1, 2, 1, 2]
        group = ds.createGroup("g")
        group.note = "inner"
        group.createVariable("z", "f4", ("t",))[:] = 5
    with h5py.File(places / "own" / "part.nc", "a") as file:
        file["g"].attrs["inside"] = file["g/z"].ref
        file["g"].attrs["outside"] = file["v"].ref
    with h5py.File(places / "own" / "x.h5", "w") as file:
        file["all"] = h5py.ExternalLink("part.nc", "/")
        file["below/g"] = h5py.ExternalLink("part.nc", "/g")
        for name in ("v", "texts", "kinds"):
            file[f"of {name}"] = h5py.ExternalLink("part.nc", name)
        file["soft"] = h5py.SoftLink("/all/g/z")
    return places / "own"


def test_linked_files_keep_their_dimensions_types_and_values(linked):
    with files.open_file(linked / "part.nc") as own, files.open_file(linked / "x.h5") as source:
        everything = source.root.groups["all"]
        assert everything.dimensions == own.root.dimensions
        assert everything.types == own.root.types
        for name, header in own.root.variables.items():
            found = everything.variables[name]
            assert found.dimensions == tuple(f"/all{each}" for each in header.dimensions)
            assert (found.type, found.attributes) == (header.type, header.attributes)
            whole = tuple(slice(0, own.root.dimensions[each[1:]].size) for each in header.dimensions)
            expected = own.read(f"/{name}", whole)
            for path in (f"/all/{name}", f"/of {name}"):
                if path != "/of t":
                    np.testing.assert_array_equal(source.read(path, whole), expected)
        assert everything.groups["g"].variables["z"].dimensions == ("/all/t",)
        assert source.read("/soft", (slice(0, 3),)).tolist() == [5, 5, 5]
        assert source.root.variables["of v"].attributes == own.root.variables["v"].attributes


def test_references_in_linked_files_are_paths_in_the_dataset(linked):
    with files.open_file(linked / "x.h5") as source:
        whole = source.root.groups["all"].groups["g"].attributes
        part = source.root.groups["below"].groups["g"].attributes
    assert [whole["inside"].value[0], whole["outside"].value[0]] == ["/all/g/z", "/all/v"]
    assert [part["inside"].value[0], part["outside"].value[0]] == ["/below/g/z", "part.nc:/v"]


def test_virtual_texts_and_lists_are_those_of_h5py(places):
    with h5py.File(places / "own" / "part.h5", "w") as file:
        file["texts"] = np.array([[f"{row}-{column}" for column in range(6)] for row in range(8)], object)
        sparse = file.create_dataset("sparse", (20,), h5py.string_dtype(), chunks=(3,))
        sparse[4:8] = ["a", "b", "c", "d"]
        lists = file.create_dataset("lists", (4,), h5py.vlen_dtype("i4"))
        lists[:] = [np.arange(length, dtype="i4") for length in range(4)]
    path = places / "own" / "x.h5"
    with h5py.File(path, "w") as file:
        layout = h5py.VirtualLayout((16, 7), h5py.string_dtype())
        layout[::2, 1:] = h5py.VirtualSource("part.h5", "texts", (8, 6))
        layout[1, :] = h5py.VirtualSource("part.h5", "sparse", (20,))[2:9]
        layout[3:9:2, 2] = h5py.VirtualSource("part.h5", "texts", (8, 6))[1:7:2, 3]
        file.create_virtual_dataset("texts", layout)
        layout = h5py.VirtualLayout((9,), h5py.vlen_dtype("i4"))
        layout[1:8:2] = h5py.VirtualSource("part.h5", "lists", (4,))
        file.create_virtual_dataset("lists", layout)
    with h5py.File(path) as file, files.open_file(path) as source:
        expected = file["texts"].asstr()[...]
        for rows, columns in ((slice(0, 16), slice(0, 7)), (slice(1, 6), slice(2, 5)), (slice(3, 4), slice(6, 7))):
            assert source.read("/texts", (rows, columns)).tolist() == expected[rows, columns].tolist()
        found = source.read("/lists", (slice(0, 9),))
        assert [each.tolist() for each in found] == [each.tolist() for each in file["lists"][...]]


def test_virtual_datasets_that_cannot_be_read_are_left_out(places):
    with h5py.File(places / "own" / "x.h5", "w") as file:
        file["own"] = np.arange(3)
        for name, of in (("circle", ("x.h5", "circle")), ("no HDF5", ("raw.bin", "d"))):
            layout = h5py.VirtualLayout((20,), "u1")
            layout[:] = h5py.VirtualSource(*of, (20,))
            file.create_virtual_dataset(name, layout)
    done = omnizarr.convert(places / "own" / "x.h5", places / "x.zarr")
    assert {each.pointer: each.why.split(":")[0] for each in done.losses} == {
        "/variables/circle": "it cannot be read",
        "/variables/no HDF5": "it cannot be read",
    }
    assert list(omnizarr.open(places / "x.zarr")) == ["own"]


def test_values_behind_an_unknown_filter_are_left_out(places):
    path = places / "own" / "x.h5"
    with h5py.File(path, "w") as file:
        file["own"] = np.arange(3)
        chunks = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        chunks.set_chunk((2,))
        chunks.set_filter(40000, h5py.h5z.FLAG_OPTIONAL, (1,))
        h5py.h5d.create(file.id, b"v", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((20,)), chunks)
    done = omnizarr.convert(path, places / "x.zarr")
    assert [(each.pointer, each.why) for each in done.losses] == [
        ("/variables/v", "no codec is known for the filter number 40000")
    ]


@pytest.mark.parametrize("target", ["/", "/g"])
def test_links_in_a_circle_end(places, target):
    path = places / "own" / "circle.h5"
    with h5py.File(path, "w") as file:
        file.create_group("g")["up"] = h5py.SoftLink(target)
    with pytest.raises(MetadataError, match="link"), files.open_file(path):
        pass


def test_other_words_of_trust_are_refused(places):
    with pytest.raises(SettingError, match="trusted"), files.open_file(places / "own" / "other.h5", references="yes"):
        pass


ODD = {
    "empty": lambda: h5py.Empty("f4"),
    "soft": lambda: h5py.SoftLink("/nothing"),
    "no_file": lambda: h5py.ExternalLink("missing.h5", "/d"),
    "not_in_file": lambda: h5py.ExternalLink("other.h5", "/nothing"),
}


@pytest.mark.parametrize("target", ["x.zarr", "x.nc"])
@pytest.mark.parametrize("library", ["h5py", "netCDF4"])
def test_all_but_what_leads_nowhere_is_read(places, target, library, monkeypatch):
    path = places / "own" / "odd.h5"
    monkeypatch.chdir(places / "own")
    if library == "netCDF4":
        with netCDF4.Dataset(path, "w") as dataset:
            dataset.createDimension("time", None)
            dataset.createVariable("time", "f8", ("time",))[:] = [1, 2, 3]
            dataset.createGroup("g").createVariable("d", ">i2", ("time",), zlib=True, endian="big")[:] = [4, 5, 6]
    else:
        with h5py.File(path, "w") as file:
            file["time"], file["g/d"] = np.array([1.0, 2, 3]), np.array([4, 5, 6], ">i2")
    with h5py.File(path, "r+") as file:
        for group in (file, file["g"]):
            for name, make in ODD.items():
                group[name] = make()
            space = h5py.h5s.create_simple((20,))
            created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            created.set_external(b"missing.raw", 0, 20)
            h5py.h5d.create(group.id, b"raw", h5py.h5t.STD_U8LE, space, created)
        file["g/d"].attrs["table"] = [[1, 2], [3, 4]]
    done = omnizarr.convert(path, places / target)
    expected = {(at, f"/variables/{name}") for at in ("", "g") for name in [*ODD, "raw"]}
    assert {(each.path, each.pointer) for each in done.losses} - {("g/d", "/attributes/table")} == expected
    if target == "x.nc":
        with netCDF4.Dataset(places / target) as found:
            assert found["time"][:].tolist() == [1, 2, 3]
            assert found["g/d"][:].tolist() == [4, 5, 6]
            assert found["time"].get_dims()[0].isunlimited() == (library == "netCDF4")
    else:
        found = omnizarr.open(places / target)
        assert found["time"][:].tolist() == [1, 2, 3]
        assert found["g/d"][:].tolist() == [4, 5, 6]
        assert found["g/d"].attrs["table"] == [[1, 2], [3, 4]]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_below_a_root_is_read(places, kind, monkeypatch):
    monkeypatch.chdir(places / "own")
    path = made(places, kind, "{outside}/below/other.h5")
    outside = str(places / "outside")
    for roots in ([outside], ["https://example.org", outside], [f"file://{outside}"], outside):
        with files.open_file(path, references=roots) as source:
            assert source is not None
    with omnizarr.config.set({"references.trust": [outside]}), files.open_file(path) as source:
        assert source is not None
    omnizarr.convert(path, places / "x.zarr", references=[outside])
    found = dict(omnizarr.open(places / "x.zarr").members(max_depth=None))
    assert VALUES.tobytes() in {node[...].tobytes() for node in found.values() if isinstance(node, omnizarr.Array)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("root", ["own", "outside/below", "outsid"])
def test_what_is_below_no_root_is_refused(places, kind, root, monkeypatch):
    monkeypatch.chdir(places / "own")
    path = made(places, kind, "{outside}/other.h5")
    roots = [str(places / root)]
    done = omnizarr.convert(path, places / "x.zarr", references=roots)
    assert {"out of the directory" in each.why for each in done.losses} == {True}
    assert list(omnizarr.open(places / "x.zarr")) == ["own"]
