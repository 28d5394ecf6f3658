"""CDL in, a dataset out: the same as ncgen makes, or an error that says where."""

import io
import json
import math
import threading
from pathlib import Path

import numpy as np
import pytest

from omnizarr.errors import MetadataError, NotRepresentableError
from omnizarr.netcdf import Attribute, types
from omnizarr.netcdf.cdl import writing
from omnizarr.netcdf.cdl.compiling import PRIMITIVES, load, parse
from omnizarr.netcdf.header import GroupHeader, Source

DATA = Path(__file__).parents[1] / "data" / "cdl_in"
NAMES = sorted(each.stem for each in DATA.glob("*.cdl"))


def compiled(name: str) -> tuple[Source, dict]:
    return load(DATA / f"{name}.cdl").source, json.loads((DATA / f"{name}.json").read_text("utf-8"))


def everything(source: Source, path: str) -> np.ndarray:
    sizes = {full: each.size for full, each in source.root.sizes().items()}
    return source.read(path, tuple(slice(0, sizes[each]) for each in variable(source, path).dimensions))


def variable(source: Source, path: str):
    group, _, name = path.rpartition("/")
    return dict(source.root.walk())[group].variables[name]


def values(body: str, *, of_type: str = "int", dims: str = "n", sizes: str = "n = 4") -> list:
    """Return the values of the variable x with this data."""
    declared = f"{of_type} x({dims})" if dims else f"{of_type} x"
    dimensions = f"dimensions: {sizes} ;" if sizes else ""
    source = parse(f"netcdf t {{ {dimensions} variables: {declared} ; data: x = {body} ; }}").source
    return everything(source, "/x").tolist()


def attribute(written: str, owner: str = "") -> Attribute:
    """Return the attribute a, global or of a variable x of type short."""
    root = parse(f"netcdf t {{ variables: short x ; {written} ; }}").source.root
    return root.variables[owner].attributes["a"] if owner else root.attributes["a"]


def names_of(root: GroupHeader) -> list[str]:
    return [f"{path}/{name}" for path, group in root.walk() for name in group.variables]


@pytest.mark.parametrize("name", NAMES)
def test_dimensions_are_those_of_ncgen(name):
    source, expected = compiled(name)
    found = {full: [each.size, each.unlimited] for full, each in source.root.sizes().items()}
    assert found == expected["dimensions"]


@pytest.mark.parametrize("name", NAMES)
def test_groups_and_variables_are_those_of_ncgen_in_order(name):
    source, expected = compiled(name)
    assert [path for path, _ in source.root.walk() if path] == expected["groups"]
    assert names_of(source.root) == list(expected["variables"])
    for path, each in expected["variables"].items():
        assert variable(source, path).type.name == each["type"]
        assert list(variable(source, path).dimensions) == each["dimensions"]


@pytest.mark.parametrize("name", NAMES)
def test_data_are_those_of_ncgen(name):
    source, expected = compiled(name)
    for path, each in expected["variables"].items():
        found = everything(source, path)
        assert found.dtype == types.TYPES[each["type"]].dtype
        if found.dtype == "S1":
            assert found.tobytes().decode("latin-1") == "".join(each["data"])
        else:
            assert repr(found.ravel().tolist()) == repr(each["data"])


@pytest.mark.parametrize("name", NAMES)
def test_attributes_are_those_of_ncgen(name):
    source, expected = compiled(name)
    for path, attributes in expected["attributes"].items():
        owner = variable(source, path) if path in expected["variables"] else dict(source.root.walk())[path]
        assert sorted(owner.attributes) == sorted(attributes)
        for key, (type_name, value) in attributes.items():
            found = owner.attributes[key]
            assert found.type.name == type_name, key
            if found.type is types.CHAR:
                # A file cannot hold no characters at all: ncgen writes a zero byte there.
                assert found.value.encode("utf-8", "surrogateescape").decode("latin-1").rstrip("\0") == value, key
            else:
                assert repr(found.value.tolist()) == repr(value), key


