"""JSON that is none, as netCDF-C wrote it."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr.dialects.documents import notes_of, parse
from omnizarr.dialects.lenient import Token, mend, tokens
from omnizarr.errors import MetadataError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # what ncgen 4.8.1 made of  v:q = "say \"hi\", it's" ;
        (r'{"q": "say \'hi\', it' + "'" + 's"}', {"q": 'say "hi", it\'s'}),
        (r'{"q": "back\\\'slash"}', {"q": 'back\\"slash'}),
        ('{"a": [0.,0.,1.]}', {"a": [0.0, 0.0, 1.0]}),
        ('{"a": [.5, -.5, 1.e3, +1, +2.5, -1.]}', {"a": [0.5, -0.5, 1000.0, 1, 2.5, -1.0]}),
        ('{"a": [1., Infinity, "1."]}', {"a": [1.0, float("inf"), "1."]}),
        # text that is a number or a truth value to C, and control characters: netCDF-C 4.10.1 copies both
        ('{"a": [00, 01., -007, 0x10, -0XfF]}', {"a": [0, 1.0, -7, 16, -255]}),
        ('{"a": [TRUE, False]}', {"a": [True, False]}),
        ('{"a": [inf, -INF, +Infinityf]}', {"a": [float("inf"), float("-inf"), float("inf")]}),
        ('{"a": "\x07\\n\n"}', {"a": "\x07\n\n"}),
    ],
    ids=[
        "quotes",
        "escaped backslash",
        "points last",
        "points first and plus",
        "beside Infinity",
        "zeros first and hexadecimal",
        "truth values",
        "infinities",
        "control characters",
    ],
)
def test_documents_of_old_netcdf_are_read(text, expected):
    assert parse(text.encode()) == expected
    assert notes_of(parse(text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1.}}', '{"a": \'1\'}', '{"a": 1.,}', '{"a": .}', '{"a": +}', '{"a": 1.e}', '{"a": 0x}',
        '{"a": TRUTH}', '{"a": nano}',
        r'{"a": "\x", "b": 1.}',
        '{"a": 1.2.3}', '{"a": --1.}', "1.", '{"a": "\\\'', '{"a": 1., "a": 2}',
    ],
)  # fmt: skip
def test_what_else_is_broken_stays_an_error(text):
    with pytest.raises(MetadataError):
        parse(text.encode())


def test_bare_nan_is_read_in_any_case():
    assert math.isnan(parse(b'{"a": NanF}')["a"])


@pytest.mark.parametrize("spelling", ["1.50", "-1.5e3", "00", "+1", ".5", "0x10", "TRUE", "true", "nan", "NaN", "-0"])
def test_tokens_keep_the_spelling(spelling):
    assert tokens(f'{{"a": {spelling}, "b": [{spelling}, "1"]}}') == {"a": spelling, "b": [spelling, "1"]}


def test_tokens_are_no_strings():
    found = tokens('[1.50, "1.50", null]')
    assert [isinstance(each, Token) for each in found] == [True, False, False]


@pytest.mark.parametrize("text", ['{"a": .}', '{"a": oops}', "[1,]"])
def test_tokens_refuse_what_is_broken(text):
    with pytest.raises(ValueError, match=r"Expecting|Illegal"):
        tokens(text)


def test_errors_speak_of_the_document_as_it_is():
    with pytest.raises(MetadataError, match=r"line 1, column 7"):
        parse(b'{"a": .5, oops}')


def test_valid_documents_have_no_notes():
    assert notes_of(parse(b'{"a": 1.5}')) == ()


ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.recursive(ATOMS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_valid_json_is_left_as_it_is(value):
    text = json.dumps(value, ensure_ascii=False)
    assert mend(text) == (text, ())


def test_a_node_with_such_documents_opens_with_notes(tmp_path):
    omnizarr.create_array(tmp_path, shape=(2,), dtype="i2", zarr_format=2)
    (tmp_path / ".zattrs").write_text(r'{"valid_range": [0.,1.], "comment": "say \'hi\'"}')
    array = omnizarr.open_array(tmp_path, mode="r")
    assert array.attrs.asdict() == {"valid_range": [0.0, 1.0], "comment": 'say "hi"'}
    assert [note.message.partition(":")[0] for note in array.metadata.notes] == [".zattrs is not valid JSON"] * 2


def test_check_says_that_such_documents_are_no_json(tmp_path):
    omnizarr.create_group(tmp_path, zarr_format=2)
    (tmp_path / ".zattrs").write_text('{"scale": 1.}')
    assert any(".zattrs is not valid JSON" in finding.message for finding in omnizarr.check(tmp_path).findings)


def test_changed_attributes_are_written_as_json(tmp_path):
    omnizarr.create_group(tmp_path, zarr_format=2)
    (tmp_path / ".zattrs").write_text('{"scale": 1.}')
    omnizarr.open_group(tmp_path, mode="r+").attrs["offset"] = 2
    assert json.loads((tmp_path / ".zattrs").read_bytes()) == {"scale": 1.0, "offset": 2}


def test_a_document_of_zarr_v3_is_read_so_too(tmp_path):
    (tmp_path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {"a": 1.}}')
    group = omnizarr.open_group(tmp_path, mode="r")
    assert group.attrs["a"] == 1.0
    assert group.metadata.notes
