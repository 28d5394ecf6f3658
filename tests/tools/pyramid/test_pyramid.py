"""`omnizarr.pyramid`."""

import json

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.stores import MemoryStore, WrapperStore

RANDOM = np.random.default_rng(7)
PIXELS = RANDOM.integers(0, 4000, (2, 5, 37, 51), dtype="u2")
FACTORS = (1, 2, 2, 2)
versions = pytest.mark.parametrize("zarr_format", [2, 3])


def make(place, zarr_format=3, data=PIXELS, **options):
    root = omnizarr.create_group(place, zarr_format=zarr_format)
    names = {"dimension_names": tuple("tczyx"[-data.ndim :])} if zarr_format == 3 else {"dimension_separator": "/"}
    root.create_array("0", data=data, chunks=(4,) * (data.ndim - 2) + (16, 16), **names, **options)
    return place


def halved(values, factors):
    """The means of blocks, by a way of its own: NaN around the edges, and exact sums of small integers."""
    padded = np.pad(
        values.astype("f8"),
        [(0, -length % factor) for length, factor in zip(values.shape, factors, strict=True)],
        constant_values=np.nan,
    )
    for axis, factor in reversed(list(enumerate(factors))):
        padded = padded.reshape(*padded.shape[:axis], -1, factor, *padded.shape[axis + 1 :])
    mean = np.nanmean(padded, axis=tuple(range(1, padded.ndim, 2)))
    return np.rint(mean).astype(values.dtype)


def announced(place, zarr_format):
    attributes = omnizarr.open(place, mode="r").attrs.asdict()
    inside = attributes["ome"] if zarr_format == 3 else attributes
    assert (inside if zarr_format == 3 else inside["multiscales"][0])["version"] == {2: "0.4", 3: "0.5"}[zarr_format]
    return inside["multiscales"][0]