def test_user_types_are_those_of_ncgen():
    source, expected = compiled("types")
    found = {f"{path}/{name}": each for path, group in source.root.walk() for name, each in group.types.items()}
    assert sorted(found) == sorted(expected["types"])
    for path, each in expected["types"].items():
        user_type = found[path]
        assert user_type.kind == each["kind"]
        if each["kind"] != "vlen":
            assert user_type.dtype.itemsize == each["size"]
        if each["kind"] == "enum":
            assert user_type.members == each["members"]
        if each["kind"] == "compound":
            assert {key: user_type.dtype.fields[key][1] for key in user_type.dtype.names} == each["offsets"]


def test_special_attributes_are_shown_as_ncdump_shows_them():
    source, expected = compiled("special")
    shown = []
    for name, each in [("", source.root), *source.root.variables.items()]:
        for key, found in each.special.items():
            value = f'"{found.value}"' if isinstance(found.value, str) else ", ".join(map(str, found.value))
            shown.append(f"{name}:{key} = {value} ;")
    assert len(shown) == 12
    # ncdump says deflate its own way, where it was asked for as a filter
    assert set(shown) - set(expected["special"]) == {'filtered:_Filter = "1,5" ;'}
    assert "filtered:_DeflateLevel = 5 ;" in expected["special"]


def test_special_attributes_stand_in_the_order_of_ncdump():
    source, _ = compiled("special")
    assert list(source.root.variables["packed"].special) == [
        "_Storage", "_ChunkSizes", "_Shuffle", "_DeflateLevel", "_Fletcher32",
    ]  # fmt: skip


# What ncgen of netCDF-C 4.10.2-development gets wrong, and what the language says. In a comment what ncgen does.
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (r':a = "x\x41y"', Attribute(types.CHAR, "xAy")),  # the byte 255
        (r":a = '\x41'", Attribute(types.BYTE, np.array([0x41], "i1"))),  # -38
        (":a = 18446744073709551615", Attribute(types.UINT64, np.array([2**64 - 1], "u8"))),  # int -1
        (":a = 9223372036854775808", Attribute(types.UINT64, np.array([2**63], "u8"))),  # int64 -9223372036854775808
        (":a = -1b, 1s", Attribute(types.SHORT, np.array([-1, 1], "i2"))),  # 255, 1
        (":a = 0x10, 0x20", Attribute(types.INT, np.array([16, 32], "i4"))),  # an error
        (":a = 2f", Attribute(types.FLOAT, np.array([2], "f4"))),  # an error
        ("int :a =", Attribute(types.INT, np.array([], "i4"))),  # an error
    ],
)
def test_attributes_that_ncgen_mistakes(written, expected):
    assert attribute(written) == expected


def test_ragged_characters_stay_in_their_rows():  # ncgen: "abab", "cd"
    assert values('{"ab"}, {"abcd"}', of_type="char", dims="n, u", sizes="n = 2 ; u = unlimited") == [
        [b"a", b"b", b"", b""], [b"a", b"b", b"c", b"d"],
    ]  # fmt: skip


def test_a_short_string_makes_a_record():  # ncgen: crashes
    found = values('"ab", "c"', of_type="char", dims="t, n", sizes="n = 3 ; t = unlimited")
    assert found == [[b"a", b"b", b""], [b"c", b"", b""]]


def test_a_string_between_characters_is_kept():  # ncgen: loses it
    found = values("""'a', "b", 'c'""", of_type="char", dims="n, m", sizes="n = 3 ; m = 2")
    assert found == [[b"a", b""], [b"b", b""], [b"c", b""]]


def test_a_fill_mark_before_characters_is_a_character():  # ncgen: drops it
    assert values("_, 'b'", of_type="char", sizes="n = 3") == [b"", b"b", b""]


def test_a_dimension_of_zero_is_not_unlimited():  # ncgen: unlimited
    dimension = parse("netcdf t { dimensions: n = 0 ; }").source.root.dimensions["n"]
    assert (dimension.size, dimension.unlimited) == (0, False)


def test_a_dimension_is_as_long_as_an_int64():  # ncgen: an error from 2^32 on
    assert parse("netcdf t { dimensions: n = 5000000000 ; }").source.root.dimensions["n"].size == 5_000_000_000


