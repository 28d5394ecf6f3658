"""OME-Zarr is 0.4 in Zarr v2 and 0.5 in v3, and a conversion makes one of the other.

ome-zarr-py writes; ome-zarr-models and ome-zarr-py read before and after.
"""

import copy
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr.formats import V2, V3
from omnizarr.formats.conventions import Nodes, carry, faults, followed, ome
from omnizarr.model import GroupMetadata

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what these import
    zarr = pytest.importorskip("zarr")
    models = pytest.importorskip("ome_zarr_models")
    pytest.importorskip("ome_zarr")
    from ome_zarr import format as versions
    from ome_zarr import writer
    from ome_zarr.classes import OMEZarrMultiscale
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader
    from ome_zarr.utils import find_multiscales
    from pydantic import ValidationError

pytestmark = pytest.mark.filterwarnings("ignore")  # ome-zarr-py warns of scales that are not given

V04, V05 = "0.4", "0.5"
FORMATS = {V04: versions.FormatV04(), V05: versions.FormatV05()}
OTHER = {V04: V05, V05: V04}
ZARR = {V04: 2, V05: 3}
NODES = {
    "image": ["", "labels", "labels/cells"],
    "plate": ["", "A/1", "A/1/0", "B/2", "B/2/1"],
    "series": ["", "0", "1"],
}
XML = '<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image Name="one"/><Image Name="two"/></OME>'
OMERO = {
    "id": 1,
    "channels": [
        {"color": color, "label": color, "active": True, "window": {"min": 0, "max": 9, "start": 1, "end": 8}}
        for color in ("FF0000", "00FF00")
    ],
    "rdefs": {"model": "color"},
}


def add(group, version, members):
    """Put members where a version of OME-Zarr has them."""
    if version == V05:
        members = {"ome": {"version": version, **group.attrs.get("ome", {}), **members}}
    group.attrs.update(members)


def write_image(group, version, shape=(2, 3, 20, 24), axes="czyx", **options):
    data = np.random.default_rng(len(group.path)).integers(0, 1000, shape).astype("u2")
    writer.write_image(data, group, axes=axes, scale_factors=[2], fmt=FORMATS[version], **options)


