"""What the drafts of 2019 and 2020 say in the same words: their tests inherit `DraftContract`."""

import gzip
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.stores import MemoryStore
from tests.conformance.raw import document, keys, store

ELSEWHERE = "http://example.org/zarr/extension/foo"


@dataclass(frozen=True)
class Draft:
    """A draft, and the documents that its tests begin with."""

    name: str
    entry: Mapping[str, Any]
    group: Mapping[str, Any]
    array: Mapping[str, Any]
    rows: Mapping[str, Any]
    """The array of 10,000 rows and 1,000 columns that the texts show."""
    suffix: str
    """Of the keys of documents."""
    chunks: str
    """Where the chunks of the root are."""
    key: Callable[..., str]
    """Of the chunk with some coordinates, below that."""

    def at(self, key):
        """Return the key of a document with the suffix that the draft has."""
        return key + self.suffix

    def hierarchy(self, values, entry=None):
        return store({"zarr.json": self.entry if entry is None else entry, **values})

    def opened(self, chunks=(), **changes):
        """Open an array at the root whose document differs from `array` in some members."""
        chunks = {f"{self.chunks}{name}": value for name, value in dict(chunks).items()}
        return omnizarr.open(self.hierarchy({self.at("meta/root.array"): {**self.array, **changes}, **chunks}))

    def refused(self, kind=errors.MetadataError, **changes):
        """Return the pointer of the error with which such an array is refused, at the latest when it is read."""
        with pytest.raises(kind) as caught:
            self.opened(**changes)[...]
        return caught.value.pointer

    def create(self, made, **options):
        return omnizarr.create_array(made, zarr_format=self.name, **options)


def pointers_of_notes(node):
    return [note.pointer for note in node._metadata.notes]


def grid(*lengths, **more):
    return {"type": "regular", "chunk_shape": list(lengths), **more}