class TestLevels:
    @versions
    @pytest.mark.parametrize("max_memory", [None, 100_000])
    def test_values_and_metadata(self, zarr_format, max_memory, tmp_path):
        place = make(str(tmp_path / "a.zarr"), zarr_format)
        made = omnizarr.pyramid(
            place, path="0", axes="czyx", levels=3, scale={"z": 2, "y": 0.5, "x": 0.25},
            unit={"space": "micrometer"}, max_memory=max_memory,
        )  # fmt: skip
        expected = [PIXELS]
        for _ in range(2):
            expected.append(halved(expected[-1], FACTORS))
        image = announced(place, zarr_format)
        assert [each["name"] for each in image["axes"]] == ["c", "z", "y", "x"]
        assert image["axes"][3] == {"name": "x", "type": "space", "unit": "micrometer"}
        for number, (level, values) in enumerate(zip(image["datasets"], expected, strict=True)):
            found = omnizarr.open(place, mode="r")[level["path"]]
            np.testing.assert_array_equal(found[...], values)
            assert found.dtype == "u2"
            step = 2**number
            scale = [1, 2 * step, 0.5 * step, 0.25 * step]
            moved = [{"type": "translation", "translation": [0.0, *((step - 1) / 2 * s / step for s in scale[1:])]}]
            assert level["coordinateTransformations"] == [{"type": "scale", "scale": scale}, *(moved if number else [])]
        assert [level.shape for level in made.levels] == [values.shape for values in expected]
        assert omnizarr.check(place).ok

    def test_middle_of_the_image_stays_where_it_is(self):
        place = make({}, data=np.zeros((64, 64), "u1"))
        for level in omnizarr.pyramid(place, path="0", levels=5, scale={"y": 0.3, "x": 3}).levels:
            middle = [(n - 1) / 2 * s + t for n, s, t in zip(level.shape, level.scale, level.translation, strict=True)]
            np.testing.assert_allclose(middle, [31.5 * 0.3, 31.5 * 3])

    def test_levels_end_where_the_image_is_small(self):
        place = omnizarr.create_array({}, name="0", shape=(3, 2000, 1100), dtype="u1", chunks=(3, 500, 500))
        shapes = [level.shape for level in omnizarr.pyramid(place, factor={"z": 1}).levels]
        assert shapes == [(3, 2000, 1100), (3, 1000, 550), (3, 500, 275), (3, 250, 138)]

    def test_nearest_has_no_translation(self):
        place = make({}, data=np.arange(64 * 64).reshape(64, 64))
        made = omnizarr.pyramid(place, path="0", levels=3, method="nearest")
        assert {level.translation for level in made.levels} == {(0.0, 0.0)}
        np.testing.assert_array_equal(omnizarr.open(place)["2"][...], np.arange(64 * 64).reshape(64, 64)[::4, ::4])

    def test_labels_get_the_mode(self):
        labels = np.array([[1, 1, 7, 9], [1, 9, 7, 7]], "u4")
        place = omnizarr.create_group({}, attributes={"ome": {"version": "0.5", "image-label": {}}}).store
        omnizarr.create_array(place, name="0", data=labels, dimension_names=("y", "x"))
        assert omnizarr.pyramid(place, path="0", levels=2).method == "mode"
        np.testing.assert_array_equal(omnizarr.open(place)["1"][...], [[1, 7]])

    def test_shards_and_codecs_are_those_of_the_full_resolution(self):
        place = {}
        first = omnizarr.create_array(
            place, name="0", data=PIXELS[0], chunks=(5, 8, 8), shards=(5, 16, 32), dimension_names=tuple("zyx"),
            compressors=omnizarr.codecs.GzipCodec(level=1),
        )  # fmt: skip
        omnizarr.pyramid(first, levels=2)
        made = omnizarr.open(place)["1"]
        assert (made.chunks, made.shards, made.compressors) == (first.chunks, first.shards, first.compressors)
        np.testing.assert_array_equal(made[...], halved(PIXELS[0], (2, 2, 2)))

    def test_new_image_has_a_copy_of_the_array(self, tmp_path):
        for zarr_format in (2, 3):
            source, target = str(tmp_path / f"a{zarr_format}.zarr"), str(tmp_path / f"b{zarr_format}.ome.zarr")
            omnizarr.create_array(source, data=PIXELS[0], chunks=(5, 16, 16), zarr_format=zarr_format)
            before = (tmp_path / f"a{zarr_format}.zarr").stat().st_mtime_ns
            made = omnizarr.pyramid(source, target, levels=2, axes="zyx")
            assert (len(made.levels), (tmp_path / f"a{zarr_format}.zarr").stat().st_mtime_ns) == (2, before)
            np.testing.assert_array_equal(omnizarr.open(target, mode="r")["0"][...], PIXELS[0])
            np.testing.assert_array_equal(omnizarr.open(target, mode="r")["1"][...], halved(PIXELS[0], (2, 2, 2)))
            assert len(announced(target, zarr_format)["datasets"]) == 2
            with pytest.raises(errors.ContainsGroupError):
                omnizarr.pyramid(source, target)
            assert bool(made.remarks) == (zarr_format == 2)

    @versions
    def test_consolidated_metadata_is_renewed(self, zarr_format, tmp_path):
        place = make(str(tmp_path / "a.zarr"), zarr_format)
        omnizarr.consolidate_metadata(place)
        omnizarr.pyramid(f"{place}/0", levels=2, axes="czyx")
        known = omnizarr.open_group(place, use_consolidated=True, check_consolidated=True)
        assert list(known) == ["0", "1"]
        assert known.attrs == omnizarr.open_group(place, use_consolidated=False).attrs