def test_words_of_the_language_can_be_names():  # ncgen: an error
    source = parse("netcdf t { dimensions: string = 2 ; variables: int unlimited(string), enum_, NaN ; }").source
    assert names_of(source.root) == ["/unlimited", "/enum_", "/NaN"]


def test_a_fill_value_of_the_dataset_is_an_attribute():  # ncgen: an error
    root = parse("netcdf t { :_FillValue = 1 ; }").source.root
    assert root.attributes["_FillValue"] == Attribute(types.INT, np.array([1], "i4"))


def test_nil_is_no_text():
    assert values('NIL, "a"', of_type="string", sizes="n = 2") == ["", "a"]


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_each_primitive_type_has_its_default_fill_value(name):
    source = parse(f"netcdf t {{ variables: {name} x ; }}").source
    assert source.root.variables["x"].type is PRIMITIVES[name]
    assert source.read("/x", ()) == PRIMITIVES[name].default_fill


def test_scalars_are_of_no_dimension():
    found = parse('netcdf t { variables: string x ; data: x = "a" ; }').source.read("/x", ())
    assert found.shape == ()
    assert found.item() == "a"


def test_a_selection_is_a_part_of_the_data():
    source, _ = compiled("unlimited")
    whole = everything(source, "/e")
    assert np.array_equal(source.read("/e", (slice(1, 3), slice(0, 1), slice(1, 2))), whole[1:3, :1, 1:2])


def test_what_is_read_is_a_copy():
    source = parse("netcdf t { dimensions: n = 2 ; variables: int x(n) ; data: x = 1, 2 ; }").source
    source.read("/x", (slice(0, 2),))[:] = 0
    assert source.read("/x", (slice(0, 2),)).tolist() == [1, 2]


def test_elements_without_data_take_no_memory():
    source = parse("netcdf t { dimensions: n = 4000000000 ; m = 1000000000 ; variables: int x(n, m) ; data: x = 7 ; }")
    assert source.source.read("/x", (slice(0, 2), slice(0, 2))).tolist() == [[7, -2147483647], [-2147483647] * 2]


def test_numbers_that_only_a_string_of_text_can_be_are_text():
    assert attribute("string :a = 5, 1.25, 'c'").value.tolist() == ["5", "1.25", "c"]


@pytest.mark.parametrize(
    ("of_type", "written", "expected"),
    [
        ("int", "1.9, -1.9, 2s, 'a'", [1, -1, 2, 97]),
        ("double", "010, 0x10, 1b, 1e-05", [8.0, 16.0, 1.0, 1e-05]),
        ("double", "1, 010, 0.5, 00", [1.0, 8.0, 0.5, 0.0]),
        ("byte", "200, '\\377', 255b, -1", [-56, -1, -1, -1]),
        ("ubyte", "128b, 255b, 0xaf, 200s", [128, 255, 175, 200]),
        ("short", "128b, 65535s, 0xabcdS, -5b", [128, -1, -21555, -5]),
        ("ushort", "65535s, 0xabcdS, 128b, 1", [65535, 43981, 128, 1]),
        ("int", "65535s, 4294967295L, 0xabcdabcL, 1", [65535, -1, 180148924, 1]),
        ("uint", "4294967295L, 65535s, 0xffffffff, 1", [4294967295, 65535, 4294967295, 1]),
        ("int64", "-200000000000L, 51200000000L, 4294967295L, 1", [-200000000000, 51200000000, 4294967295, 1]),
        ("uint64", "51200000000L, 0xabcdabcdabcdabcdL, 1b, 2", [51200000000, 0xABCDABCDABCDABCD, 1, 2]),
        ("float", "NaN, -Infinityf, 1.1, _", [math.nan, -math.inf, float(np.float32(1.1)), 9.969209968386869e36]),
        ("uint64", "18446744073709551615, 0, _, 1", [2**64 - 1, 0, 2**64 - 2, 1]),
    ],
)
def test_values_become_the_type_of_the_variable(of_type, written, expected):
    assert repr(values(written, of_type=of_type)) == repr(expected)