class DraftContract:
    """Tests of a draft, which the fixture `draft` gives."""

    def test_path_names_the_node_and_those_above_it(self, draft):
        root = omnizarr.open(
            draft.hierarchy(
                {draft.at("meta/root.group"): draft.group, draft.at("meta/root/foo/bar.array"): draft.array}
            )
        )
        bar = root["foo"]["bar"]
        assert (root.name, bar.name, bar.basename) == ("/", "/foo/bar", "bar")

    def test_shape_is_the_tuple_of_lengths(self, draft):
        assert draft.opened(shape=[100, 20], chunk_grid=grid(10, 10)).shape == (100, 20)
        assert draft.opened(shape=[], chunk_grid=grid()).shape == ()

    def test_little_endian_int32_ends_where_the_text_says(self, draft):
        ends = [-2147483648, 2147483647]
        array = draft.opened({draft.key(0): struct.pack("<2i", *ends)}, shape=[2], data_type="<i4", chunk_grid=grid(2))
        assert array[...].tolist() == ends
        for beyond in (ends[0] - 1, ends[1] + 1):
            assert draft.refused(data_type="<i4", fill_value=beyond) == "/fill_value"

    @pytest.mark.parametrize("name", ["a", "-", "_", "a.b", ".a", "..a", "A-Z_0.9", "x" * 255])
    def test_names_of_the_permitted_characters_are_accepted(self, draft, name):
        made = MemoryStore()
        omnizarr.create_group(made, zarr_format=draft.name).create_group(name)
        assert draft.at(f"meta/root/{name}.group") in keys(made)
        assert list(omnizarr.open(made)) == [name]

    @pytest.mark.parametrize("name", ["", ".", "..", "...", "a b", "\u00e4", "a:b", "a~", "x" * 256])
    def test_other_names_are_refused(self, draft, name):
        made = MemoryStore()
        root = omnizarr.create_group(made, zarr_format=draft.name)
        before = keys(made)
        for make in (root.create_group, lambda name: root.create_array(name, shape=(1,), dtype="i1")):
            with pytest.raises(errors.NodeNameError):
                make(name)
        assert keys(made) == before

    def test_grid_of_the_text(self, draft):
        array = draft.opened(shape=[10, 200, 3000], chunk_grid=grid(5, 20, 400))
        assert (array.cdata_shape, array.nchunks) == ((2, 10, 8), 160)

    @pytest.mark.parametrize("layout", ["C", "F"])
    def test_layout_is_the_order_of_elements_in_a_chunk(self, draft, layout):
        values = np.arange(6, dtype="u1").reshape(2, 3)
        stored = bytes([0, 1, 2, 3, 4, 5]) if layout == "C" else bytes([0, 3, 1, 4, 2, 5])
        array = draft.opened({draft.key(0, 0): stored}, chunk_memory_layout=layout)
        np.testing.assert_array_equal(array[:2, :3], values)
        made = MemoryStore()
        draft.create(made, shape=(2, 3), dtype="u1", chunks=(2, 3), order=layout, compressors=None)[...] = values
        assert bytes(made.get(draft.chunks + draft.key(0, 0))) == stored
        assert document(made, draft.at("meta/root.array"))["chunk_memory_layout"] == layout

    def test_shape_is_a_list_of_lengths(self, draft):
        array = draft.opened(shape=[10, 20], chunk_grid=grid(5, 5))
        assert (array.ndim, array.shape) == (2, (10, 20))

    def test_little_endian_float64(self, draft):
        array = draft.opened(
            {draft.key(0): struct.pack("<2d", 1.5, -2)}, shape=[2], data_type="<f8", chunk_grid=grid(2)
        )
        assert array[...].tolist() == [1.5, -2]

    def test_data_type_that_is_not_known_and_has_no_fallback_is_not_read(self, draft):
        array = draft.opened(
            {draft.key(0): b"\1"}, shape=[1], data_type={"extension": ELSEWHERE, "type": "x"}, chunk_grid=grid(1)
        )
        assert array.shape == (1,)
        with pytest.raises(errors.UnknownDataTypeError, match=ELSEWHERE):
            array[...]

    @pytest.mark.parametrize(
        "broken", [{"type": "x", "fallback": "u1"}, {"extension": 5, "type": "x", "fallback": "u1"}]
    )
    def test_extension_of_a_data_type_has_a_uri(self, draft, broken):
        assert draft.refused(data_type=broken) == "/data_type/extension"

    def test_extension_of_a_data_type_has_a_type(self, draft):
        assert draft.refused(data_type={"extension": ELSEWHERE, "fallback": "u1"}) == "/data_type/type"

    @pytest.mark.parametrize("broken", [[2, 3], "regular", {"type": "regular"}, {"chunk_shape": [2, 3]}, None])
    def test_regular_grid_has_a_type_and_a_chunk_shape(self, draft, broken):
        assert draft.refused(chunk_grid=broken).startswith("/chunk_grid")

    def test_type_of_a_regular_grid_is_regular(self, draft):
        for other in ("Regular", "rectilinear", "", None, 1):
            assert draft.refused(chunk_grid={"type": other, "chunk_shape": [2, 3]}) == "/chunk_grid/type"

    @pytest.mark.parametrize(
        "lengths", [2, "23", [2, "3"], [2, 2.5], [2, True], [2, None], [2, -3], [2], [2, 3, 1], {"0": 2}]
    )
    def test_chunk_shape_is_a_list_of_integers_one_per_dimension(self, draft, lengths):
        assert draft.refused(chunk_grid={"type": "regular", "chunk_shape": lengths}).startswith(
            "/chunk_grid/chunk_shape"
        )

    @pytest.mark.parametrize("name", ["chunk_grid", "chunk_memory_layout"])
    @pytest.mark.parametrize("uri", [{}, {"extension": 5}, {"extension": None}])
    def test_extension_of_grid_or_layout_has_a_uri(self, draft, name, uri):
        assert draft.refused(**{name: {**uri, "type": "hexagonal"}}).startswith(f"/{name}/")

    @pytest.mark.parametrize("name", ["chunk_grid", "chunk_memory_layout"])
    def test_extension_of_grid_or_layout_has_a_type(self, draft, name):
        assert draft.refused(**{name: {"extension": ELSEWHERE}}) == f"/{name}/type"

    @pytest.mark.parametrize("name", ["chunk_grid", "chunk_memory_layout"])
    def test_extension_of_grid_or_layout_is_an_object(self, draft, name):
        for broken in ([ELSEWHERE], ELSEWHERE, 5, None):
            assert draft.refused(**{name: broken}) == f"/{name}"

    @pytest.mark.parametrize("value", [2, -1, 0.5, "true", [True]])
    def test_fill_value_of_bool_is_true_or_false(self, draft, value):
        assert draft.refused(data_type="bool", fill_value=value) == "/fill_value"
        for good in (True, False):
            array = draft.opened(data_type="bool", fill_value=good)
            assert array[0, 0] == good
            assert pointers_of_notes(array) == []
        assert pointers_of_notes(draft.opened(data_type="bool", fill_value=1)) == ["/fill_value"]

    def test_array_of_10000_rows_and_1000_columns(self, draft):
        values = np.arange(100_000, dtype="<f8").reshape(1000, 100)
        made = draft.hierarchy(
            {
                draft.at("meta/root/a.array"): draft.rows,
                f"{draft.chunks}a/{draft.key(9, 3)}": gzip.compress(values.tobytes()),
            }
        )
        array = omnizarr.open(made)["a"]
        assert (array.shape, array.chunks, array.cdata_shape, array.nchunks) == (
            (10000, 1000),
            (1000, 100),
            (10, 10),
            100,
        )
        assert array.dtype == np.dtype("<f8")
        np.testing.assert_array_equal(array[9000:, 300:400], values)
        assert np.isnan(array[:9000, 300:400]).all()
        assert dict(array.attrs) == {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}
        assert array.documents() == {"array": draft.rows}
        array.attrs["new"] = 1
        assert document(made, draft.at("meta/root/a.array")) == {
            **draft.rows,
            "attributes": {**draft.rows["attributes"], "new": 1},
        }