class TestAgain:
    def test_levels_that_are_there_are_replaced_only_if_asked(self):
        place = make({})
        omnizarr.pyramid(place, path="0", levels=3)
        before = dict(place)
        with pytest.raises(errors.NodeExistsError, match="'1', '2'"):
            omnizarr.pyramid(place)
        assert place == before
        made = omnizarr.pyramid(place, overwrite=True, levels=2, method="max")
        assert [level.path for level in made.levels] == ["0", "1"]
        assert sorted(omnizarr.open(place)) == ["0", "1"]
        np.testing.assert_array_equal(omnizarr.open(place)["1"][0, 0, 0, 0], PIXELS[0, :2, :2, :2].max())

    def test_other_metadata_stays(self):
        place = make({})
        omnizarr.pyramid(place, path="0", levels=1)
        group = omnizarr.open_group(place)
        ome = group.attrs["ome"]
        ome["omero"] = {"channels": []}
        ome["multiscales"][0]["name"] = "cells"
        ome["multiscales"][0]["datasets"][0]["coordinateTransformations"] = [
            {"type": "scale", "scale": [1, 3, 2, 2]},
            {"type": "translation", "translation": [0, 10, 20, 30]},
        ]
        group.attrs.update({"ome": ome, "mine": 1})
        omnizarr.pyramid(place, levels=2)
        now = omnizarr.open_group(place).attrs
        assert (now["mine"], now["ome"]["omero"]) == (1, {"channels": []})
        image = now["ome"]["multiscales"][0]
        assert (image["name"], image["datasets"][0]) == ("cells", ome["multiscales"][0]["datasets"][0])
        assert image["datasets"][1]["coordinateTransformations"][1]["translation"] == [0, 11.5, 21, 31]

    def test_interrupted_one_is_not_announced_and_can_be_resumed(self):
        store = Torn(MemoryStore())
        make(store)
        store.writes = 5
        with pytest.raises(OSError, match="torn"):
            omnizarr.pyramid(store, path="0", levels=3, max_memory=1)
        assert "ome" not in omnizarr.open(store).attrs
        with pytest.raises(errors.NodeExistsError, match="resume=True"):
            omnizarr.pyramid(store, path="0", levels=3, max_memory=1)
        store.writes = None
        with pytest.raises(errors.NodeExistsError, match="other options"):
            omnizarr.pyramid(store, path="0", levels=3, method="max", resume=True)
        store.written = []
        omnizarr.pyramid(store, path="0", levels=3, max_memory=1, resume=True)
        whole = make({})
        omnizarr.pyramid(whole, path="0", levels=3, max_memory=1)
        assert {key: bytes(store.get(key)) for key in store.list()} == {key: bytes(whole[key]) for key in whole}
        chunks = [key for key in whole if "/c/" in key and not key.startswith("0/")]
        assert 0 < sum("/c/" in key for key in store.written) < len(chunks)

    def test_dry_run_writes_nothing(self, tmp_path):
        place = make({})
        before = dict(place)
        made = omnizarr.pyramid(place, path="0", levels=3, dry_run=True)
        assert (made.dry_run, len(made.levels), place) == (True, 3, before)
        assert omnizarr.pyramid(place, tmp_path / "b.zarr", path="0", dry_run=True).levels
        assert not (tmp_path / "b.zarr").exists()


class Torn(WrapperStore):
    """A store that fails after so many writes."""

    writes = None

    def __init__(self, store):
        super().__init__(store)
        self.written = []

    def set(self, key, value):
        if self.writes is not None:
            self.writes -= 1
            if self.writes < 0:
                raise OSError("torn")
        self.written.append(key)
        super().set(key, value)


