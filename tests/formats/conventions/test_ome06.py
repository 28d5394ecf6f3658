"""OME-Zarr 0.6: coordinate systems and transformations, as the specification's examples and ngff-zarr have them.

``ome06/spec.json`` holds the valid and invalid examples of the specification, ``ome06/ngff_zarr.json`` one image as
ngff-zarr writes it in three versions.
"""

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.formats import V3
from omnizarr.formats.conventions import Nodes, carry, faults
from omnizarr.formats.conventions.ome import summary, systems
from omnizarr.formats.conventions.ome.transformations import problems
from omnizarr.model import GroupMetadata

HERE = Path(__file__).parent / "ome06"
SPEC = json.loads((HERE / "spec.json").read_text("utf-8"))
WRITTEN = json.loads((HERE / "ngff_zarr.json").read_text("utf-8"))
SHAPES = {"scale0/cells": (2, 3, 20, 24), "scale1/cells": (2, 1, 10, 12)}

DISPUTED = {
    # the schema cannot say it, the text does: these examples contradict the text
    "spec/valid/image/mismatch_axes_units": "a scale of 2 numbers for 3 axes",
    "spec/valid/image/multiscales_transform_additional_transforms": "2 of 3 axes of the output",
    "strict/valid/image/image_omero": "a system that does not exist",
    "strict/valid/image/multiscales_example": "the input of a level is the array of another one",
    "examples/transformations/displacements/displacement_field": "a scale of 2 numbers for 3 axes",
    # recommendations
    "strict/invalid/label/no_colors": "a label image should have colors",
    "strict/invalid/plate/missing_acquisition_maximumfieldcount": "it should be there",
    "strict/invalid/plate/missing_acquisition_name": "it should be there",
    "strict/invalid/plate/missing_name": "it should be there",
    # a group that holds nothing may be of any kind
    "spec/invalid/scene/scene_missing_scene": "a scene without a scene",
    "spec/invalid/scene/scene_missing_version": "neither a version nor a known member",
}
"""Examples whose verdict is another one here, and why."""
ABSENT = {"ome-missing-group", "ome-missing-parameters", "ome-scale", "ome-level-order"}
"""What is found because the examples have no data."""


def nothing(_):
    """Find nothing at any path."""


def array(shape, names=None, dtype="uint16"):
    grid = {"name": "regular", "configuration": {"chunk_shape": list(shape)}}
    said = {"zarr_format": 3, "node_type": "array", "shape": list(shape), "data_type": dtype, "chunk_grid": grid}
    said |= {"chunk_key_encoding": "default", "fill_value": 0, "codecs": ["bytes"]}
    return V3.load({"zarr.json": {**said, **({"dimension_names": list(names)} if names else {})}})


def group(attributes, dialect="v3"):
    return GroupMetadata(dialect=dialect, attributes=attributes)


def nodes_of(attributes):
    """Return a group, and arrays for the levels of its images."""
    said = attributes.get("ome")
    images = said.get("multiscales") if isinstance(said, dict) else None
    found = {"": group(attributes)}
    for image in images if isinstance(images, list) else ():
        count = len(systems.axes(image) or ())
        for number, level in enumerate(image.get("datasets", ())):
            if isinstance(level, dict) and isinstance(level.get("path"), str):
                found[level["path"]] = array([max(1, 64 >> number)] * count)
    return Nodes(found)


def turned(value):
    """Return a plate with rows and columns exchanged: those of the specification's tests name wells column first."""
    names = {"rows": "columns", "columns": "rows", "rowIndex": "columnIndex", "columnIndex": "rowIndex"}
    if isinstance(value, dict):
        return {names.get(key, key): turned(each) for key, each in value.items()}
    return [turned(each) for each in value] if isinstance(value, list) else value


def test_examples_of_the_specification_are_valid_and_invalid_as_it_says():
    wrong = {}
    for name, case in SPEC["cases"].items():
        attributes = turned(case["attributes"]) if name.startswith(("spec/", "strict/")) and "/plate/" in name else None
        attributes = attributes or case["attributes"]
        found = [fault for fault in faults("", nodes_of(attributes)) if fault.code not in ABSENT]
        if "image-label" in attributes.get("ome", {}) and "multiscales" not in attributes["ome"]:
            found = [fault for fault in found if "this has none" not in fault.message]
        if case["valid"] is not (not found):
            wrong[name] = found
    assert wrong.keys() == DISPUTED.keys()


