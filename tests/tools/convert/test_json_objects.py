"""Object arrays of JSON and MessagePack, as hdmf-zarr writes specifications of NWB: texts become strings of v3."""

import json

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import NotRepresentableError, ValueTypeError
from omnizarr.storage import MemoryStore, TranslatedStore

numcodecs = pytest.importorskip("numcodecs", reason="writes the arrays")
SPECIFICATION = json.dumps({"datasets": [{"doc": "å", "name": "x"}]})


def stored(values, codec=None, fill="null", compressor=None):
    """Return an array of v2 as zarr-python 2 stores it, in one chunk."""
    is_text = isinstance(values, str)
    array = np.empty(() if is_text else (len(values), *np.shape(values[0])), object)
    array[...] = values
    codec = codec or numcodecs.JSON()
    data = codec.encode(array if array.shape else array.reshape(1))
    document = {
        "zarr_format": 2,
        "shape": array.shape,
        "chunks": array.shape,
        "dtype": "|O",
        "order": "C",
        "fill_value": json.loads(fill),
        "filters": [codec.get_config()],
        "compressor": None if compressor is None else compressor.get_config(),
    }
    chunk = data if compressor is None else compressor.encode(data)
    key = ".".join("0" * array.ndim) or "0"
    return {".zarray": json.dumps(document).encode(), key: bytes(chunk)}


@pytest.mark.parametrize("fill", ["null", "0", '""', '"a"'])
@pytest.mark.parametrize("compressor", [None, numcodecs.Blosc(), numcodecs.GZip()])
@pytest.mark.parametrize("values", [["a", "", "ü"], [SPECIFICATION], [["a", "b"], ["c", "d"]]])
def test_texts_become_strings_that_zarr_python_reads(values, compressor, fill, tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3", reason="reads the result")
    old = stored(values, fill=fill, compressor=compressor)
    done = omnizarr.convert(old, tmp_path / "new.zarr", strict=True)
    assert (done.is_lossless, done.verified) == (True, True)
    assert zarr.open_array(tmp_path / "new.zarr", mode="r")[...].tolist() == values
    back = {}
    assert omnizarr.convert(tmp_path / "new.zarr", back, zarr_format=2).is_lossless
    assert omnizarr.open(back)[...].tolist() == values


def test_a_text_without_dimensions_stays_one():
    omnizarr.convert(stored(SPECIFICATION), new := {}, strict=True)
    assert omnizarr.open(new).shape == ()
    assert omnizarr.open(new)[()] == SPECIFICATION


def test_other_values_become_json_text_and_are_a_loss():
    values = ["a", {"x": [1, None]}, None, 3, True]
    done = omnizarr.convert(stored(values), new := {})
    assert [(loss.kept, "{'x'" in loss.what) for loss in done.losses] == [("their JSON text", True)]
    found = omnizarr.open(new)[...].tolist()
    assert found[0] == "a"
    assert [json.loads(text) for text in found[1:]] == values[1:]
    with pytest.raises(NotRepresentableError, match="JSON values"):
        omnizarr.convert(stored(values), {}, strict=True)


@pytest.mark.parametrize("fill", ["null", "0", '"a"'])
def test_missing_chunks_read_as_text(fill):
    old = stored(["a", "b"], fill=fill)
    del old["0"]
    done = omnizarr.convert(old, new := {})
    assert done.verified
    assert all(isinstance(text, str) for text in omnizarr.open(new)[...].tolist())


@pytest.mark.parametrize("target", [1, "3-draft2019", "3-draft2020"])
def test_formats_without_strings_leave_them_out(target):
    assert omnizarr.convert(stored(["a"]), {}, zarr_format=target).losses[0].what.startswith("the array, for its data")


def test_a_hierarchy_keeps_all_its_specifications():
    root = {".zgroup": b'{"zarr_format": 2}', "specifications/.zgroup": b'{"zarr_format": 2}'}
    names = [f"specifications/{name}" for name in ("core", "hdmf-common")]
    for name in names:
        root.update({f"{name}/{key}": value for key, value in stored([SPECIFICATION]).items()})
    omnizarr.convert(root, new := {}, strict=True)
    assert [omnizarr.open(new)[name][0] for name in names] == [SPECIFICATION] * 2


# MessagePack, which may hold bytes too


def test_texts_of_messagepack_become_strings_that_zarr_python_reads(tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3", reason="reads the result")
    pytest.importorskip("msgpack", reason="decodes the arrays")
    values = ["a", "", "ü", SPECIFICATION]
    done = omnizarr.convert(stored(values, numcodecs.MsgPack()), tmp_path / "new.zarr", strict=True)
    assert (done.is_lossless, done.verified) == (True, True)
    assert zarr.open_array(tmp_path / "new.zarr", mode="r")[...].tolist() == values


def test_other_values_of_messagepack_become_json_text_and_are_a_loss():
    values = ["a", {"x": [1, None]}, None, 3, True]
    done = omnizarr.convert(stored(values, numcodecs.MsgPack()), new := {})
    assert [(loss.kept, "MessagePack values" in loss.what) for loss in done.losses] == [("their JSON text", True)]
    found = omnizarr.open(new)[...].tolist()
    assert [found[0], *map(json.loads, found[1:])] == values


@pytest.mark.parametrize(
    ("values", "raw"), [(["a", b"\xff"], False), ([{"x": b"a"}, "a"], False), ([3, b"a"], False), (["a", "b"], True)]
)
def test_bytes_of_messagepack_have_no_text(values, raw):
    source = {".zgroup": b'{"zarr_format": 2}'}
    array = stored(values, numcodecs.MsgPack(raw=raw))
    source.update({f"a/{key}": value for key, value in array.items()})
    done = omnizarr.convert(source, new := {})
    assert [(loss.path, "JSON has no such value" in loss.why) for loss in done.losses] == [("a", True)]
    assert list(omnizarr.open(new).keys()) == []
    with pytest.raises(NotRepresentableError, match="JSON has no such value"):
        omnizarr.convert(source, {}, strict=True)


def test_bytes_of_messagepack_are_an_error_in_a_view():
    view = TranslatedStore(MemoryStore(stored(["a", b"\xff"], numcodecs.MsgPack())))
    with pytest.raises(ValueTypeError, match="JSON has no such value"):
        omnizarr.open(view)[...]