class TestRefused:
    @pytest.mark.parametrize(
        ("shape", "options", "reason"),
        [
            ((4,), {}, "two to five axes"),
            ((4,) * 6, {}, "two to five axes"),
            ((4, 4), {"axes": "xt"}, "in this order"),
            ((4, 4), {"axes": "yy"}, "in this order"),
            ((4, 4), {"axes": "qx"}, "in this order"),
            ((4, 4, 4, 4), {"axes": "zcyx"}, "in this order"),
            ((4, 4), {"scale": {"z": 1}}, "no such axis"),
            ((4, 4), {"factor": {"t": 2}}, "no such axis"),
            ((4, 4), {"factor": 1}, "numbers from 2 on"),
            ((4, 4), {"factor": {"y": 1, "x": 1}}, "no axis becomes shorter"),
            ((4, 4), {"method": "average"}, "expected one of mean"),
            ((4, 4), {"levels": 0}, "at least one level"),
        ],
    )
    def test_image_that_is_not_valid(self, shape, options, reason):
        place = {}
        omnizarr.create_array(place, name="0", shape=shape, dtype="u1")
        before = dict(place)
        with pytest.raises(ValueError, match=reason):
            omnizarr.pyramid(place, path="0", **options)
        assert place == before

    def test_formats_without_ome_zarr(self):
        place = omnizarr.create_array({}, name="0", shape=(4, 4), dtype="u1", zarr_format="3-draft2020")
        with pytest.raises(errors.NotRepresentableError, match="no version for"):
            omnizarr.pyramid(place)

    def test_dimensions_that_are_called_otherwise(self):
        place = omnizarr.create_array({}, name="0", shape=(4, 4), dtype="u1", dimension_names=("lat", "lon"))
        with pytest.raises(errors.NotRepresentableError, match="say which they are"):
            omnizarr.pyramid(place)
        with pytest.raises(errors.MetadataError, match="not called as the axes"):
            omnizarr.pyramid(place, axes="yx")

    def test_type_without_means(self):
        place = {}
        omnizarr.create_array(place, name="0", data=np.zeros((4, 4), "S2"), dimension_names=tuple("yx"))
        with pytest.raises(TypeError, match="have no mean"):
            omnizarr.pyramid(place, path="0", levels=2)
        assert "ome" not in omnizarr.open(place).attrs


def test_cluster_makes_the_same(tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs a cluster")
    place = make(str(tmp_path / "a.zarr"))
    alone = make(str(tmp_path / "b.zarr"))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        omnizarr.pyramid(place, path="0", levels=3, scheduler=cluster, max_memory=100_000)
    omnizarr.pyramid(alone, path="0", levels=3)
    for level in "12":
        np.testing.assert_array_equal(omnizarr.open(place)[level][...], omnizarr.open(alone)[level][...])
    assert json.loads((tmp_path / "a.zarr" / "zarr.json").read_text()) == json.loads(
        (tmp_path / "b.zarr" / "zarr.json").read_text()
    )


@versions
def test_other_programs_read_it(zarr_format, tmp_path):
    models = pytest.importorskip("ome_zarr_models", reason="ome-zarr-models is what checks it")
    zarr = pytest.importorskip("zarr")
    place = make(str(tmp_path / "a.ome.zarr"), zarr_format)
    made = omnizarr.pyramid(place, path="0", levels=3, axes="czyx")
    version = {2: models.v04, 3: models.v05}[zarr_format]
    image = version.Image.from_zarr(zarr.open_group(place, mode="r"))
    attributes = image.attributes if zarr_format == 2 else image.ome_attributes
    assert [each.path for each in attributes.multiscales[0].datasets] == [level.path for level in made.levels]
    reader = pytest.importorskip("ome_zarr.reader", reason="ome-zarr-py is a reader")
    io = pytest.importorskip("ome_zarr.io")
    node = next(iter(reader.Reader(io.parse_url(place))()))
    assert [level.shape for level in node.data] == [level.shape for level in made.levels]


def test_resume_of_a_finished_pyramid_changes_nothing(tmp_path):
    omnizarr.create_array(tmp_path / "image.zarr", data=np.arange(256.0).reshape(16, 16), chunks=(8, 8))
    options = {"axes": "yx", "levels": 3, "scale": {"y": 0.5, "x": 0.5}}
    omnizarr.pyramid(tmp_path / "image.zarr", tmp_path / "new.zarr", **options)
    before = {path: path.read_bytes() for path in (tmp_path / "new.zarr").rglob("*") if path.is_file()}
    again = omnizarr.pyramid(tmp_path / "image.zarr", tmp_path / "new.zarr", resume=True, **options)
    assert again.remarks == ("the pyramid was complete already",)
    assert {path: path.read_bytes() for path in (tmp_path / "new.zarr").rglob("*") if path.is_file()} == before
    omnizarr.pyramid(tmp_path / "new.zarr", levels=3, resume=True)
    with pytest.raises(errors.MetadataError, match="has axes already"):
        omnizarr.pyramid(tmp_path / "image.zarr", tmp_path / "new.zarr", resume=True, axes="yx", scale={"y": 9})