def test_transformations_of_the_specification_fit_their_systems():
    wrong = []
    for name, case in SPEC["transformations"].items():
        known = systems.systems(case)
        for step in case.get("coordinateTransformations", ()):
            counts = [len(known[systems.reference(step[end]).name]) for end in ("input", "output")]
            wrong += [name for each in problems(step, *counts, nothing) if not each.is_stored]
    # two are called invalid, one has names for numbers of axes, and one sets axes beside the transformation
    assert set(wrong) == {"byDimensionInvalid1", "byDimensionInvalid2", "sequenceSubspace1", "byDimensionXarray"}


# -- what is wrong with one image --------------------------------------------------------------------------------------

ROTATION = {"type": "rotation", "rotation": [[0, -1], [1, 0]]}


def image(**changes):
    def system(name):
        return {"name": name, "axes": [{"name": axis, "type": "space", "unit": "micrometer"} for axis in "yx"]}

    levels = [
        {
            "path": f"s{n}",
            "coordinateTransformations": [
                {
                    "type": "sequence",
                    "input": {"path": f"s{n}"},
                    "output": {"name": "physical"},
                    "transformations": [
                        {"type": "scale", "scale": [0.5 * 2**n] * 2},
                        {"type": "translation", "translation": [0.25 * n] * 2},
                    ],
                }
            ],
        }
        for n in range(2)
    ]
    more = [{**ROTATION, "input": {"name": "physical"}, "output": {"name": "world"}}]
    said = {"coordinateSystems": [system("physical"), system("world")], "datasets": levels}
    return {**said, "coordinateTransformations": more, **changes}


def whole(*, levels=((8, 8), (4, 4)), version="0.6", **changes):
    nodes = {"": group({"ome": {"version": version, "multiscales": [image(**changes)]}})}
    return nodes | {f"s{n}": array(shape) for n, shape in enumerate(levels)}


def codes(nodes):
    return [(fault.code, fault.pointer.removeprefix("/attributes/ome")) for fault in faults("", Nodes(nodes))]


@pytest.mark.parametrize("version", ["0.6", "0.6.dev1", "0.6.dev4", "0.6rc0"])
def test_image_that_is_right(version):
    assert codes(whole(version=version)) == []


def step(**said):
    return [{"input": {"name": "physical"}, "output": {"name": "world"}, **said}]


FIRST = "/multiscales/0/coordinateTransformations/0"


@pytest.mark.parametrize(
    ("code", "pointer", "changes"),
    [
        ("ome-systems", "/multiscales/0/coordinateSystems", {"coordinateTransformations": step(**ROTATION)[:0]}),
        ("ome-transformations", f"{FIRST}/rotation", {"steps": step(type="rotation", rotation=[[1, 0], [0, 2]])}),
        ("ome-transformations", f"{FIRST}/rotation", {"steps": step(type="rotation", rotation=[[1, 0], [0, -1]])}),
        ("ome-transformations", f"{FIRST}/affine", {"steps": step(type="affine", affine=[[1, 0], [0, 1]])}),
        ("ome-transformations", f"{FIRST}/mapAxis", {"steps": step(type="mapAxis", mapAxis=[0, 2])}),
        ("ome-transformations", f"{FIRST}/scale", {"steps": step(type="scale", scale=[1, 0])}),
        ("ome-transformations", f"{FIRST}/type", {"steps": step(type="thinPlate")}),
        ("ome-missing-parameters", f"{FIRST}/path", {"steps": step(type="affine", path="matrix")}),
        ("ome-missing-parameters", f"{FIRST}/path", {"steps": step(type="displacements", path="field")}),
        ("ome-systems", f"{FIRST}/output/name", {"steps": step(type="identity", output={"name": "nowhere"})}),
        (
            "ome-missing-group",
            f"{FIRST}/output/path",
            {"steps": step(type="identity", output={"name": "a", "path": "labels/a"})},
        ),
        ("ome-scale", "/multiscales/0/datasets/1", {"levels": ((8, 8), (2, 4))}),
        ("ome-level-order", "/multiscales/0/datasets/1", {"levels": ((4, 4), (8, 8))}),
        ("ome-axes-count", "/multiscales/0/coordinateSystems", {"levels": ((8, 8), (1, 4, 4))}),
        ("ome-missing-level", "/multiscales/0/datasets/1/path", {"levels": ((8, 8),)}),
    ],
)
def test_image_that_is_wrong(code, pointer, changes):
    changes = {"coordinateTransformations" if key == "steps" else key: value for key, value in changes.items()}
    assert (code, pointer) in codes(whole(**changes))