TIMES = [
    ("days since 2000-1-1", "standard", [0, 1, 59, 366, -1, 0.5, 0.25, 1.0000001]),
    ("days since 1582-10-4", "standard", [0, 1, 2, -300, 5000]),
    ("days since 2000-1-1", "noleap", [59, 365]),
    ("days since 2000-1-1", "360_day", [29, 59, 360, -1]),
    ("days since 2000-1-1", "366_day", [365, 366]),
    ("hours since 1970-1-1 12:00", "gregorian", [0, 1, -13, 1e6]),
    ("minutes since 2000-1-1", "standard", [1, 61, 1500]),
    ("seconds since 1970-1-1", "proleptic_gregorian", [1, 3600, 1e9, 0.25]),
    ("weeks since 2000-1-1", "julian", [1, 52]),
    ("months since 2000-1-1", "standard", [0, 1, 13]),
    ("years since 2000-1-1", "standard", [0, 7]),
]


@pytest.mark.parametrize("separator", [True, "T"])
@pytest.mark.parametrize(("units", "calendar", "numbers"), TIMES, ids=lambda each: each if type(each) is str else "")
def test_dates_that_are_printed_are_the_numbers_again(units, calendar, numbers, separator):
    listed = ", ".join(map(str, numbers))
    head = f'netcdf t {{ dimensions: n = {len(numbers)} ; variables: double x(n) ; x:units = "{units}" ;'
    first = parse(f'{head} x:calendar = "{calendar}" ; data: x = {listed} ; }}')
    printed = "".join(writing.dump(first.source, name="t", times=separator))
    assert printed.count('"') == 4 + 2 * len(numbers)
    np.testing.assert_allclose(everything(parse(printed).source, "/x"), numbers, rtol=0, atol=1e-9)


def test_dates_stand_in_bounds_and_integers_too():
    source = parse("""netcdf t { dimensions: n = 2 ; variables: int x(n) ; int x_bnds(n) ;
        x:units = "days since 2000-1-1" ; x:bounds = "x_bnds" ;
        data: x = "2000-01-02", _ ; x_bnds = 5, "2000-03-01" ; }""").source
    assert everything(source, "/x").tolist() == [1, -2147483647]
    assert everything(source, "/x_bnds").tolist() == [5, 60]


@pytest.mark.parametrize("date", ["2000-01-01 12", "2000-02-30", "2000-1-2", "tomorrow", "2000-01-01x", ""])
def test_what_is_no_date_of_the_variable_is_an_error(date):
    with pytest.raises(MetadataError, match="line 1, column 88: not the date of a number"):
        parse(f'netcdf t {{ variables: int x ; x:units = "days since 2000-1-1" ; data:              x = "{date}" ; }}')


@pytest.mark.parametrize("listed", ["1, 2, _, 4", "1,2 ,_\n,\t4", "1, 2, _, 4s", "1, // one, two\n2, _, /* _ */ 4"])
def test_short_and_long_ways_through_a_list_agree(listed):
    assert values(listed) == [1, 2, -2147483647, 4]


