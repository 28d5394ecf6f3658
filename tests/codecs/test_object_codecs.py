"""json2, msgpack2, pickle."""

import json
import pickle

import numpy as np
import pytest

from omnizarr.errors import ChunkError, ChunkSizeError, CodecError, PickleDisabledError
from omnizarr.model import Named
from tests.codecs.cases import OBJECTS, bound

OBJECT = Named("omnizarr.object")


def codec(name, array=OBJECTS, configuration=None):
    return bound(name, configuration or {}, array, named=OBJECT, allow_pickle=True)


def test_json_lists_items_dtype_and_shape():
    assert json.loads(codec("numcodecs.json2").encode(OBJECTS)) == [*OBJECTS.tolist(), "|O", [2, 3]]


def test_older_json_has_no_shape():
    array = np.array([1, "a"], object)
    assert codec("numcodecs.json", array).decode(b'[1, "a", "|O"]').tolist() == [1, "a"]


def test_scalar():
    array = np.array(5, object)
    for name in ("numcodecs.json2", "numcodecs.msgpack2", "numcodecs.pickle"):
        assert codec(name, array).decode(codec(name, array).encode(array)).tolist() == 5


def test_shape_of_the_same_size_will_do():
    # zarr-python 2 hands chunks over flat or in shape
    assert codec("numcodecs.json2").decode(b'[1,2,3,4,5,6,"|O",[6]]').tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}", b"[]", b"[1]", b'["|O",[2,3]]', b'[1,2,3,"|O",[3]]', b'[1,2,3,4,5,6,"|O",[2,3]]',
        b'[1,2,3,4,5,6,"|O",[-6]]', b'[1,2,3,4,5,6,"|O",6]', b"\xff\xfe", b"[" * 100_000, b'["|O",[0]]',
        b'[1,"|O",[6]]',
    ],
)  # fmt: skip
def test_json_of_another_form_is_refused(data):
    with pytest.raises(ChunkError):
        codec("numcodecs.json2").decode(data)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x01", b"\x90", b"\xdd\xff\xff\xff\xff", b"\x91" * 100_000])
def test_msgpack_of_another_form_is_refused(data):
    with pytest.raises(ChunkError):
        codec("numcodecs.msgpack2").decode(data)


@pytest.mark.parametrize("name", ["numcodecs.json2", "numcodecs.msgpack2"])
def test_object_that_has_no_form_cannot_be_encoded(name):
    array = np.array([object()], object)
    with pytest.raises(CodecError):
        codec(name, array).encode(array)


def test_pickles_of_chunks_in_order_f_are_read_in_the_order_of_their_memory():
    # zarr-python 2 pickles the chunk in its own shape, laid out in order F
    data = pickle.dumps(np.asfortranarray(OBJECTS))
    assert codec("numcodecs.pickle", OBJECTS.T).decode(data).tolist() == OBJECTS.T.tolist()


def test_pickles_are_laid_out_in_order_c():
    pickled = pickle.loads(codec("numcodecs.pickle", OBJECTS.T).encode(OBJECTS.T))
    assert pickled.ravel(order="A").tolist() == OBJECTS.T.ravel().tolist()


def test_nothing_is_unpickled_unless_allowed():
    with pytest.raises(PickleDisabledError) as caught:
        bound("numcodecs.pickle", {}, OBJECTS, named=OBJECT)
    assert "allow_pickle=True" in caught.value.remedy
    assert isinstance(caught.value, PermissionError)


@pytest.mark.parametrize("data", [b"", b"junk", pickle.dumps([1, 2]), pickle.dumps(OBJECTS[0])])
def test_pickle_of_something_else_is_refused(data):
    with pytest.raises(ChunkError):
        codec("numcodecs.pickle").decode(data)


def test_pickle_of_another_size_is_reported():
    with pytest.raises(ChunkSizeError):
        codec("numcodecs.pickle").decode(pickle.dumps(OBJECTS[0]))
