"""`omnizarr.nodes.new_metadata`: what the keywords of `create_array` mean."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr import codecs, errors
from omnizarr.formats import V2, V3
from omnizarr.model import UNDEFINED, Named
from omnizarr.nodes.new_metadata import Coding, array_metadata, guess_chunks, guess_shards, parse_shape


def v3(**options):
    coding = Coding(**{name: options.pop(name) for name in list(options) if name in Coding._fields})
    return array_metadata(V3, **{"shape": (10, 10), "dtype": "i4", "coding": coding, **options})


def v2(**options):
    coding = Coding(**{name: options.pop(name) for name in list(options) if name in Coding._fields})
    return array_metadata(V2, **{"shape": (10, 10), "dtype": "i4", "coding": coding, **options})


def chunk_shape(metadata):
    return tuple(metadata.chunk_grid.configuration["chunk_shape"])


class TestShape:
    @pytest.mark.parametrize(("given", "shape"), [(3, (3,)), ([2, np.int64(3)], (2, 3)), ((), ()), (np.int8(4), (4,))])
    def test_shapes(self, given, shape):
        assert parse_shape(given) == shape
        assert all(type(length) is int for length in parse_shape(given))

    @pytest.mark.parametrize("given", [-1, (2, -1), (2.0,), None, "ab", (True,), 2**63])
    def test_no_shapes(self, given):
        with pytest.raises(errors.MetadataError):
            parse_shape(given)

    @pytest.mark.parametrize("lengths", [(2.0, 3), 2.5, ("2", 3)])
    def test_lengths_that_are_no_integers_are_type_errors(self, lengths):
        with pytest.raises(TypeError, match="not a shape"):
            v3(shape=lengths)
        with pytest.raises(TypeError, match="not a chunk length"):
            v3(shape=(4, 4), chunks=lengths if isinstance(lengths, tuple) else (lengths, lengths))


class TestChunks:
    @pytest.mark.parametrize(
        ("chunks", "expected"),
        [((2, 3), (2, 3)), (4, (4, 4)), (False, (10, 10)), (-1, (10, 10)), ((5, -1), (5, 10)), ((5, None), (5, 10))],
        ids=str,
    )
    def test_chunk_shapes(self, chunks, expected):
        assert chunk_shape(v3(chunks=chunks)) == expected

    @pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 3)])
    def test_chunks_of_the_shape_of_no_data(self, shape):
        assert chunk_shape(v3(shape=shape, chunks=shape)) == tuple(max(length, 1) for length in shape)
        with pytest.raises(errors.MetadataError, match="not a chunk length"):
            v3(shape=(1,) * len(shape), chunks=shape)

    @pytest.mark.parametrize("chunks", ["auto", True, None])
    def test_automatic(self, chunks):
        assert chunk_shape(v3(chunks=chunks)) == guess_chunks((10, 10), 4)

    @pytest.mark.parametrize(
        "chunks", [(2,), (2, 3, 4), (0, 1), (2.5, 1), "automatic", ([3, 3], 2), ([], 2), (True, 1)]
    )
    def test_nonsense_is_refused(self, chunks):
        with pytest.raises(errors.MetadataError):
            v3(chunks=chunks)

    def test_lengths_per_dimension_make_a_rectilinear_grid(self):
        metadata = v3(chunks=([1, 3, 3, 3], 4))
        assert metadata.chunk_grid == Named("rectilinear", {"kind": "inline", "chunk_shapes": [[1, [3, 3]], 4]})

    def test_even_lengths_make_a_regular_grid(self):
        assert chunk_shape(v3(chunks=((4, 4, 2), (10,)))) == (4, 10)

    def test_rectilinear_grid_is_refused_for_v2(self):
        with pytest.raises(errors.NotRepresentableError):
            omnizarr.create_array({}, shape=6, dtype="i4", chunks=[[1, 2, 3]], zarr_format=2)

    @given(st.lists(st.integers(0, 10**6), max_size=5), st.integers(1, 1000))
    def test_guess_is_possible_and_not_too_large(self, shape, item_size):
        guess = guess_chunks(tuple(shape), item_size)
        assert len(guess) == len(shape)
        assert all(1 <= chunk <= max(length, 1) for chunk, length in zip(guess, shape, strict=True))
        assert math.prod(guess) * item_size <= 64 * 2**20

    def test_guess_of_a_large_array_has_chunks_of_some_size(self):
        for shape in ((10**9,), (20000, 20000), (1000, 1000, 1000), (3, 10**8)):
            size = math.prod(guess_chunks(shape, 4)) * 4
            assert 100 * 2**10 < size < 10 * 2**20


class TestShards:
    def test_shards_hold_inner_chunks(self):
        metadata = v3(chunks=(2, 5), shards=(4, 10))
        assert chunk_shape(metadata) == (4, 10)
        (sharding,) = metadata.codecs
        assert sharding.name == "sharding_indexed"
        assert sharding.configuration["chunk_shape"] == [2, 5]
        assert [codec["name"] for codec in sharding.configuration["codecs"]] == ["bytes", "zstd"]
        assert [codec["name"] for codec in sharding.configuration["index_codecs"]] == ["bytes", "crc32c"]
        assert sharding.configuration["index_location"] == "end"

    def test_index_location(self):
        metadata = v3(chunks=(2, 5), shards={"shape": (4, 10), "index_location": "start"})
        assert metadata.codecs[0].configuration["index_location"] == "start"

    def test_automatic(self):
        assert guess_shards((100, 16), (10, 2), 1) == (20, 2)
        assert chunk_shape(v3(shape=(100, 16), chunks=(10, 2), shards="auto")) == (20, 2)

    def test_automatic_with_a_target(self):
        with omnizarr.config.set({"array.target_shard_size_bytes": 10 * 10 * 4 * 9}):
            assert guess_shards((100, 100), (10, 10), 4) == (30, 30)

    def test_shards_that_inner_chunks_do_not_divide_are_refused(self):
        with pytest.raises(errors.OmnizarrError):
            omnizarr.create_array({}, shape=10, dtype="i4", chunks=3, shards=(4,))

    def test_v2_has_none(self):
        with pytest.raises(errors.NotRepresentableError):
            v2(chunks=2, shards=(4, 4))


class TestLargeChunks:
    SHAPE = (200, 200, 200, 200)

    @pytest.mark.parametrize("options", [{"chunks": 128}, {"chunks": 8, "shards": 128}])
    def test_one_length_for_all_dimensions_does_not_make_them(self, options):
        with pytest.raises(errors.MetadataError, match=r"each 1,024 MiB, .*\(128, 128, 128, 128\) if they shall"):
            v3(shape=self.SHAPE, **options)

    def test_a_length_for_each_dimension_does(self):
        assert chunk_shape(v3(shape=self.SHAPE, chunks=(128,) * 4)) == (128,) * 4
        assert chunk_shape(v3(shape=self.SHAPE, chunks=8, shards=(128,) * 4)) == (128,) * 4

    def test_so_does_one_length_that_is_all_there_is(self):
        assert chunk_shape(v3(shape=10**9, chunks=10**9)) == (10**9,)
        assert chunk_shape(v3(shape=self.SHAPE, chunks=-1)) == self.SHAPE
        assert chunk_shape(v3(shape=self.SHAPE, chunks=False)) == self.SHAPE

    def test_up_to_256_mib_are_not_large(self):
        assert chunk_shape(v3(shape=(2**14, 2**14), chunks=2**13)) == (2**13, 2**13)
        with pytest.raises(errors.MetadataError):
            v3(shape=(2**14, 2**14), chunks=2**13 + 1)


class TestCodecsV3:
    def test_defaults(self):
        assert v3().codecs == (
            Named("bytes", {"endian": "little"}),
            Named("zstd", {"level": 0, "checksum": False}),
        )

    @pytest.mark.parametrize(
        ("dtype", "serializer"),
        [
            ("u1", Named("bytes")),
            ("bool", Named("bytes")),
            ("S4", Named("bytes")),
            ("U4", Named("bytes", {"endian": "little"})),
            (">f8", Named("bytes", {"endian": "big"})),
            ("string", Named("vlen-utf8")),
            ("bytes", Named("vlen-bytes")),
            ([("a", "u1"), ("b", "i1")], Named("bytes")),
            ([("a", "u1"), ("b", "<i4")], Named("bytes", {"endian": "little"})),
            ("M8[s]", Named("bytes", {"endian": "little"})),
        ],
        ids=str,
    )
    def test_serializer_suits_the_type(self, dtype, serializer):
        assert v3(dtype=dtype).codecs[0] == serializer

    @pytest.mark.parametrize("none", [None, (), []])
    def test_no_compressor(self, none):
        assert [codec.name for codec in v3(compressors=none).codecs] == ["bytes"]

    @pytest.mark.parametrize(
        "gzip",
        [
            codecs.GzipCodec(level=3),
            [codecs.GzipCodec(level=3)],
            {"name": "gzip", "configuration": {"level": 3}},
            Named("gzip", {"level": 3}),
            {"id": "gzip", "level": 3},
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_ways_to_name_a_codec(self, gzip):
        assert v3(compressors=gzip).codecs[1:] == (Named("gzip", {"level": 3}),)

    def test_objects_of_numcodecs(self):
        numcodecs = pytest.importorskip("numcodecs")
        metadata = v3(
            filters=[numcodecs.Delta("<i4")], compressors=[numcodecs.Blosc("lz4", shuffle=1), numcodecs.Zlib(2)]
        )
        assert [codec.name for codec in metadata.codecs] == ["numcodecs.delta", "bytes", "blosc", "numcodecs.zlib"]
        assert metadata.codecs[2].configuration["typesize"] == 4
        assert metadata.codecs[2].configuration["shuffle"] == "shuffle"

    @pytest.mark.parametrize(("dtype", "typesize", "shuffle"), [("f8", 8, "shuffle"), ("u1", 1, "bitshuffle")])
    def test_blosc_finds_out_what_was_left_open(self, dtype, typesize, shuffle):
        configuration = v3(dtype=dtype, compressors=codecs.BloscCodec()).codecs[-1].configuration
        assert (configuration["typesize"], configuration["shuffle"]) == (typesize, shuffle)
        given = codecs.BloscCodec(typesize=2, shuffle="noshuffle")
        configuration = v3(dtype=dtype, compressors=given).codecs[-1].configuration
        assert (configuration["typesize"], configuration["shuffle"]) == (2, "noshuffle")

    def test_all_codecs_in_one_list(self):
        metadata = v3(codecs=[codecs.TransposeCodec(order=(1, 0)), codecs.BytesCodec(), "crc32c"])
        assert metadata.codecs == (
            Named("transpose", {"order": [1, 0]}),
            Named("bytes", {"endian": "little"}),
            Named("crc32c"),
        )

    @pytest.mark.parametrize("codec", [5, {"level": 3}, object()], ids=lambda codec: type(codec).__name__)
    def test_what_is_no_codec_is_refused(self, codec):
        with pytest.raises(errors.MetadataError):
            v3(compressors=[codec])

    def test_unknown_codec_is_refused_before_anything_is_written(self):
        store = {}
        with pytest.raises(errors.UnknownCodecError):
            omnizarr.create_array(store, shape=3, dtype="i4", compressors={"name": "acme.squeeze"})
        assert store == {}


class TestCodecsV2:
    def document(self, **options):
        array = omnizarr.create_array({}, **{"shape": (10, 10), "dtype": "i4", "zarr_format": 2, **options})
        return array.documents()[".zarray"]

    def test_defaults(self):
        document = self.document()
        assert document["compressor"] == {"id": "zstd", "level": 0}
        assert not document["filters"]
        assert document["order"] == "C"
        assert document["dtype"] == "<i4"
        assert document["fill_value"] == 0

    def test_ours_become_numcodecs(self):
        document = self.document(
            compressors=codecs.GzipCodec(level=2), filters=Named("numcodecs.delta", {"dtype": "<i4"})
        )
        assert document["compressor"] == {"id": "gzip", "level": 2}
        assert document["filters"] == [{"id": "delta", "dtype": "<i4"}]

    def test_objects_of_numcodecs(self):
        numcodecs = pytest.importorskip("numcodecs")
        document = self.document(
            filters=[numcodecs.FixedScaleOffset(0, 10, "<i4")], compressors=numcodecs.Blosc("lz4", 3, 2)
        )
        assert [step["id"] for step in document["filters"]] == ["fixedscaleoffset"]
        assert document["compressor"] == {"id": "blosc", "cname": "lz4", "clevel": 3, "shuffle": 2, "blocksize": 0}

    def test_no_compressor(self):
        assert self.document(compressors=None)["compressor"] is None

    def test_byte_order_is_kept(self):
        assert self.document(dtype=">f8")["dtype"] == ">f8"
        assert omnizarr.create_array({}, shape=2, dtype=">f8", zarr_format=2).dtype == np.dtype(">f8")

    @pytest.mark.parametrize(("dtype", "codec"), [("string", "vlen-utf8"), ("bytes", "vlen-bytes")])
    def test_strings_get_their_object_codec(self, dtype, codec):
        document = self.document(dtype=dtype)
        assert document["dtype"] == "|O"
        assert document["filters"] == [{"id": codec}]

    def test_serializer_is_refused(self):
        with pytest.raises(errors.NotRepresentableError):
            v2(serializer=codecs.BytesCodec())

    def test_codecs_without_a_word_for_them_are_refused(self):
        with pytest.raises(errors.NotRepresentableError):
            v2(filters=codecs.ScaleOffset(offset=1))

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_objects_need_an_object_codec(self, zarr_format):
        with pytest.raises(errors.UnknownDataTypeError, match="string"):
            omnizarr.create_array({}, shape=2, dtype=object, zarr_format=zarr_format)


class TestFillValue:
    @pytest.mark.parametrize(
        ("dtype", "given", "stored"),
        [("f4", np.nan, "NaN"), ("i4", 3, 3), ("bool", 1, True), ("c8", 1 + 2j, [1.0, 2.0]), ("string", "x", "x")],
    )
    def test_given(self, dtype, given, stored):
        assert v3(dtype=dtype, fill_value=given).fill_value == stored

    def test_left_out_it_is_zero(self):
        assert v3().fill_value == 0
        assert v2().fill_value == 0

    def test_none_is_undefined_in_v2_and_zero_in_v3(self):
        assert v2(fill_value=None).fill_value is UNDEFINED
        assert v3(fill_value=None).fill_value == 0

    @pytest.mark.parametrize(("dtype", "value"), [("u1", 256), ("i4", "x"), ("i4", 1.5)])
    def test_what_the_type_cannot_hold_is_refused(self, dtype, value):
        with pytest.raises(errors.MetadataError):
            v3(dtype=dtype, fill_value=value)


class TestTheRest:
    @pytest.mark.parametrize(
        "given",
        [
            {"name": "v2", "separator": "/"},
            {"name": "v2", "configuration": {"separator": "/"}},
            ("v2", "/"),
            Named("v2", {"separator": "/"}),
        ],
        ids=str,
    )
    def test_chunk_key_encoding(self, given):
        assert v3(chunk_key_encoding=given).chunk_key_encoding == Named("v2", {"separator": "/"})

    def test_chunk_key_encoding_that_is_none(self):
        with pytest.raises(errors.MetadataError):
            v3(chunk_key_encoding=5)

    def test_dimension_separator_of_v2(self):
        array = omnizarr.create((4, 4), chunks=(2, 2), zarr_format=2, dimension_separator="/", store={})
        array[...] = 1
        assert array.store.exists("1/1")

    def test_dimension_names(self):
        assert v3(dimension_names=("y", None)).dimension_names == ("y", None)
        assert v3(dimension_names=()).dimension_names is None
        with pytest.raises(errors.MetadataError):
            v3(dimension_names=("y",))
        with pytest.raises(errors.NotRepresentableError):
            omnizarr.create_array({}, shape=2, dtype="i4", dimension_names=("x",), zarr_format=2)

    def test_no_type_is_an_error(self):
        with pytest.raises(errors.MetadataError, match="dtype"):
            v3(dtype=None)

    def test_attributes_become_json(self):
        assert v3(attributes={"a": np.arange(2)}).attributes == {"a": [0, 1]}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["M8[s]", "m8[ns]"])
def test_times_that_were_never_written_are_no_times(dtype, zarr_format):
    assert np.isnat(omnizarr.create_array({}, shape=(2,), dtype=dtype, zarr_format=zarr_format)[0])


@pytest.mark.parametrize("given", [("v2", "."), ("default", "."), {"name": "default", "separator": "."}])
def test_separator_of_a_draft_can_be_chosen(given):
    store = {}
    options = {"chunks": (1, 1), "zarr_format": "3-draft2020", "chunk_key_encoding": given}
    array = omnizarr.create_array(store, data=np.ones((2, 2)), **options)
    assert "data/root/c0.1" in store
    assert omnizarr.open(store)[1, 1] == 1
    assert array.metadata.chunk_key_encoding.configuration == {"separator": "."}


@pytest.mark.parametrize("zarr_format", [1, 2, "3-draft2019", "3-draft2020"])
def test_codecs_go_by_the_names_of_v3_in_older_formats_too(zarr_format):
    options = {"zarr_format": zarr_format, "chunks": (2,)}
    array = omnizarr.create_array(
        {}, data=np.arange(4), compressors={"name": "zlib", "configuration": {"level": 3}}, **options
    )
    assert array.metadata.codecs[-1].name == "numcodecs.zlib"
    assert (
        omnizarr.create_array(
            {}, data=np.arange(4), compressors={"name": "bz2", "configuration": {"level": 3}}, **options
        )[3]
        == 3
    )


@pytest.mark.parametrize("zarr_format", [1, "3-draft2019", "3-draft2020"])
def test_codec_that_an_older_format_lacks_is_refused_in_its_name(zarr_format):
    name = {1: "v1"}.get(zarr_format, f"v{zarr_format}")
    sharding = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": ["bytes"]}}
    with pytest.raises(errors.NotRepresentableError, match=f"Zarr {name}: codec 'sharding_indexed'"):
        omnizarr.create_array({}, data=np.arange(4), compressors=sharding, zarr_format=zarr_format)


@pytest.mark.parametrize("zarr_format", [1, 2])
def test_nan_of_other_bits_is_no_fill_value_where_there_is_one_word_for_nan(zarr_format):
    payload = np.array([0x7FF8000000000123], "u8").view("f8")[0]
    store = {}
    array = omnizarr.create_array(
        store, shape=(4,), chunks=(2,), dtype="f8", fill_value=payload, zarr_format=zarr_format
    )
    array[:2] = payload
    again = omnizarr.open(store)
    assert again[:2].view("u8").tolist() == [0x7FF8000000000123] * 2
    assert (
        np.asarray(again.fill_value).tobytes() == np.asarray(array.fill_value).tobytes() == np.asarray(np.nan).tobytes()
    )


class TestRemembered:
    """The meaning of keywords is remembered, which must not be visible."""

    def test_equal_arrays_have_metadata_of_their_own(self):
        root = omnizarr.create_group({})
        options = {"shape": (4,), "dtype": "i2", "chunks": (2,), "attributes": {"list": [1]}}
        a, b = (root.create_array(name, **options) for name in "ab")
        a.attrs["mine"] = 1
        a.metadata.chunk_grid.configuration["chunk_shape"].append(7)
        assert b.attrs.asdict() == root["b"].attrs.asdict() == {"list": [1]}
        assert b.chunks == root.create_array("c", **options).chunks == (2,)

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_what_was_passed_may_be_changed_afterwards(self, zarr_format):
        root = omnizarr.create_group({}, zarr_format=zarr_format)
        attributes, compressor, shape, chunks = {"list": [1]}, {"id": "gzip", "level": 1}, [4, 4], [2, 2]

        def create(name):
            options = {"compressors": compressor, "attributes": attributes}
            return root.create_array(name, shape=shape, dtype="i2", chunks=chunks, **options)

        first = create("a")
        attributes["list"].append(2)
        compressor["level"] = 2
        shape[0] = 8
        chunks[0] = 4
        second = create("b")
        for array, expected in ((first, ([1], 1, (4, 4), (2, 2))), (second, ([1, 2], 2, (8, 4), (4, 2)))):
            for view in (array, root[array.basename]):
                level = view.compressors[0].configuration["level"]
                assert (view.attrs["list"], level, view.shape, view.chunks) == expected

    def test_fill_values_that_compare_equal_are_distinguished(self):
        created = [omnizarr.create_array({}, shape=(1,), dtype="f8", fill_value=fill) for fill in (0.0, -0.0, 0)]
        assert [bool(np.signbit(array[0])) for array in created] == [False, True, False]

    def test_what_can_be_walked_once_is_taken(self):
        for _ in range(2):
            array = omnizarr.create_array(
                {}, shape=iter([2, 3]), dtype="i2", chunks=(1, 1), dimension_names=(name for name in "xy")
            )
            assert (array.shape, array.dimension_names) == ((2, 3), ("x", "y"))

    def test_settings_take_effect(self):
        def shards():
            return omnizarr.create_array({}, shape=(1000, 1000), dtype="u1", chunks=(10, 10), shards="auto").shards

        before = shards()
        with omnizarr.config.set({"array.target_shard_size_bytes": 1000}):
            assert shards() != before
        assert shards() == before