def test_matrix_and_field_that_are_stored():
    steps = step(type="affine", path="matrix")
    nodes = whole(coordinateTransformations=steps) | {"matrix": array((2, 3), dtype="float64")}
    assert codes(nodes) == []
    assert codes(nodes | {"matrix": array((3, 3))}) == [("ome-missing-parameters", f"{FIRST}/path")]
    axes = [{"name": "d", "type": "displacement", "discrete": True}, *image()["coordinateSystems"][0]["axes"]]
    move = {"type": "identity", "input": {"path": "0"}, "output": {"name": "p"}}
    field = {
        "coordinateSystems": [{"name": "p", "axes": axes}],
        "datasets": [{"path": "0", "coordinateTransformations": [move]}],
    }
    nodes = whole(coordinateTransformations=step(type="displacements", path="field"))
    nodes |= {"field": group({"ome": {"version": "0.6", "multiscales": [field]}})}
    assert codes(nodes | {"field/0": array((2, 5, 5))}) == []
    assert codes(nodes | {"field/0": array((3, 5, 5))}) == [("ome-missing-parameters", f"{FIRST}/path")]


def test_scene_whose_images_are_there():
    move = {"type": "translation", "translation": [0, 5]}
    ends = {"input": {"path": "a", "name": "physical"}, "output": {"name": "table"}}
    table = {"name": "table", "axes": image()["coordinateSystems"][0]["axes"]}
    scene = {"coordinateSystems": [table], "coordinateTransformations": [{**move, **ends}]}
    below = {f"a/{path}".rstrip("/"): node for path, node in whole().items()}

    def found(**changes):
        return codes({"": group({"ome": {"version": "0.6", "scene": {**scene, **changes}}}), **below})

    assert found() == []
    other = {**move, "input": {"path": "a", "name": "moon"}, "output": {"name": "table"}}
    assert ("ome-systems", "/scene/coordinateTransformations/0/input/name") in found(coordinateTransformations=[other])
    other = {**move, "input": {"path": "b", "name": "physical"}, "output": {"name": "table"}}
    assert ("ome-missing-group", "/scene/coordinateTransformations/0/input/path") in found(
        coordinateTransformations=[other]
    )
    other = {**scene["coordinateTransformations"][0], "translation": [0, 5, 1]}
    assert ("ome-transformations", "/scene/coordinateTransformations/0/translation") in found(
        coordinateTransformations=[other]
    )
    alone = {"name": "moon", "axes": table["axes"]}
    assert ("ome-systems", "/scene/coordinateTransformations") in found(coordinateSystems=[table, alone])