@pytest.mark.parametrize(
    "listed", ["_ _", "1+ _", "_ -1", "1 _", "1_0", "_1", "1 2", ",1", "1,,2", "1,", ".", "+", "1 f"]
)
@pytest.mark.parametrize("of_type", ["int", "double", "float", "uint64"])
def test_what_is_no_list_of_numbers_is_none_on_the_short_way(of_type, listed):
    with pytest.raises(MetadataError):
        values(listed, of_type=of_type)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "line 1, column 1", "not CDL"),
        ("netcdf", "line 1, column 1", "not CDL"),
        ("netcdf t", "line 1, column 9", "the end of the text"),
        ("netcdf t { } }", "line 1, column 14", "found }"),
        ("netcdf t {\n dimensions: n = -1 ; }", "line 2, column 18", "out of range"),
        ("netcdf t { dimensions: n = 2 ; n = 3 ; }", "line 1, column 32", "taken"),
        ("netcdf t { dimensions: n = 1.5 ; }", "line 1, column 29", "expected"),
        ("netcdf t { dimensions: n = 99999999999999999999 ; }", "line 1, column 28", "out of range"),
        ("netcdf t { dimensions: n = 08 ; }", "line 1, column 28", "octal"),
        ("netcdf t { variables: int x(n) ; }", "line 1, column 29", "a dimension that does not exist"),
        ("netcdf t { variables: int x, x ; }", "line 1, column 30", "taken"),
        ("netcdf t { variables: number x ; }", "line 1, column 23", "a type that does not exist"),
        ("netcdf t { variables: int x ; group: x { } }", "line 1, column 38", "taken"),
        ("netcdf t { variables: int x ; y:a = 1 ; }", "line 1, column 31", "a variable that does not exist"),
        ("netcdf t { data: x = 1 ; }", "line 1, column 18", "a variable that does not exist"),
        ("netcdf t { group: g { data: /h/x = 1 ; } }", "line 1, column 29", "a group that does not exist"),
        ('netcdf t { :a = "m"\n :b = 1 ; }', "line 2, column 2", "semicolon"),
        ('netcdf t { :a = "m ;\n }', "line 1, column 17", "text that nothing closes"),
        ("netcdf t { :a = 1", "line 1, column 18", "semicolon"),
        ("netcdf t { :a = 1 }", "line 1, column 19", "semicolon"),
        ("netcdf t { :a = _ ; }", "line 1, column 17", "fill mark"),
        ('netcdf t { :a = 1, "b" ; }', "line 1, column 20", "no type in common"),
        ("netcdf t { :a = 1,, 2 ; }", "line 1, column 19", "a value is missing"),
        ("netcdf t { :a = 1, ; }", "line 1, column 18", "a value is missing"),
        ("netcdf t { :a = 1 2 ; }", "line 1, column 19", "a comma or a semicolon is missing"),
        ("netcdf t { :a = 1x ; }", "line 1, column 18", "suffix"),
        ("netcdf t { :a = -1u ; }", "line 1, column 17", "out of range"),
        ("netcdf t { :a = 256ub ; }", "line 1, column 17", "out of range"),
        ("netcdf t { :a = 300b ; }", "line 1, column 17", "out of range"),
        ("netcdf t { :a = 18446744073709551616 ; }", "line 1, column 17", "out of range"),
        ("netcdf t { :a = 1e400 ; }", "line 1, column 17", "out of range"),
        ("netcdf t { float :a = 1e39 ; }", "line 1, column 23", "out of range"),
        ("netcdf t { short :a = 1, NaN ; }", "line 1, column 26", "out of range"),
        ("netcdf t { :a = 3000000000, 1 ; }", "line 1, column 17", "out of range"),
        ('netcdf t { int :a = "1" ; }', "line 1, column 21", "text where a number is wanted"),
        ("netcdf t { char :a = 65 ; }", "line 1, column 22", "not text"),
        ("netcdf t { char :a = NIL ; }", "line 1, column 22", "not text"),
        ("netcdf t { int :a = NIL ; }", "line 1, column 21", "number is wanted"),
        ("netcdf t { :a = yes ; }", "line 1, column 17", "not a value"),
        (r'netcdf t { :a = "x\9" , "\08" ; }', "line 1, column 26", "escape"),
        (r'netcdf t { :a = "\777" ; }', "line 1, column 18", "escape"),
        (r"netcdf t { :a = '\777' ; }", "line 1, column 17", "not one byte"),
        ("netcdf t { :a = 'é' ; }", "line 1, column 17", "not one byte"),
        ("netcdf t { :a = {1} ; }", "line 1, column 17", "not a value"),
        ('netcdf t { :_Format = "netCDF-9" ; }', "line 1, column 21", "netCDF-4"),
        ('netcdf t { :_Storage = "chunked" ; }', "line 1, column 13", "wrong place"),
        ("netcdf t { variables: int x ; x:_Storage = 5 ; }", "line 1, column 44", "not text"),
        ('netcdf t { variables: int x ; x:_Storage = "huge" ; }', "line 1, column 42", "contiguous"),
        ("netcdf t { variables: int x ; x:_Shuffle = 2 ; }", "line 1, column 42", "true"),
        ("netcdf t { variables: int x ; x:_ChunkSizes = 2 ; }", "line 1, column 45", "0 positive numbers"),
        ("netcdf t { variables: int x ; x:_DeflateLevel = 2, 3 ; }", "line 1, column 47", "one whole number"),
        ("netcdf t { variables: int x ; x:_FillValue = 2, 3 ; }", "line 1, column 44", "one value"),
        ('netcdf t { variables: char x ; x:_FillValue = "ab" ; }', "line 1, column 45", "one value"),
        ("netcdf t { variables: int x ; data: x = 1 ; x = 2 ; }", "line 1, column 45", "data already"),
        ("netcdf t { variables: int x ; data: x = 1, 2 ; }", "line 1, column 40", "found 2 values, expected at most 1"),
        ("netcdf t { variables: byte x ; data: x = 256 ; }", "line 1, column 42", "out of range"),
        ("netcdf t { variables: ubyte x ; data: x = -5b ; }", "line 1, column 43", "out of range"),
        ("netcdf t { variables: uint64 x ; data: x = -1 ; }", "line 1, column 44", "out of range"),
        ("netcdf t { variables: int x ; data: x = 5000000000L ; }", "line 1, column 41", "out of range"),
        ("netcdf t { variables: int x ; data: x = 0b101 ; }", "line 1, column 42", "suffix"),
        ("netcdf t { variables: int x ; data: x = 1_000 ; }", "line 1, column 42", "suffix"),
        ("netcdf t { variables: int x ; data: x = {1} ; }", "line 1, column 41", "braces where none belong"),
        ("netcdf t { variables: int x ; data: x = {1 ; }", "line 1, column 41", "without its partner"),
        ("netcdf t { variables: int x ; data: x = 1 } }", "line 1, column 43", "without its partner"),
        ('netcdf t { variables: char x ; data: x = "ab" ; }', "line 1, column 41", "found 2 values"),
        (
            "netcdf t { dimensions: n = 2 ; u = unlimited ; variables: int x(n, u) ; data: x = 1, 2 ; }",
            "line 1, column 83",
            "needs its values in braces",
        ),
        (
            "netcdf t { dimensions: n = 2 ; u = unlimited ; variables: int x(n, u) ; data: x = {1}, {2}, {3} ; }",
            "line 1, column 82",
            "found 3 values",
        ),
        ("netcdf t { types: byte enum e { a = 200 } ; }", "line 1, column 37", "out of range"),
        ("netcdf t { types: float enum e { a = 2 } ; }", "line 1, column 19", "not a base of an enum"),
        ("netcdf t { types: compound c { int a, a ; } ; }", "line 1, column 39", "taken"),
        ("netcdf t { types: compound c { int a(0) ; } ; }", "line 1, column 38", "out of range"),
        ("netcdf t { types: opaque(0) o ; }", "line 1, column 26", "out of range"),
        ("netcdf t { types: nothing(*) o ; }", "line 1, column 19", "a type that does not exist"),
        ("netcdf t { :" + "n" * 257 + " = 1 ; }", "line 1, column 13", "not a name"),
        ("netcdf t { :a\\  = 1 ; }", "line 1, column 13", "not a name"),
        ("netcdf t { :a\udcff = 1 ; }", "line 1, column 13", "not a name"),
        ("netcdf t { :a\\1b = 1 ; }", "line 1, column 14", "not CDL"),
        ("netcdf t { /* ", "line 1, column 12", "not CDL"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(text, place, message):
    with pytest.raises(MetadataError) as caught:
        parse(text)
    assert place in str(caught.value)
    assert message in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "text",
    [
        "netcdf t { variables: int x ; data: x = " + "{" * 100_000,
        "netcdf t { variables: int x ; data: x = " + "{" * 100_000 + "}" * 100_000 + " ; }",
        "netcdf t { " + "group: g { " * 50_000,
        "netcdf t { " + "group: g { " * 20_000 + "}" * 20_001,
        'netcdf t { :a = "' + "\\n" * 100_000,
        "netcdf t { :a = " + '"a",' * 50_000 + "}",
        "netcdf t { :a = " + "/" * 100_000,
        "netcdf t { :a = " + "1" * 100_000 + " ; }",
        "netcdf t { /*" + "*" * 100_000,
        "netcdf t { :" + "\\ " * 100_000,
        "netcdf " * 100_000,
        "netcdf t { :a = '" + "\\" * 100_000,
    ],
    ids=lambda text: f"{text[:30]}...{text[-8:]}",
)
def test_hostile_text_is_refused_without_ado(text):
    with pytest.raises(MetadataError):
        parse(text)


