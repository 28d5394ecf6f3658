"""JSON that is none, as netCDF-C wrote it."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr.errors import MetadataError
from omnizarr.formats.documents import notes_of, parse, render
from omnizarr.formats.documents import tokens as tokens_of
from omnizarr.formats.lenient import Token, adapted, mend, tokens


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


def test_errors_speak_of_the_document_unchanged():
    with pytest.raises(MetadataError, match=r"line 1, column 7"):
        parse(b'{"a": .5, oops}')


def test_valid_documents_have_no_notes():
    assert notes_of(parse(b'{"a": 1.5}')) == ()


ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.recursive(ATOMS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_valid_json_is_left_unchanged(value):
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


# -- JSON that is not Zarr -----------------------------------------------------------------------

DIGIT = {"zarr_format": 2, "shape": [2], "dtype": ">S1", "chunks": [2], "fill_value": 1, "order": "C",
         "compressor": None, "filters": None}  # fmt: skip


def test_a_digit_of_netcdf_c_fills_char(tmp_path):
    (tmp_path / ".zarray").write_text(json.dumps(DIGIT))
    array = omnizarr.open_array(tmp_path, mode="r")
    assert (array.fill_value, array[0]) == (b"1", b"1")
    assert any("netCDF-C" in note.message for note in array.metadata.notes)


def test_a_digit_in_consolidated_metadata_fills_char(tmp_path):
    group = {"zarr_format": 2}
    document = {"zarr_consolidated_format": 1, "metadata": {".zgroup": group, "v/.zarray": DIGIT}}
    (tmp_path / ".zgroup").write_text(json.dumps(group))
    (tmp_path / ".zmetadata").write_text(json.dumps(document))
    assert omnizarr.open_group(tmp_path, mode="r")["v"].fill_value == b"1"


@pytest.mark.parametrize("change", [{"fill_value": 10}, {"fill_value": -1}, {"fill_value": 1.5}, {"dtype": "|S2"}])
def test_other_numbers_that_fill_bytes_stay_errors(tmp_path, change):
    (tmp_path / ".zarray").write_text(json.dumps({**DIGIT, **change}))
    with pytest.raises(MetadataError):
        omnizarr.open_array(tmp_path, mode="r")


@pytest.mark.parametrize(
    "document",
    [
        {"dtype": ">S1", "fill_value": ""},
        {"dtype": ">S1", "fill_value": 0},
        {"dtype": [["a", ">S1"]], "fill_value": 1},
        {"_nczarr_array": [], "zarr_format": 3, "node_type": "array", "attributes": 1},
        {
            "zarr_format": 3,
            "node_type": "array",
            "attributes": {"_nczarr_array": {"type_alias": "char"}},
            "fill_value": 1,
        },
        {"zarr_format": 3, "node_type": "group", "kind": "inline", "metadata": [], "attributes": {"_nczarr_group": 1}},
        {"zarr_format": 3, "node_type": "group", "must_understand": True, "attributes": {"_nczarr_group": 1}},
    ],
)
def test_documents_that_are_zarr_are_left_unchanged(document):
    parsed = parse(json.dumps(document).encode())
    assert (parsed, parsed.notes) == (document, ())


ODD_MEMBERS = st.dictionaries(
    st.sampled_from(
        [
            "dtype",
            "fill_value",
            "zarr_format",
            "node_type",
            "kind",
            "metadata",
            "attributes",
            "shape",
            "chunk_grid",
            "_nczarr_array",
            "type_alias",
            "data_type",
            "must_understand",
            "zarr_consolidated_format",
            "zarr.json",
        ]
    ),
    st.sampled_from([">S1", 1, 3, "", "false", "char", "r8", "r99", "uint8", "\ud800", None, [], [1], {}]),
)


@given(ODD_MEMBERS, ODD_MEMBERS, ODD_MEMBERS)
def test_no_document_whatever_fails_to_be_adapted(outer, inner, innermost):
    kinds = {"zarr_format": 3, "node_type": "array", "attributes": {"_nczarr_array": innermost}}
    for document in (
        outer,
        {**outer, **kinds},
        {**kinds, "kind": "inline", "metadata": {"zarr.json": inner, "a/zarr.json": {**inner, **kinds}, "b": outer}},
        {"zarr_consolidated_format": 1, "metadata": {"a": inner, "b": 1}},
    ):
        assert isinstance(adapted(document), dict)


# What netCDF-C 4.9.0 and 4.10.1 left in a directory after they had changed what omnizarr wrote.
WRITTEN_OVER = [
    (b'{"title": "changed", "number": 0.5}0.5\n}', {"title": "changed", "number": 0.5}),
    (b'{"zarr_format": 2}: 2\n}', {"zarr_format": 2}),
    (b'{"a": 1., "_nczarr_attr": {"types": {}}}, "x"]}', {"a": 1.0, "_nczarr_attr": {"types": {}}}),
    ('{"a": "Größe", "_NCProperties": "x"} "netcdf\n"}'.encode(), {"a": "Größe", "_NCProperties": "x"}),
]


@pytest.mark.parametrize(("data", "expected"), WRITTEN_OVER)
def test_the_end_of_a_longer_document_is_left_out_with_a_note(data, expected):
    document = parse(data)
    assert document == expected
    assert any("the end of a longer document" in note.message for note in notes_of(document))
    assert parse(render(document)) == expected
    assert set(tokens_of(data)) == set(expected)


@pytest.mark.parametrize(
    "data", [b'{"a": 1}}', b'{"a": 1}{"b": 2}', b'{\n"zarr_format": 2}}', b"[1]\n}", b'{"zarr_format": 2}x']
)
def test_other_things_behind_a_document_stay_an_error(data):
    with pytest.raises(MetadataError, match="Extra data"):
        parse(data)