@pytest.mark.parametrize("size", [50, 100_000])
def test_transformations_within_each_other_are_refused_not_followed(size):
    deep = {"type": "identity"}
    for _ in range(min(size, 400)):
        deep = {"type": "sequence", "transformations": [deep]}
    wide = {"type": "sequence", "transformations": [{"type": "scale", "scale": [10**400, 1]}] * (size // 1000 + 1)}
    for each in (deep, wide):
        found = list(problems(each, 2, 2, nothing))
        assert found
        assert not systems.is_plain({"type": "sequence", "transformations": [each, ROTATION]})


# -- drawn -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def stored(tmp_path):
    root = omnizarr.create_group(tmp_path / "a.zarr", attributes={"ome": {"version": "0.6", "multiscales": [image()]}})
    data = np.arange(64, dtype="u2").reshape(8, 8)
    for n in range(2):
        root.create_array(f"s{n}", data=data[:: 2**n, :: 2**n], chunks=(4, 4), dimension_names=("y", "x"))
    return root


def test_units_and_scale_of_the_system_of_the_levels_are_drawn(stored):
    drawn = str(stored.show())
    assert "x [micrometer]" in drawn
    described = stored["s1"].show().page
    assert "micrometer" in str(described)


def test_only_scales_and_translations_are_drawn():
    level = image()["datasets"][0]
    assert systems.placement(2, level, image()) == ([0.5, 0.5], [0.0, 0.0])
    level = {"path": "s0", "coordinateTransformations": [{**ROTATION, "output": {"name": "physical"}}]}
    assert systems.placement(2, level, image()) is None


def test_what_is_not_drawn_is_named():
    found = summary.summary(whole()[""])
    assert found["units"] == {"y": "micrometer", "x": "micrometer"}
    assert (found["drawn"], found["not_drawn"]) == ("physical", ["physical to world: rotation"])
    assert ("not drawn", "physical to world: rotation") in list(summary.rows(found))


# -- other versions ----------------------------------------------------------------------------------------------------


def without_names(value):
    """Return metadata without names of transformations, which 0.4 and 0.5 do not have."""
    said = copy.deepcopy(value)
    for level in said["ome"]["multiscales"][0]["datasets"]:
        for each in level["coordinateTransformations"]:
            each.pop("name", None)
    return said


def in_version(version, wanted, dialect="v3"):
    nodes = {"": group(WRITTEN[version], "v2" if version == "0.4" else "v3")}
    nodes |= {path: array(shape, "czyx") for path, shape in SHAPES.items()}
    return carry("", Nodes(nodes, {"ome-zarr": wanted} if wanted else None), nodes[""], dialect)


def normal(attributes):
    return json.loads(json.dumps(attributes, default=dict))


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_image_becomes_what_ngff_zarr_writes_as_06(version):
    found = in_version(version, "0.6")
    assert normal(found.metadata.attributes) == without_names(WRITTEN["0.6"])
    assert not found.losses


def test_image_of_06_becomes_what_ngff_zarr_writes_as_05_and_04():
    found = in_version("0.6", "0.5")
    assert normal(found.metadata.attributes) == WRITTEN["0.5"]
    assert not found.losses
    assert any("scale0_to_intrinsic" in remark for remark in found.remarks["ome-zarr"])
    assert normal(in_version("0.6", None, "v2").metadata.attributes) == WRITTEN["0.4"]


def test_without_a_wish_nothing_changes():
    assert in_version("0.6", None).metadata.attributes == WRITTEN["0.6"]
    assert in_version("0.5", "0.5").metadata.attributes == WRITTEN["0.5"]


def test_transformation_of_all_levels_becomes_a_part_of_each():
    said = copy.deepcopy(WRITTEN["0.5"])
    said["ome"]["multiscales"][0]["coordinateTransformations"] = [{"type": "scale", "scale": [1.0, 10.0, 1.0, 1.0]}]
    nodes = Nodes({"": group(said)}, {"ome-zarr": "0.6"})
    changed = carry("", nodes, nodes[""], "v3").metadata.attributes["ome"]["multiscales"][0]
    assert "coordinateTransformations" not in changed
    scale, moved = changed["datasets"][0]["coordinateTransformations"][0]["transformations"]
    assert scale["scale"] == [1.0, 20.0, 0.5, 0.5]
    assert moved["translation"] == [0.0, 100.0, 0.0, 1.0]


def test_what_05_cannot_say_is_lost_and_told():
    nodes = Nodes(whole(), {"ome-zarr": "0.5"})
    lost = [loss.what for loss in carry("", nodes, nodes[""], "v3").losses]
    assert lost == ["the coordinate system 'world'", "the transformation from 'physical' to 'world' (rotation)"]
    level = {"path": "s0", "coordinateTransformations": [{**ROTATION, "output": {"name": "physical"}}]}
    nodes = Nodes(whole(datasets=[level]), {"ome-zarr": "0.5"})
    found = carry("", nodes, nodes[""], "v3")
    assert found.metadata.attributes == nodes[""].attributes
    assert len(found.losses) == 1


@pytest.mark.parametrize("wanted", ["0.6", "0.5"])
def test_convert_there_and_back(stored, tmp_path, wanted):
    there, back = str(tmp_path / "there.zarr"), str(tmp_path / "back.zarr")
    source = stored.store_path
    del stored.attrs["ome"]["multiscales"][0]["coordinateTransformations"]
    done = omnizarr.convert(source, there, ome_version="0.5")
    assert done.verified
    assert omnizarr.open(there).attrs["ome"]["version"] == "0.5"
    assert omnizarr.convert(there, back, ome_version=wanted, strict=True).is_lossless
    found = omnizarr.open(back)
    assert found.attrs["ome"]["version"] == wanted
    assert str(found.show()) == str(omnizarr.open(there).show())


def test_versions_that_do_not_exist_are_refused(stored, tmp_path):
    with pytest.raises(ValueError, match=r"0\.7"):
        omnizarr.convert(stored, tmp_path / "b.zarr", ome_version="0.7")
    with pytest.raises(ValueError, match="v3"):
        omnizarr.convert(stored, tmp_path / "b.zarr", zarr_format=2, ome_version="0.6")
    assert not (tmp_path / "b.zarr").exists()


# -- comparisons -----------------------------------------------------------------------------------------------------


def in_files(version):
    """Return a hierarchy with the image of ngff-zarr in a version."""
    zarr_format = 2 if version == "0.4" else 3
    stored = {}
    root = omnizarr.create_group(stored, attributes=WRITTEN[version], zarr_format=zarr_format)
    for path, shape in SHAPES.items():
        names = {"dimension_names": list("czyx")} if zarr_format == 3 else {}
        root.create_array(path, data=np.ones(shape, "uint16"), chunks=(1, 1, 20, 24), **names)
    return stored


def test_images_of_ngff_zarr_are_equal_in_all_versions():
    versions = {version: in_files(version) for version in ("0.4", "0.5", "0.6")}
    assert len({omnizarr.digest(stored).digest for stored in versions.values()}) == 1
    for one in versions.values():
        for other in versions.values():
            assert omnizarr.diff(one, other).equal


def test_what_differs_within_06_is_shown_as_it_is_stored():
    one, other = in_files("0.6"), in_files("0.6")
    said = omnizarr.open_group(other).attrs["ome"]
    said["multiscales"][0]["coordinateSystems"][0]["axes"][1]["unit"] = "millimeter"
    omnizarr.open_group(other, mode="r+").attrs["ome"] = said
    (found,) = omnizarr.diff(one, other).differences
    assert (found.kind, found.name, found.left, found.right) == ("attribute", "ome", WRITTEN["0.6"]["ome"], said)
    assert omnizarr.digest(one).digest != omnizarr.digest(other).digest
    assert not omnizarr.diff(in_files("0.5"), other).equal


def test_what_05_cannot_say_differs(stored):
    other = {}
    omnizarr.convert(stored.store_path, other, ome_version="0.5")
    found = omnizarr.diff(stored.store_path, other)
    assert [each.name for each in found.differences] == ["ome"]
    assert found.differences[0].left["version"] != "0.5"


def test_what_is_converted_without_losses_is_equal():
    """Transformations of all levels and versions of labels are written elsewhere in 0.6, or not at all."""
    one, other = in_files("0.5"), {}
    said = copy.deepcopy(WRITTEN["0.5"])
    said["ome"]["multiscales"][0]["coordinateTransformations"] = [{"type": "scale", "scale": [1.0, 10.0, 1.0, 1.0]}]
    said["ome"]["image-label"] = {"version": "0.5", "colors": [{"label-value": 1}]}
    omnizarr.open_group(one, mode="r+").attrs.update(said)
    before = omnizarr.digest(one).digest
    assert omnizarr.convert(one, other, ome_version="0.6", strict=True).is_lossless
    assert omnizarr.diff(one, other).equal
    assert omnizarr.digest(one).digest == before


# -- pyramids ----------------------------------------------------------------------------------------------------------


def test_pyramid_of_06_is_valid_and_lies_where_that_of_05_does():
    made = {}
    for version in ("0.5", "0.6"):
        store = {}
        omnizarr.create_array(store, name="0", data=np.arange(64.0).reshape(8, 8), dimension_names=("y", "x"))
        scale = {"y": 0.5, "x": 0.5}
        omnizarr.pyramid(store, path="0", levels=2, scale=scale, unit={"space": "micrometer"}, ome_version=version)
        made[version] = store
        assert omnizarr.check(store).findings == ()
    root = omnizarr.open(made["0.6"])
    assert root.attrs["ome"]["version"] == "0.6"
    assert root.attrs["ome"]["multiscales"][0]["datasets"][1]["coordinateTransformations"] == [
        {
            "type": "sequence",
            "transformations": [
                {"type": "scale", "scale": [1.0, 1.0]},
                {"type": "translation", "translation": [0.25, 0.25]},
            ],
            "input": {"path": "1"},
            "output": {"name": "intrinsic"},
        }
    ]
    assert str(root["1"].show()) == str(omnizarr.open(made["0.5"])["1"].show())


def test_pyramid_of_an_image_of_06_keeps_its_systems(stored):
    stored.attrs["ome"] = {"version": "0.6rc0", "multiscales": [image(datasets=image()["datasets"][:1])]}
    del stored["s1"]
    omnizarr.pyramid(stored.store_path, levels=2)
    said = omnizarr.open(stored.store_path).attrs["ome"]
    assert said["version"] == "0.6rc0"
    entry = said["multiscales"][0]
    assert entry["coordinateSystems"] == image()["coordinateSystems"]
    assert entry["coordinateTransformations"] == image()["coordinateTransformations"]
    assert entry["datasets"][1]["coordinateTransformations"][0]["output"] == {"name": "physical"}
    assert omnizarr.check(stored.store_path).findings == ()


# -- collections -------------------------------------------------------------------------------------------------------


def test_collection_of_rfc_8_is_named():
    nodes = [
        {"name": "raw", "type": "multiscale", "path": "./raw"},
        {"name": "more", "type": "collection", "nodes": [{"name": "mask", "type": "multiscale", "path": "./mask"}]},
    ]
    said = {"version": "0.x", "type": "collection", "name": "embryo", "nodes": nodes}
    found = summary.summary(group({"ome": said}))
    assert found["holds"] == ["collection"]
    assert [each["name"] for each in found["members"]] == ["raw", "more", "more/mask"]
    assert dict(summary.rows(found))["members"] == "raw (multiscale), more (collection), more/mask (multiscale)"


# -- plates, wells and labels ------------------------------------------------------------------------------------------


@pytest.fixture
def plate():
    """Return a plate of two wells, listed last first, with two fields each, and labels."""
    wells = [{"path": "B/2", "rowIndex": 1, "columnIndex": 1}, {"path": "A/1", "rowIndex": 0, "columnIndex": 0}]
    names = {"rows": [{"name": "A"}, {"name": "B"}], "columns": [{"name": "1"}, {"name": "2"}]}
    root = omnizarr.create_group({}, attributes={"ome": {"version": "0.6", "plate": {**names, "wells": wells}}})
    one = {"ome": {"version": "0.6", "multiscales": [image(datasets=image()["datasets"][:1])]}}
    for number, well in enumerate(wells):
        fields = {"images": [{"path": "0"}, {"path": "1"}]}
        group = root.create_group(well["path"], attributes={"ome": {"version": "0.6", "well": fields}})
        for field in "01":
            holder = group.create_group(field, attributes=one)
            holder.create_array("s0", data=np.full((4, 4), 10 * number + int(field), "u1"))
            labels = holder.create_group("labels", attributes={"ome": {"version": "0.6", "labels": ["cells"]}})
            labels.create_group("cells", attributes=one).create_array("s0", data=np.full((4, 4), 7, "u1"))
    return root


@pytest.mark.parametrize(
    ("path", "title", "remark"),
    [
        ("", "/A/1/0/s0", "well A/1 of 2, field 0 of 2; labels that are not drawn: cells"),
        ("B/2", "/B/2/0/s0", "field 0 of 2; labels that are not drawn: cells"),
        ("B/2/1", "/B/2/1/s0", "labels that are not drawn: cells"),
        ("B/2/1/labels", "/B/2/1/labels/cells/s0", "label image cells of 1"),
    ],
)
def test_first_image_represents_plate_well_and_labels(plate, path, title, remark):
    page = (plate[path] if path else plate).show().page
    assert page.title.startswith(title)
    assert any(each.startswith(remark) for each in page.remarks)


def test_plate_whose_wells_are_missing_is_shown_like_another_group(plate):
    del plate["A"]
    del plate["B"]
    with pytest.raises(omnizarr.errors.NodeNotFoundError, match="no array right in the group"):
        plate.show()


def _extra(image):
    image["datasets"][0]["coordinateTransformations"][0]["extra"] = 1


def _extra_of_system(image):
    image["coordinateSystems"][0]["extra"] = 1


def _output_elsewhere(image):
    image["datasets"][1]["coordinateTransformations"][0]["output"]["name"] = "nowhere"


def _input_elsewhere(image):
    image["datasets"][1]["coordinateTransformations"][0]["input"]["path"] = image["datasets"][0]["path"]


@pytest.mark.parametrize("change", [_extra, _extra_of_system, _output_elsewhere, _input_elsewhere])
def test_members_that_another_version_does_not_carry_differ_and_are_lost(change):
    one, other = in_files("0.6"), in_files("0.6")
    said = copy.deepcopy(WRITTEN["0.6"]["ome"])
    change(said["multiscales"][0])
    omnizarr.open_group(other, mode="r+").attrs["ome"] = said
    assert not omnizarr.diff(one, other).equal
    assert omnizarr.digest(one).digest != omnizarr.digest(other).digest
    assert omnizarr.convert(other, {}, ome_version="0.5").losses