@pytest.mark.parametrize(
    "kind", ["byte enum mine { a = 1 }", "opaque(3) mine", "int(*) mine", "compound mine { int a ; }"]
)
def test_values_of_user_types_are_not_representable(kind):
    for use in ("variables: mine x ;", "variables: int x ; mine x:a = 1 ;", "variables: int x ; mine :a = 1 ;"):
        with pytest.raises(NotRepresentableError, match="'mine'"):
            parse(f"netcdf t {{ types: {kind} ; {use} }}")


def test_types_are_found_in_outer_groups_and_elsewhere():
    text = "netcdf t { group: g { types: opaque(2) o ; } group: h { types: o(*) v ; /g/o(*) w ; } }"
    assert sorted(parse(text).source.root.groups["h"].types) == ["v", "w"]


def test_chunk_sizes_make_storage_chunked_and_later_storage_wins():
    written = "dimensions: n = 4 ; variables: int x(n) ; int y(n) ; x:_ChunkSizes = 2 ; y:_ChunkSizes = 2 ; "
    root = parse(f'netcdf t {{ {written} y:_Storage = "contiguous" ; }}').source.root
    assert root.variables["x"].special["_Storage"] == Attribute(types.CHAR, "chunked")
    assert list(root.variables["y"].special) == ["_Storage"]