def write(path, version, what):
    """Let ome-zarr-py write a hierarchy."""
    root = zarr.open_group(path, mode="w", zarr_format=ZARR[version])
    if what == "image":
        options = {"chunks": (1, 1, 8, 8)}
        scale = {"z": 0.5, "y": 0.25, "x": 0.25}
        write_image(root, version, scale=scale, axes_units={"y": "micrometer"}, storage_options=options, name="a")
        add(root, version, {"omero": OMERO})
        labels = np.random.default_rng(1).integers(0, 4, (2, 3, 20, 24)).astype("u1")
        told = {"colors": [{"label-value": 1, "rgba": [1, 2, 3, 4]}], "source": {"image": "../../"}}
        keywords = {"axes": "czyx", "scaler": None, "scale_factors": [2], "label_metadata": told}
        writer.write_labels(labels, root, "cells", fmt=FORMATS[version], **keywords)
        add(root["labels"], version, {})  # ome-zarr-py 0.18 leaves the version out of 0.5
    elif what == "plate":
        names, wells = {"rows": ["A", "B"], "columns": ["1", "2"]}, ["A/1", "B/2"]
        acquisitions = [{"id": 0, "name": "first"}]
        keywords = {"acquisitions": acquisitions, "name": "plate", "field_count": 2, "fmt": FORMATS[version]}
        writer.write_plate_metadata(root, wells=wells, **names, **keywords)
        for well in wells:
            fields = [{"path": name, "acquisition": 0} for name in "01"]
            writer.write_well_metadata(root.require_group(well), fields, fmt=FORMATS[version])
            for name in "01":
                write_image(root.require_group(f"{well}/{name}"), version, shape=(2, 16, 20), axes="cyx")
    else:  # as bioformats2raw lays it out
        add(root, version, {"bioformats2raw.layout": 3})
        for name in "01":
            write_image(root.require_group(name), version, shape=(16, 20), axes="yx")
        add(root.require_group("OME"), version, {"series": ["0", "1"]})
        (Path(path) / "OME" / "METADATA.ome.xml").write_text(XML, encoding="utf-8")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return what ome-zarr-py wrote, and what it was converted to: both by version and kind."""
    root = tmp_path_factory.mktemp("ome")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for version in FORMATS:
            for what in NODES:
                source, target = str(root / f"{version}-{what}"), str(root / f"{version}-{what}-converted")
                write(source, version, what)
                done = omnizarr.convert(source, target, zarr_format=ZARR[OTHER[version]], strict=True)
                assert done.verified
                assert done.is_lossless
    return lambda version, what, converted=False: str(root / f"{version}-{what}{'-converted' * converted}")


def attributes(path, node=""):
    """Return attributes as zarr-python reads them."""
    return zarr.open(path, path=node, mode="r").attrs.asdict()


def model(path, node, version):
    """Return a group as ome-zarr-models reads it."""
    group = zarr.open_group(path, path=node, mode="r", zarr_format=ZARR[version])
    if "bioformats2raw.layout" in group.attrs.get("ome", {}):  # which open_ome_zarr 1.7 does not try
        return models.v05.bioformats2raw.BioFormats2Raw.from_zarr(group)
    return models.open_ome_zarr(group, version=version)


def group_attributes(path):
    root = zarr.open_group(path, mode="r")
    return {"": root.attrs.asdict(), **{name: node.attrs.asdict() for name, node in root.members(max_depth=None)}}


def without_versions(value):
    if isinstance(value, dict):
        return {name: without_versions(item) for name, item in value.items() if name != "version"}
    return [without_versions(item) for item in value] if isinstance(value, list | tuple) else value


def nodes_of(path):
    """Return the nodes that are at a path of this machine."""
    found = {}
    for document in sorted(Path(path).rglob("*")):
        at = document.parent.relative_to(path).as_posix().removeprefix(".")
        if document.name == "zarr.json":
            found[at] = V3.load({"zarr.json": json.loads(document.read_text("utf-8"))})
        elif document.name in (".zarray", ".zgroup"):
            attrs = document.parent / ".zattrs"
            more = {".zattrs": json.loads(attrs.read_text("utf-8"))} if attrs.exists() else {}
            found[at] = V2.load({document.name: json.loads(document.read_text("utf-8")), **more})
    return Nodes(found)


EACH_NODE = [(version, what, node) for version in FORMATS for what, nodes in NODES.items() for node in nodes]


class TestReaders:
    @pytest.mark.parametrize(("version", "what", "node"), EACH_NODE)
    def test_ome_zarr_models_reads_the_same(self, written, version, what, node):
        before = model(written(version, what), node, version)
        after = model(written(version, what, True), node, OTHER[version])
        assert type(before).__name__ == type(after).__name__
        dumped = [each.ome_attributes.model_dump(by_alias=True, exclude_none=True) for each in (before, after)]
        assert without_versions(dumped[0]) == without_versions(dumped[1])

    @pytest.mark.parametrize(("version", "what", "node"), EACH_NODE)
    def test_ome_zarr_py_reads_the_same(self, written, version, what, node):
        both = [
            list(Reader(parse_url(f"{written(version, what, converted)}/{node}", fmt=FORMATS[fmt]))())
            for converted, fmt in ((False, version), (True, OTHER[version]))
        ]
        assert len(both[0]) == len(both[1])
        assert both[0] or what == "series"
        for before, after in zip(*both, strict=True):
            assert [type(spec) for spec in before.specs] == [type(spec) for spec in after.specs]
            assert without_versions(before.metadata) == without_versions(after.metadata)
            assert [level.shape for level in before.data] == [level.shape for level in after.data]
            for one, other in zip(before.data, after.data, strict=True):
                np.testing.assert_array_equal(one, other)

    @pytest.mark.parametrize("version", FORMATS)
    def test_ome_zarr_py_finds_all_images_of_bioformats2raw(self, written, version):
        found = [find_multiscales(Path(written(version, "series", converted))) for converted in (False, True)]
        assert [image[1] for image in found[1]] == [image[1] for image in found[0]] == ["one", "two"]


class TestForm:
    @pytest.mark.parametrize("version", FORMATS)
    @pytest.mark.parametrize("what", NODES)
    def test_is_the_one_that_ome_zarr_py_writes(self, written, version, what):
        ours, theirs = (group_attributes(written(*each)) for each in ((version, what, True), (OTHER[version], what)))
        for members in (*ours.values(), *theirs.values()):
            # recommended in both versions, but ome-zarr-py writes it in 0.4 alone
            members.get("ome", {}).get("well", {}).pop("version", None)
        assert ours == theirs

    @pytest.mark.parametrize("version", FORMATS)
    @pytest.mark.parametrize("what", NODES)
    def test_is_the_first_again_after_both_ways(self, written, tmp_path, version, what):
        back = str(tmp_path / "back")
        assert omnizarr.convert(written(version, what, True), back, zarr_format=ZARR[version]).is_lossless
        ours, theirs = (group_attributes(path) for path in (back, written(version, what)))
        for members in (*ours.values(), *theirs.values()):
            members.get("ome", {}).get("well", {}).pop("version", None)
        assert ours == theirs
        for path, array in zarr.open_group(back, mode="r").members(max_depth=None):
            if isinstance(array, zarr.Array):
                before = zarr.open_array(written(version, what), path=path, mode="r").metadata.to_dict()
                assert array.metadata.to_dict() == before

    @pytest.mark.parametrize("what", NODES)
    def test_of_levels_in_v3_names_their_dimensions(self, written, what):
        for path, node in zarr.open_group(written(V04, what, True), mode="r").members(max_depth=None):
            if isinstance(node, zarr.Array):
                theirs = zarr.open_array(written(V05, what), path=path, mode="r")
                assert node.metadata.dimension_names == theirs.metadata.dimension_names is not None

    @pytest.mark.parametrize("what", NODES)
    def test_of_levels_in_v2_has_chunks_in_directories(self, written, what):
        for _, node in zarr.open_group(written(V05, what, True), mode="r").members(max_depth=None):
            if isinstance(node, zarr.Array):
                assert node.metadata.dimension_separator == "/"

    def test_of_levels_in_v2_leaves_names_to_the_axes(self, written):
        for _, node in zarr.open_group(written(V05, "image", True), mode="r").members(max_depth=None):
            assert "_ARRAY_DIMENSIONS" not in node.attrs

    @pytest.mark.parametrize(("version", "what"), [(version, what) for version in FORMATS for what in NODES])
    def test_is_without_fault(self, written, version, what):
        for converted in (False, True):
            nodes = nodes_of(written(version, what, converted))
            assert [fault for path in nodes for fault in faults(path, nodes)] == []

    @pytest.mark.parametrize(("version", "what"), [(version, what) for version in FORMATS for what in NODES])
    def test_passes_a_check(self, written, version, what):
        for converted in (False, True):
            report = omnizarr.check(written(version, what, converted), data=True)
            assert [finding for finding in report if finding.severity != "note"] == []

    def test_is_reported_in_the_report(self, written):
        done = omnizarr.convert(written(V04, "plate"), None, zarr_format=3, dry_run=True)
        assert "conventions carried: OME-Zarr (7 groups, 8 arrays)" in str(done)
        assert done.nodes[0].conventions["ome-zarr"][0].startswith("OME-Zarr 0.4 becomes 0.5: plate")


class TestInPlace:
    @pytest.mark.parametrize("what", NODES)
    @pytest.mark.parametrize("remove_old", [False, True])
    def test_there_and_back_is_the_first_again(self, tmp_path, what, remove_old):
        path = str(tmp_path / what)
        write(path, V04, what)
        before = group_attributes(path)
        omnizarr.convert(path, in_place=True, zarr_format=3, remove_old=remove_old)
        for node in NODES[what]:
            assert model(path, node, V05).ome_zarr_version == V05
        omnizarr.convert(path, in_place=True, zarr_format=2, remove_old=remove_old)
        assert group_attributes(path) == before
        assert not list(tmp_path.rglob("zarr.json"))
        for node in NODES[what]:
            assert model(path, node, V04).ome_zarr_version == V04

    def test_chunks_keep_their_keys(self, tmp_path):
        path = str(tmp_path / "image")
        root = zarr.open_group(path, mode="w", zarr_format=3)
        data = np.arange(24, dtype="u2").reshape(4, 6)
        keys = {"name": "v2", "separator": "."}
        zarr.create_array(root.store, name="0", data=data, chunks=(2, 3), chunk_key_encoding=keys, compressors=None)
        add(root, V05, {"multiscales": [image("yx", [[1, 1]])]})
        omnizarr.convert(path, in_place=True, zarr_format=2, remove_old=True)
        found = zarr.open_array(path, path="0", mode="r")
        assert (found.metadata.zarr_format, found.metadata.dimension_separator) == (2, ".")
        np.testing.assert_array_equal(found[...], data)


TYPES = {"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}


def image(axes, scales, **members):
    """Return an entry of ``multiscales`` of 0.4 and 0.5."""
    return {
        "axes": [{"name": name, "type": TYPES[name]} for name in axes],
        "datasets": [
            {"path": str(number), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
            for number, scale in enumerate(scales)
        ],
        **members,
    }


def write_early(path, version, shapes, members, separator="/"):
    """Write an image as versions before 0.4 have it, by zarr-python."""
    root = zarr.open_group(path, mode="w", zarr_format=2)
    for number, shape in enumerate(shapes):
        data = np.arange(np.prod(shape), dtype="u2").reshape(shape)
        keys = {"name": "v2", "separator": separator}
        zarr.create_array(root.store, name=str(number), data=data, zarr_format=2, chunk_key_encoding=keys)
    datasets = [{"path": str(number)} for number in range(len(shapes))]
    root.attrs["multiscales"] = [{"version": version, "name": "early", "datasets": datasets, **members}]
    return root


EARLY = {
    "0.1": ([(1, 2, 4, 8, 8), (1, 2, 2, 4, 4)], {}, "."),
    "0.2": ([(1, 2, 4, 8, 8), (1, 2, 2, 4, 4)], {}, "/"),
    "0.3": ([(2, 8, 8), (2, 4, 4)], {"axes": ["c", "y", "x"]}, "/"),
}


class TestEarlyVersions:
    @pytest.mark.parametrize("version", EARLY)
    def test_image_becomes_what_ome_zarr_py_takes_it_for(self, tmp_path, version):
        source, target = str(tmp_path / "source"), str(tmp_path / "target")
        shapes, members, separator = EARLY[version]
        write_early(source, version, shapes, members, separator)
        done = omnizarr.convert(source, target, zarr_format=3)
        assert done.is_lossless
        assert models.open_ome_zarr(target, version=V05).ome_zarr_version == V05
        before, after = (OMEZarrMultiscale.from_ome_zarr(path) for path in (source, target))
        assert after.metadata.axes == before.metadata.axes
        assert after.name == before.name == "early"
        assert [level.scale for level in after.images] == [level.scale for level in before.images]
        for one, other in zip(before.images, after.images, strict=True):
            np.testing.assert_array_equal(one.data, other.data)

    @pytest.mark.parametrize("version", EARLY)
    def test_remarks_tell_what_was_added(self, tmp_path, version):
        write_early(str(tmp_path), version, *EARLY[version][:2])
        remarks = omnizarr.convert(str(tmp_path), None, zarr_format=3, dry_run=True).nodes[0].conventions["ome-zarr"]
        assert any("no size of pixels was told" in remark for remark in remarks)
        assert any("the axes are t, c, z, y, x" in remark for remark in remarks) == (version != "0.3")

    def test_uneven_levels_get_the_ratio_of_their_lengths(self, tmp_path):
        write_early(str(tmp_path / "source"), "0.3", [(9, 7), (4, 3), (1, 3)], {"axes": ["y", "x"]})
        omnizarr.convert(str(tmp_path / "source"), str(tmp_path / "target"), zarr_format=3)
        levels = attributes(str(tmp_path / "target"))["ome"]["multiscales"][0]["datasets"]
        scales = [level["coordinateTransformations"][0]["scale"] for level in levels]
        assert scales == [[1.0, 1.0], [9 / 4, 7 / 3], [9.0, 7 / 3]]

    def test_axes_that_nothing_tells_are_a_loss(self, tmp_path):
        write_early(str(tmp_path), "0.2", [(2, 8, 8)], {})
        (loss,) = omnizarr.convert(str(tmp_path), None, zarr_format=3, dry_run=True).losses
        assert (loss.path, loss.pointer) == ("", "/multiscales/0")

    def test_scale_of_a_missing_level_is_a_loss(self, tmp_path):
        root = write_early(str(tmp_path), "0.3", [(8, 8), (4, 4)], {"axes": ["y", "x"]})
        del root["1"]
        (loss,) = omnizarr.convert(str(tmp_path), None, zarr_format=3, dry_run=True).losses
        assert (loss.path, loss.pointer) == ("", "/multiscales/0/datasets")

    def test_wells_get_numbers_of_row_and_column(self, tmp_path):
        source, target = str(tmp_path / "source"), str(tmp_path / "target")
        root = zarr.open_group(source, mode="w", zarr_format=2)
        names = {"rows": [{"name": "A"}, {"name": "B"}], "columns": [{"name": "1"}, {"name": "2"}]}
        root.attrs["plate"] = {**names, "wells": [{"path": "B/1"}, {"path": "A/2", "a": 1}], "version": "0.1"}
        for path in ("B/1", "A/2"):
            root.require_group(path).attrs["well"] = {"images": [{"path": "0"}], "version": "0.1"}
            write_early(f"{source}/{path}/0", "0.1", *EARLY["0.1"])
        assert omnizarr.convert(source, target, zarr_format=3).is_lossless
        plate = models.open_ome_zarr(target, version=V05).ome_attributes.plate
        assert [(well.rowIndex, well.columnIndex) for well in plate.wells] == [(1, 0), (0, 1)]
        assert plate.wells[1].a == 1

    def test_wells_in_other_folders_are_a_loss(self, tmp_path):
        root = zarr.open_group(str(tmp_path), mode="w", zarr_format=2)
        names = {"rows": [{"name": "A"}], "columns": [{"name": "1"}]}
        root.attrs["plate"] = {**names, "wells": [{"path": "2020-10-10/A/1"}], "version": "0.1"}
        (loss,) = omnizarr.convert(str(tmp_path), None, zarr_format=3, dry_run=True).losses
        assert loss.pointer == "/plate/wells/0"


def group(format_, **attrs):
    """Return a group of Zarr v2 or v3."""
    if format_ == 2:
        return V2.load({".zgroup": {"zarr_format": 2}, ".zattrs": attrs})
    return V3.load({"zarr.json": {"zarr_format": 3, "node_type": "group", "attributes": attrs}})


def array(format_, shape, names=None, separator="/", dtype="uint16", **attrs):
    if format_ == 2:
        document = {"zarr_format": 2, "shape": shape, "chunks": shape, "dtype": np.dtype(dtype).str, "order": "C"}
        document |= {"compressor": None, "filters": None, "fill_value": 0, "dimension_separator": separator}
        return V2.load({".zarray": document, ".zattrs": attrs})
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": attrs,
    }
    return V3.load({"zarr.json": document | ({} if names is None else {"dimension_names": list(names)})})


def carried(nodes, dialect, path=""):
    nodes = Nodes(nodes)
    return carry(path, nodes, nodes[path], dialect)


YX = image("yx", [[1, 1], [2, 2]])
LEVELS2 = {"0": array(2, [8, 8]), "1": array(2, [4, 4])}
LEVELS3 = {"0": array(3, [8, 8], "yx"), "1": array(3, [4, 4], "yx")}


class TestKept:
    def test_members_that_no_text_defines_stay_where_they_are(self):
        told = {**YX, "version": "0.4", "mine": [1], "metadata": {"version": "0.16.1"}}
        told["datasets"] = [{**level, "more": {"a": None}} for level in told["datasets"]]
        root = group(2, multiscales=[told], mine={"b": 1})
        found = carried({"": root, **LEVELS2}, "v3").metadata.attributes
        assert set(found) == {"mine", "ome"}
        assert found["ome"] == {"version": "0.5", "multiscales": [{k: v for k, v in told.items() if k != "version"}]}

    def test_members_of_ome_that_no_text_defines_are_outside_in_v2(self):
        root = group(3, ome={"version": "0.5", "multiscales": [YX], "_creator": {"name": "somebody"}}, mine=1)
        found = carried({"": root, **LEVELS3}, "v2")
        version = {**YX, "version": "0.4"}
        assert found.metadata.attributes == {"multiscales": [version], "_creator": {"name": "somebody"}, "mine": 1}
        assert not found.losses

    @pytest.mark.parametrize("taken", ["a text", {"a": 1}, {"version": "0.5", "multiscales": [YX]}])
    def test_attribute_ome_that_is_there_is_kept(self, taken):
        root = group(2, multiscales=[{**YX, "version": "0.4"}], ome=taken)
        found = carried({"": root, **LEVELS2}, "v3")
        assert found.metadata.attributes == root.attributes
        assert [loss.path for loss in found.losses] == [""]

    @pytest.mark.parametrize("name", ["multiscales", "_creator"])
    def test_attribute_outside_that_is_there_is_kept(self, name):
        within = {"version": "0.5", "multiscales": [YX], "_creator": "a"}
        root = group(3, ome=within, **{name: "b"})
        found = carried({"": root, **LEVELS3}, "v2")
        assert found.metadata.attributes == root.attributes
        assert [loss.pointer for loss in found.losses] == ["/attributes/ome"]

    @pytest.mark.parametrize("version", ["0.7", "0.9.dev1", "0.4"])
    def test_version_that_cannot_become_04_is_kept_and_reported(self, version):
        root = group(3, ome={"version": version, "multiscales": [YX]})
        found = carried({"": root, **LEVELS3}, "v2")
        assert found.metadata.attributes == root.attributes
        assert [loss.pointer for loss in found.losses] == ["/attributes/ome"]

    @pytest.mark.parametrize("version", ["0.5", "0.5-dev", "1"])
    def test_version_that_cannot_become_05_is_kept_and_reported(self, version):
        root = group(2, multiscales=[{**YX, "version": version}])
        found = carried({"": root, **LEVELS2}, "v3")
        assert found.metadata.attributes == root.attributes
        assert version in found.losses[0].why

    def test_version_may_be_a_number(self):
        found = carried({"": group(2, multiscales=[{**YX, "version": 0.4}]), **LEVELS2}, "v3")
        assert found.metadata.attributes == {"ome": {"version": "0.5", "multiscales": [YX]}}

    @pytest.mark.parametrize("dialect", ["v1", "v3-draft2019", "v3-draft2020"])
    def test_formats_of_neither_version_get_all_that_v2_holds(self, dialect):
        root = group(2, multiscales=[{**YX, "version": "0.4"}])
        assert carried({"": root, **LEVELS2}, dialect).metadata == root
        level = array(2, [8, 8])
        assert carried({"": root, **LEVELS2}, dialect, "0").metadata == level

    def test_array_of_v3_becomes_v1(self, tmp_path):
        root = zarr.open_group(str(tmp_path / "source"), mode="w", zarr_format=3)
        data = np.arange(24, dtype="u2").reshape(4, 6)
        zarr.create_array(root.store, name="0", data=data, dimension_names=["y", "x"], compressors=None)
        add(root, V05, {"multiscales": [image("yx", [[1, 1]])]})
        omnizarr.convert(str(tmp_path / "source"), str(tmp_path / "target"), zarr_format=1)
        found = omnizarr.open(str(tmp_path / "target"))["0"]
        np.testing.assert_array_equal(found[...], data)
        assert found.attrs["_ARRAY_DIMENSIONS"] == ["y", "x"]

    def test_names_of_dimensions_that_differ_from_the_axes_are_kept(self):
        root = group(2, multiscales=[{**YX, "version": "0.4"}])
        level = array(2, [8, 8], _ARRAY_DIMENSIONS=["lat", "lon"])
        found = carried({"": root, "0": level, "1": array(2, [4, 4])}, "v3", "0")
        assert found.metadata.dimension_names == ("lat", "lon")
        assert any("y, x" in remark for remark in found.remarks["ome-zarr"])

    def test_names_of_levels_in_groups_of_their_own_are_kept(self):
        # multiscale-spatial-image: each level is a dataset of xarray
        told = {**YX, "datasets": [{**YX["datasets"][0], "path": "scale0/image"}]}
        nodes = {"": group(3, ome={"version": "0.5", "multiscales": [told]}), "scale0": group(3)}
        nodes["scale0/image"] = array(3, [8, 8], "yx")
        assert carried(nodes, "v2", "scale0/image").metadata.attributes["_ARRAY_DIMENSIONS"] == ["y", "x"]

    def test_file_of_bioformats2raw_without_a_group_is_copied(self, tmp_path):
        source, target = tmp_path / "source", tmp_path / "target"
        root = zarr.open_group(str(source), mode="w", zarr_format=2)
        root.attrs["bioformats2raw.layout"] = 3
        write_early(str(source / "0"), "0.4", [(8, 8)], image("yx", [[1, 1]]))
        (source / "OME").mkdir()
        (source / "OME" / "METADATA.ome.xml").write_text(XML, encoding="utf-8")
        done = omnizarr.convert(str(source), str(target), zarr_format=3)
        assert (target / "OME" / "METADATA.ome.xml").read_text("utf-8") == XML
        assert "METADATA.ome.xml" in str(done)


NOT_OME = {
    "a pyramid of maps": {"multiscales": [{"datasets": [{"path": "0", "crs": "EPSG:3857"}], "type": "reduce"}]},
    "multiscales of GeoZarr": {"multiscales": {"layout": [{"asset": "0"}], "resampling_method": "average"}},
    "labels": {"labels": ["cat", "dog"]},
    "series": {"series": ["0", "1"]},
    "a plate and a well that are texts": {"plate": "Pacific", "well": "A1"},
    "a well that is an object": {"well": {"depth": 3}},
    "ome as a text": {"ome": "Open Microscopy"},
    "ome as an object": {"ome": {"lab": 1}},
    "omero as a text": {"omero": "https://example.org"},
}


class TestRecognised:
    @pytest.mark.parametrize("dialect", ["v2", "v3"])
    @pytest.mark.parametrize("name", NOT_OME)
    def test_attributes_of_others_are_not(self, dialect, name):
        format_ = 5 - int(dialect[1])
        nodes = {"": group(format_, **NOT_OME[name]), "0": group(format_), "0/tas": array(format_, [4, 4])}
        assert ome.OME not in followed("", Nodes(nodes))
        assert carried(nodes, dialect).metadata == nodes[""]
        assert not ome.is_image("0/tas", Nodes(nodes))

    @pytest.mark.parametrize("path", ["", "labels", "image/labels/cells"])
    def test_labels_of_no_image_are_not(self, path):
        nodes = {path: group(2, labels=["cat", "dog"])}
        assert not list(followed(path, Nodes(nodes)))

    def test_labels_are_without_their_image(self):
        told = {**YX, "version": "0.4"}
        nodes = {"": group(2, labels=["a"]), "a": group(2, multiscales=[told]), "a/0": array(2, [8, 8])}
        assert carried(nodes, "v3").metadata.attributes == {"ome": {"version": "0.5", "labels": ["a"]}}

    def test_empty_labels_of_an_image_are(self):
        nodes = {"": group(2, multiscales=[{**YX, "version": "0.4"}]), **LEVELS2, "labels": group(2, labels=[])}
        assert carried(nodes, "v3", "labels").metadata.attributes == {"ome": {"version": "0.5", "labels": []}}

    @pytest.mark.parametrize("version", FORMATS)
    @pytest.mark.parametrize("what", NODES)
    def test_levels_are_images(self, written, version, what):
        nodes = nodes_of(written(version, what))
        for path, node in nodes.items():
            assert ome.is_image(path, nodes) is not isinstance(node, GroupMetadata)

    def test_image_without_version_and_axes_is_by_its_arrays(self):
        root = group(2, multiscales=[{"datasets": [{"path": "./0/"}]}])
        nodes = Nodes({"": root, "0": array(2, [8, 8]), "1": array(2, [8, 8])})
        assert [ome.is_image(path, nodes) for path in ("", "0", "1", "2")] == [False, True, False, False]

    def test_arrays_beside_levels_are_no_images(self):
        nodes = Nodes({"": group(3, ome={"version": "0.5", "multiscales": [YX]}), **LEVELS3, "x": array(3, [8])})
        assert not ome.is_image("x", nodes)


def changed(value, pointer, new):
    """Return JSON with another value at a pointer; without it if that is Ellipsis."""
    value = copy.deepcopy(value)
    *path, last = pointer
    inside = value
    for key in path:
        inside = inside[key]
    if new is ...:
        del inside[last]
    else:
        inside[last] = new
    return value


TWO = {**image("cyx", [[1, 1, 1], [1, 2, 2]]), "name": "two"}
AXES = TWO["axes"]
SCALE, SHIFT = {"type": "scale", "scale": [1, 1, 1]}, {"type": "translation", "translation": [0, 0, 0]}
STEPS = ("datasets", 0, "coordinateTransformations")

# what of an image is changed -> code, what it is changed to, whether ome-zarr-models refuses it, too
IMAGE_FAULTS = {
    "no axes": ("ome-axes", ("axes",), ..., True),
    "axes that are texts": ("ome-axes", ("axes",), ["c", "y", "x"], True),
    "an axis without a name": ("ome-axes", ("axes", 0), {"type": "channel"}, True),
    "two axes of one name": ("ome-axes", ("axes", 1, "name"), "x", True),
    "one axis of space": ("ome-axes", ("axes", 1, "type"), "wavelength", True),
    "two axes of time": ("ome-axes", ("axes",), [{"name": n, "type": "time"} for n in "ab"] + AXES[1:], True),
    "two axes of channels": ("ome-axes", ("axes",), [{"name": n, "type": "channel"} for n in "ab"] + AXES[1:], True),
    "two axes of other types": ("ome-axes", ("axes",), [{"name": "a"}, {"name": "b", "type": "b"}, *AXES[1:]], True),
    "space before channels": ("ome-axes", ("axes",), [AXES[1], AXES[0], AXES[2]], True),
    "time after channels": ("ome-axes", ("axes",), [AXES[0], {"name": "t", "type": "time"}, *AXES[1:]], True),
    "too many axes": ("ome-axes", ("axes",), [{"name": n, "type": "space"} for n in "abcdef"], True),
    "more axes than dimensions": ("ome-axes-count", ("axes",), [{"name": "t", "type": "time"}, *AXES], True),
    "no transformations": ("ome-transformations", STEPS, ..., True),
    "empty transformations": ("ome-transformations", STEPS, [], True),
    "a translation alone": ("ome-transformations", STEPS, [SHIFT], True),
    "a translation before the scale": ("ome-transformations", STEPS, [SHIFT, SCALE], True),
    "two scales": ("ome-transformations", STEPS, [SCALE, SCALE], True),
    "an identity": ("ome-transformations", STEPS, [{"type": "identity"}], True),
    "a scale that is too short": ("ome-transformations", (*STEPS, 0, "scale"), [1, 1], True),
    "a translation that is too long": ("ome-transformations", STEPS, [SCALE, {**SHIFT, "translation": [0] * 4}], True),
    "a scale of texts": ("ome-transformations", (*STEPS, 0, "scale"), ["a", "b", "c"], True),
    "no scale in the scale": ("ome-transformations", (*STEPS, 0, "scale"), ..., True),
    "a scale of all that is too short": (
        "ome-transformations",
        ("coordinateTransformations",),
        [{"type": "scale", "scale": [1]}],
        True,
    ),
    "no levels": ("ome-invalid", ("datasets",), [], True),
    "a level without a path": ("ome-invalid", ("datasets", 0, "path"), ..., True),
    "a missing level": ("ome-missing-level", ("datasets", 1, "path"), "9", False),
    "a level that is a group": ("ome-missing-level", ("datasets", 1, "path"), "labels", False),
    "levels in the wrong order": ("ome-level-order", ("datasets",), TWO["datasets"][::-1], True),
}


def whole(version, told=TWO, **more):
    """Return an image of that version, with labels."""
    members = {"multiscales": [told], "omero": OMERO, **more}
    tag = {} if version == V05 else {"version": version}
    label = {"multiscales": [{**TWO, **tag}], "image-label": {"colors": [{"label-value": 1}], **tag}}

    def put(**attrs):
        return group(3, ome={"version": version, **attrs}) if version == V05 else group(2, **attrs)

    names = "cyx" if version == V05 else None
    format_ = ZARR[version]
    sizes = {"0": [2, 8, 8], "1": [2, 4, 4]}
    nodes = {"": put(**members), "labels": put(labels=["cells"]), "labels/cells": put(**label)}
    nodes |= {path: array(format_, shape, names) for path, shape in sizes.items()}
    return nodes | {f"labels/cells/{path}": array(format_, shape, names) for path, shape in sizes.items()}


def found_in(nodes):
    nodes = Nodes(nodes)
    return [(fault.code, fault.path, fault.pointer) for path in nodes for fault in faults(path, nodes)]


class TestFaults:
    @pytest.mark.parametrize("version", FORMATS)
    def test_none_in_what_is_right(self, version):
        told = TWO if version == V05 else {**TWO, "version": version}
        assert found_in(whole(version, told)) == []

    @pytest.mark.parametrize("version", FORMATS)
    @pytest.mark.parametrize("name", IMAGE_FAULTS)
    def test_of_an_image(self, version, name):
        code, pointer, new, refused = IMAGE_FAULTS[name]
        told = changed(TWO if version == V05 else {**TWO, "version": version}, pointer, new)
        prefix = "/attributes/ome" if version == V05 else "/attributes"
        found = found_in(whole(version, told))
        assert {(each[0], each[1]) for each in found} - {("ome-dimension-names", "0")} >= {(code, "")}
        place = f"{prefix}/multiscales/0/{pointer[0]}"
        assert all(each[2].startswith(place) for each in found if each[0] == code)
        model = models.v05.multiscales.Multiscale if version == V05 else models.v04.multiscales.Multiscale
        if refused:
            with pytest.raises(ValidationError):
                model.model_validate(told)
        else:
            model.model_validate(told)

    @pytest.mark.parametrize(
        ("version", "code", "path", "pointer", "new"),
        [
            (V05, "ome-dimension-names", "0", "/dimension_names", array(3, [2, 8, 8])),
            (V05, "ome-dimension-names", "0", "/dimension_names", array(3, [2, 8, 8], "zyx")),
            (V05, "ome-dimension-names", "labels/cells/1", "/dimension_names", array(3, [2, 4, 4], "cxy")),
            (V04, "ome-separator", "1", "/chunk_key_encoding", array(2, [2, 4, 4], separator=".")),
            (V04, "ome-label-type", "labels/cells/0", "/data_type", array(2, [2, 8, 8], dtype="float32")),
            (V05, "ome-label-type", "labels/cells/0", "/data_type", array(3, [2, 8, 8], "cyx", dtype="float32")),
        ],
    )
    def test_of_a_level(self, version, code, path, pointer, new):
        nodes = whole(version, TWO if version == V05 else {**TWO, "version": version})
        assert found_in({**nodes, path: new}) == [(code, path, pointer)]

    @pytest.mark.parametrize(
        ("code", "pointer", "attrs"),
        [
            ("ome-version", "", {"ome": {"multiscales": [TWO]}}),
            ("ome-version", "/ome/version", {"ome": {"version": "0.4", "multiscales": [TWO]}}),
            ("ome-unknown-version", "/ome/version", {"ome": {"version": "0.7", "multiscales": [TWO]}}),
            ("ome-wrong-form", "/multiscales", {"multiscales": [{**TWO, "version": "0.4"}]}),
            (
                "ome-both-forms",
                "/multiscales",
                {"multiscales": [{**TWO, "version": "0.4"}], "ome": {"version": "0.5", "multiscales": [TWO]}},
            ),
        ],
    )
    def test_of_the_form_in_v3(self, code, pointer, attrs):
        found = found_in({**whole(V05), "": group(3, **attrs)})
        where = f"/attributes{pointer or '/ome'}"
        assert [each for each in found if each[1] == ""] == [(code, "", where)]

    @pytest.mark.parametrize(
        ("code", "pointer", "attrs"),
        [
            ("ome-version", "/multiscales/0/version", {"multiscales": [TWO]}),
            ("ome-version", "/multiscales/0/version", {"multiscales": [{**TWO, "version": "0.5"}]}),
            ("ome-unknown-version", "/multiscales/0/version", {"multiscales": [{**TWO, "version": "0.4-x"}]}),
            ("ome-wrong-form", "/ome", {"ome": {"version": "0.5", "multiscales": [TWO]}}),
        ],
    )
    def test_of_the_form_in_v2(self, code, pointer, attrs):
        found = found_in({**whole(V04, {**TWO, "version": "0.4"}), "": group(2, **attrs)})
        assert [each for each in found if each[1] == ""] == [(code, "", f"/attributes{pointer}")]

    @pytest.mark.parametrize("version", FORMATS)
    @pytest.mark.parametrize(
        ("code", "path", "pointer", "new"),
        [
            ("ome-missing-group", "labels", ("labels", 0), "nuclei"),
            ("ome-invalid", "", ("omero", "channels"), ...),
            ("ome-invalid", "", ("omero", "channels", 0, "color"), "red"),
            ("ome-invalid", "", ("omero", "channels", 0, "window", "start"), ...),
            ("ome-invalid", "labels/cells", ("multiscales",), ...),
        ],
    )
    def test_of_other_members(self, version, code, path, pointer, new):
        nodes = whole(version, TWO if version == V05 else {**TWO, "version": version})
        attrs = nodes[path].attributes
        attrs = {"ome": changed(attrs["ome"], pointer, new)} if version == V05 else changed(attrs, pointer, new)
        nodes[path] = group(ZARR[version], **attrs)
        found = [each for each in found_in(nodes) if each[0] != "ome-missing-group" or code == each[0]]
        assert [(each[0], each[1]) for each in found] == [(code, path)]

    @pytest.mark.parametrize("version", FORMATS)
    @pytest.mark.parametrize(
        ("code", "pointer", "new"),
        [
            ("ome-version", ("version",), ...),
            ("ome-invalid", ("rows",), ...),
            ("ome-invalid", ("columns",), ["1", "2"]),
            ("ome-invalid", ("wells", 0, "path"), "A/3"),
            ("ome-invalid", ("wells", 0, "path"), "x/A/1"),
            ("ome-invalid", ("wells", 0, "rowIndex"), 1),
            ("ome-invalid", ("wells", 0, "columnIndex"), ...),
            ("ome-missing-group", ("wells", 0, "path"), "A/2"),
        ],
    )
    def test_of_a_plate(self, written, version, code, pointer, new):
        nodes = dict(nodes_of(written(version, "plate")))
        attrs = nodes[""].attributes
        plate = changed(attrs["ome"]["plate"] if version == V05 else attrs["plate"], pointer, new)
        nodes[""] = group(3, ome={"version": V05, "plate": plate}) if version == V05 else group(2, plate=plate)
        assert code in {each[0] for each in found_in(nodes)}
        assert {each[0] for each in found_in(nodes)} <= {code, "ome-invalid"}

    @pytest.mark.parametrize("version", FORMATS)
    @pytest.mark.parametrize(
        ("what", "missing", "path"), [("plate", "A/1/1", "A/1"), ("plate", "B/2", ""), ("series", "1", "OME")]
    )
    def test_of_images_that_are_not_there(self, written, version, what, missing, path):
        nodes = {
            at: node
            for at, node in nodes_of(written(version, what)).items()
            if at != missing and not at.startswith(f"{missing}/")
        }
        assert [each[:2] for each in found_in(nodes)] == [("ome-missing-group", path)]

    def test_of_a_layout_that_is_not_known(self):
        assert found_in({"": group(2, **{"bioformats2raw.layout": 4})})[0][0] == "ome-invalid"

    @pytest.mark.parametrize("version", EARLY)
    def test_none_in_early_versions(self, version):
        shapes, members, separator = EARLY[version]
        levels = {str(at): array(2, list(shape), separator=separator) for at, shape in enumerate(shapes)}
        told = {"version": version, "datasets": [{"path": path} for path in levels], **members}
        assert found_in({"": group(2, multiscales=[told]), **levels}) == []

    @pytest.mark.parametrize(
        ("version", "code", "members", "shape"),
        [
            ("0.2", "ome-axes-count", {}, [8, 8]),
            ("0.3", "ome-axes-count", {"axes": ["y", "x"]}, [2, 8, 8]),
            ("0.3", "ome-axes", {"axes": ["x", "y"]}, [8, 8]),
            ("0.3", "ome-axes", {"axes": ["lat", "lon"]}, [8, 8]),
            ("0.3", "ome-axes", {}, [8, 8]),
        ],
    )
    def test_of_early_versions(self, version, code, members, shape):
        told = {"version": version, "datasets": [{"path": "0"}], **members}
        assert [each[0] for each in found_in({"": group(2, multiscales=[told]), "0": array(2, shape)})] == [code]

    def test_of_labels_without_a_version_as_ome_zarr_py_writes_them(self, tmp_path):
        root = zarr.open_group(str(tmp_path), mode="w", zarr_format=3)
        write_image(root, V05, shape=(8, 8), axes="yx")
        data = np.zeros((8, 8), "u1")
        writer.write_labels(data, root, "cells", axes="yx", scaler=None, scale_factors=[2], fmt=FORMATS[V05])
        assert found_in(nodes_of(tmp_path)) in ([("ome-version", "labels", "/attributes/ome")], [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.floats(allow_nan=False) | st.text("ab/.", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *["version", "axes", "datasets", "path", "name", "type", "coordinateTransformations", "scale"],
                    *["wells", "rows", "columns", "images", "channels", "multiscales", "labels", "plate", "well"],
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
NAMES = ["multiscales", "omero", "image-label", "labels", "plate", "well", "bioformats2raw.layout", "series"]


class TestAnyAttributes:
    @pytest.mark.parametrize(("format_", "dialect"), [(2, "v3"), (3, "v2")])
    @given(outside=st.dictionaries(st.sampled_from(NAMES), JSON), inside=st.dictionaries(st.sampled_from(NAMES), JSON))
    def test_are_kept_in_one_place_or_the_other(self, format_, dialect, outside, inside):
        attrs = {**outside, **({"ome": inside} if inside else {})}
        nodes = Nodes(
            {
                "": group(format_, multiscales=[{**YX, "version": "0.4"}]),
                "labels": group(format_, **attrs),
                "labels/a": array(format_, [4, 4]),
            }
        )
        found = carry("labels", nodes, nodes["labels"], dialect).metadata.attributes
        told = {**found, **(found["ome"] if isinstance(found.get("ome"), dict) else {})}
        assert {*outside, *inside} <= set(told)
        assert all(fault.path in nodes for path in nodes for fault in faults(path, nodes))