def test_quantization_is_a_special_attribute():
    key = "_QuantizeBitGroomNumberOfSignificantDigits"
    root = parse(f"netcdf t {{ variables: float x ; x:{key} = 3 ; }}").source.root
    assert root.variables["x"].special == {key: Attribute(types.INT, np.array([3], "i4"))}


@pytest.mark.parametrize(
    ("head", "name"),
    [("netcdf foo {", "foo"), ("NETCDF a-b.c/d {", "a-b.c/d"), ("netcdf {", ""), (r"netcdf a\ b {", "a b")],
)
def test_the_name_is_what_stands_before_the_brace(head, name):
    assert parse(f"{head} }}").name == name


def test_names_are_in_normal_form_c():
    root = parse("netcdf t { dimensions: e\u0301 = 2 ; variables: int x(\u00e9) ; }").source.root
    assert root.variables["x"].dimensions == ("/\u00e9",)


def test_an_attribute_that_is_given_twice_has_the_last_value():
    assert attribute(":a = 1 ; :a = 2").value.tolist() == [2]


def test_files_may_begin_with_a_byte_order_mark(tmp_path):
    file = tmp_path / "x.cdl"
    file.write_bytes('\ufeffnetcdf t { :a = "é" ; }'.encode())
    for given in (file, str(file), io.BytesIO(file.read_bytes()), io.StringIO(file.read_text("utf-8"))):
        assert load(given).source.root.attributes["a"].value == "é"


def test_bytes_that_are_no_utf_8_are_kept_in_text():
    found = load(io.BytesIO(b'netcdf t { :a = "\xff\xe9" ; }')).source.root.attributes["a"].value
    assert found.encode("utf-8", "surrogateescape") == b"\xff\xe9"


def test_an_error_in_a_file_names_the_file(tmp_path):
    (tmp_path / "broken.cdl").write_text("netcdf t {")
    with pytest.raises(MetadataError, match=r"broken\.cdl: line 1, column 11"):
        load(tmp_path / "broken.cdl")


def test_text_that_is_no_unicode_is_refused():
    with pytest.raises(MetadataError, match="UTF-8"):
        parse("netcdf t { :a = '\ud800' ; }")


def test_a_million_numbers_need_no_million_nodes():
    numbers = np.arange(1_000_000) * 0.001
    listed = ", ".join(map(repr, numbers.tolist()))
    source = parse(f"netcdf t {{ dimensions: n = 1000000 ; variables: double x(n) ; data: x = {listed} ; }}").source
    assert np.array_equal(everything(source, "/x"), numbers)


def test_threads_share_the_parser():
    found = []
    threads = [threading.Thread(target=lambda n=n: found.append(values(f"{n}", sizes="n = 1"))) for n in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found) == [[n] for n in range(8)]
