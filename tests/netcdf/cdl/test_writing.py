"""CDL is printed as ncdump prints it, to the byte; where ncdump is wrong, so that ncgen reads the same dataset."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from omnizarr.errors import ArrayNotFoundError, GroupNotFoundError, SettingError
from omnizarr.netcdf import Attribute, UserType, types
from omnizarr.netcdf.cdl import data
from omnizarr.netcdf.cdl.compiling import parse
from omnizarr.netcdf.cdl.writing import dump
from omnizarr.netcdf.header import DimensionHeader, GroupHeader, Source, VariableHeader

FIXTURES = Path(__file__).parents[1] / "data" / "cdl"
OPTIONS = {
    "": {},
    "s": {"special": True},
    "h": {"header_only": True},
    "p": {"precision": (3, 5)},
    "fc": {"comments": "full"},
    "ff": {"comments": "full", "language": "f"},
    "bc": {"comments": "brief"},
    "bf": {"comments": "brief", "language": "f"},
    "t": {"times": True},
    "i": {"times": "T"},
    "c": {"coordinates_only": True},
    "v": {"variables": ["x", "/model/t", "inner/own"]},
    "g": {"groups": ["inner", "/"]},
    "l40": {"width": 40},
    "l200": {"width": 200},
}
PRINTED = sorted(each.name.removesuffix(".ncdump") for each in FIXTURES.glob("*.ncdump") if "user" not in each.name)


def text_of(name):
    return (FIXTURES / f"{name}.ncdump").read_bytes().decode()


def source_of(root: GroupHeader, values: Mapping[str, np.ndarray] = {}) -> Source:
    return Source(root, lambda name, selection: values[name][(*selection, ...)])


def header(name, nc_type, *dimensions, **rest):
    return VariableHeader(name=name, type=nc_type, dimensions=dimensions, **rest)


def variables(*headers):
    return {each.name: each for each in headers}


def dimensions(unlimited=(), **sizes):
    return {name: DimensionHeader(name, size, name in unlimited) for name, size in sizes.items()}


def printed(source, **options):
    return "".join(dump(source, name="test", **options))


@pytest.mark.parametrize("name", PRINTED)
def test_text_is_that_of_ncdump(name):
    case, _, options = name.partition(".")
    parsed = parse(text_of(f"{case}.s"))  # which tells everything, the format of the file as well
    more = {"variables": ["one", "two", "three", "s"]} if name == "text.fc" else {}
    assert "".join(dump(parsed.source, name=parsed.name, **OPTIONS[options], **more)) == text_of(name)


def test_types_of_programs_are_printed_as_ncdump_prints_them():
    e = UserType(
        "e",
        "enum",
        np.dtype("i8"),
        {
            "a": 1,
            "c2": 2,
            "long_member_name_number_three": 3,
            "long_member_name_number_four": 4,
            "long_member_name_number_five": 5,
        },
        types.INT64,
    )
    e2 = UserType("e2", "enum", np.dtype("i1"), {"x": 1, "y": 2, "z" * 32: 3, "w" * 26: 4}, types.BYTE)
    e3 = UserType("e3", "enum", np.dtype("i1"), {"only": 1}, types.BYTE)
    v = UserType("v", "vlen", np.dtype(object), base=types.INT)
    o = UserType("o", "opaque", np.dtype("V3"))
    q = UserType("q", "compound", np.dtype([("r", "f8"), ("s", "i2", 2)]))
    members = [("t", "S1", 3), ("r", "f8"), ("z", "S1", (2, 2)), ("m", "f4", 2), ("n", q.dtype)]
    p = UserType("p", "compound", np.dtype(members))
    values = {
        "/E": np.array([1, 2]),
        "/V": vlens([1, 2, 3], []),
        "/O": np.array([b"\1\2\3", b"\xca\xfe\0"], "V3"),
        "/P": np.array(
            [
                (list("abc"), 1.5, [["a", "b"], ["c", "d"]], [1, 2], (2.5, [3, 4])),
                (["x", "", ""], 0.1, [["a", ""], ["\1", "d"]], [1, 2], (2.5, [3, 4])),
            ],
            p.dtype,
        ),
        "/g/X": np.array([1, 1], "i1"),
        "/g/Y": np.array(1),
    }
    attributes = {
        "first": Attribute(v, vlens([1, 2, 3], [])),
        "second": Attribute(v, vlens([10, 20, 30, 40, 50], [60, 70, 80, 90], [11, 22], [33, 44, 55, 66, 77, 88])),
        "third": Attribute(q, np.array([(1.5, [1, 2])], q.dtype)),
        "e": Attribute(e, np.array([1, 2])),
        "o": Attribute(o, np.array([b"\1\2\3", b"\xff\xfe\xfd"], "V3")),
    }
    g = GroupHeader(name="g", types={"e3": e3}, variables=variables(header("X", e3, "/n"), header("Y", e)))
    root = GroupHeader(
        dimensions=dimensions(n=2),
        types={each.name: each for each in (e, e2, v, o, q, p)},
        variables=variables(
            header("E", e, "/n", attributes=attributes),
            header("V", v, "/n"),
            header("P", p, "/n"),
            header("O", o, "/n"),
        ),
        groups={"g": g},
    )
    assert "".join(dump(source_of(root, values), name="user_types")) == text_of("user_types")


def vlens(*items):
    array = np.empty(len(items), object)
    array[:] = [np.array(each, "i4") for each in items]
    return array


def test_type_of_another_group_is_called_by_its_full_name():
    flag = UserType("flag", "enum", np.dtype("i1"), {"no": 0}, types.BYTE)
    one = GroupHeader(name="one", types={"flag": flag})
    two = GroupHeader(name="two", variables=variables(header("v", flag)))
    assert "\t/one/flag v ;" in printed(Source(GroupHeader(groups={"one": one, "two": two}), None), header_only=True)


# Where ncdump is wrong


def test_hidden_dimension_is_called_by_the_group_that_defines_it():
    """Ncdump says ``/g/x``, which does not exist."""
    inner = GroupHeader(
        name="h", dimensions=dimensions(x=2), variables=variables(header("v", types.INT, "/x", "/g/h/x"))
    )
    root = GroupHeader(dimensions=dimensions(x=3), groups={"g": GroupHeader(name="g", groups={"h": inner})})
    assert "int v(/x, x) ;" in printed(Source(root, None), header_only=True)


def test_dimension_of_no_group_above_is_called_by_its_full_name():
    one = GroupHeader(name="one", dimensions=dimensions(x=2))
    two = GroupHeader(name="two", variables=variables(header("v", types.INT, "/one/x")))
    root = GroupHeader(groups={"one": one, "two": two})
    assert "int v(/one/x) ;" in printed(Source(root, None), header_only=True)


def test_rows_of_characters_stay_one_string_each():
    """Ncdump splits them behind newlines; ncgen takes each part for a row, and crashes."""
    root = GroupHeader(dimensions=dimensions(n=2, m=3), variables=variables(header("v", types.CHAR, "/n", "/m")))
    values = np.array([[b"a", b"\n", b"b"], [b"c", b"", b""]])
    assert ' v =\n  "a\\nb",\n  "c" ;\n' in printed(source_of(root, {"/v": values}))


def test_special_attribute_of_a_variable_called_like_a_section_is_no_section():
    """Ncdump prints ``data:_Storage``, which ncgen treats as the data section."""
    v = header("data", types.INT, special={"_Storage": Attribute.of("contiguous")})
    assert '\t\tdata :_Storage = "contiguous" ;' in printed(
        Source(GroupHeader(variables=variables(v)), None), special=True, header_only=True
    )


def test_control_characters_in_strings_are_escaped_one_by_one():
    """Ncdump prints a vertical tab as a newline, and nothing behind NUL."""
    root = GroupHeader(variables=variables(header("v", types.STRING)))
    values = np.array("a\vb\0c", object)
    assert ' v = "a\\vb\\000c" ;' in printed(source_of(root, {"/v": values}))


def test_names_of_enum_members_are_escaped_in_data():
    colour = UserType("colour", "enum", np.dtype("u8"), {"light blue": 2**64 - 1}, types.UINT64)
    root = GroupHeader(types={"colour": colour}, variables=variables(header("v", colour)))
    text = printed(source_of(root, {"/v": np.array(2**64 - 1, "u8")}))
    assert "uint64 enum colour {light\\ blue = 18446744073709551615} ;" in text
    assert " v = light\\ blue ;" in text


def test_all_variables_named_as_bounds_show_times():
    """Ncdump forgets all but the last."""
    names = ["a", "b"]
    owners = [
        header(
            n, types.INT, attributes={"units": Attribute.of("days since 2000-1-1"), "bounds": Attribute.of(f"{n}_b")}
        )
        for n in names
    ]
    root = GroupHeader(variables=variables(*owners, *(header(f"{n}_b", types.INT) for n in names)))
    text = printed(source_of(root, {f"/{n}{end}": np.array(1) for n in names for end in ("", "_b")}), times=True)
    assert text.count('= "2000-01-02" ;') == 4


# Corner cases


@pytest.mark.parametrize(
    "units", ["days since", "days since forever", "days since 2000-13-1", "fortnights since 2000-1-1", "m"]
)
def test_units_of_no_time_leave_numbers_unchanged(units):
    root = GroupHeader(variables=variables(header("v", types.INT, attributes={"units": Attribute.of(units)})))
    assert " v = 7 ;" in printed(source_of(root, {"/v": np.array(7, "i4")}), times=True)


def test_time_too_remote_stays_a_number():
    v = header("v", types.DOUBLE, attributes={"units": Attribute.of("years since 2000-1-1")})
    assert " v = 1e+300 ;" in printed(
        source_of(GroupHeader(variables=variables(v)), {"/v": np.array(1e300)}), times=True
    )


def test_bytes_that_are_no_utf8_pass_through():
    root = GroupHeader(attributes={"a": Attribute.of(b"\xff\xc3\xa9")})
    assert printed(Source(root, None)).encode("utf-8", "surrogateescape").count(b':a = "\xff\xc3\xa9" ;') == 1


def test_rounding_is_reported_without_asking_for_special_attributes():
    name = "_QuantizeBitGroomNumberOfSignificantDigits"
    special = {"_Storage": Attribute.of("chunked"), name: Attribute.of(np.int32(3))}
    text = printed(
        Source(GroupHeader(variables=variables(header("v", types.FLOAT, special=special))), None), header_only=True
    )
    assert f"v:{name} = 3 ;" in text
    assert "_Storage" not in text


@pytest.mark.parametrize("most", [1, 7, 64])
@pytest.mark.parametrize("name", ["groups", "records", "text", "types", "wide"])
def test_size_of_blocks_does_not_show(name, most, monkeypatch):
    monkeypatch.setattr(data, "READ_AT_ONCE", most * 8)
    monkeypatch.setattr(data, "_TEXTS_AT_ONCE", max(1, most // 2))
    parsed = parse(text_of(f"{name}.s"))
    assert "".join(dump(parsed.source, name=name)) == text_of(name)


@given(hnp.array_shapes(min_dims=0, max_dims=4, max_side=6), st.integers(1, 40))
def test_blocks_are_small_and_together_all_in_order(shape, most):
    array = np.arange(int(np.prod(shape))).reshape(shape)
    parts = [array[block].ravel() for block in data.blocks(shape, most)]
    assert all(part.size <= most for part in parts)
    assert np.concatenate(parts).tolist() == array.ravel().tolist()


def texts():
    # What netCDF-4 can hold: NUL ends its strings, and in char variables the row.
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


@st.composite
def sources(draw):
    """Return a source of one variable of any atomic type, with an attribute of each."""
    nc_type = draw(st.sampled_from(list(types.TYPES.values())))
    # A row of one character that is NUL prints as "".
    least = 2 if nc_type == types.CHAR else 1
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=least, max_side=5))
    # Nor do NULs at the end of strings tell how long an unlimited dimension is.
    unlimited = draw(st.sets(st.sampled_from(range(3)))) if nc_type != types.CHAR else ()
    sizes = {f"d{n}": DimensionHeader(f"d{n}", size, n in unlimited) for n, size in enumerate(shape)}
    elements = texts() if nc_type == types.STRING else None
    attributes = {"text": Attribute.of(draw(texts()).rstrip("\0"))}
    for name, each in types.TYPES.items():
        if each != types.CHAR:
            items = texts() if each == types.STRING else None
            attributes[name] = Attribute(each, draw(hnp.arrays(each.dtype, st.integers(1, 9), elements=items)))
    values = draw(hnp.arrays(nc_type.dtype, shape, elements=elements))
    v = header("v", nc_type, *(f"/{name}" for name in sizes), attributes=attributes)
    return source_of(GroupHeader(dimensions=sizes, variables={"v": v}), {"/v": values})


@settings(deadline=None, max_examples=25)
@given(sources())
def test_what_is_read_back_is_printed_the_same(source):
    text = printed(source, special=True)
    parsed = parse(text)
    again = printed(parsed.source, special=True)
    assert again == text
    # Nothing but digits was lost.
    before, after = (each.root.variables["v"] for each in (source, parsed.source))
    exact = [name for name in before.attributes if name not in {"float", "double"}]
    assert {name: after.attributes[name] for name in exact} == {name: before.attributes[name] for name in exact}
    if before.type.dtype.kind != "f":
        whole = tuple(slice(0, each.size) for each in source.root.dimensions.values())
        assert parsed.source.read("/v", whole).tolist() == source.read("/v", whole).tolist()


def test_variable_is_found_by_its_full_name_in_the_root_as_well():
    root = GroupHeader(variables=variables(header("v", types.INT), header("w", types.INT)))
    text = printed(source_of(root, {"/v": np.array(1), "/w": np.array(2)}), variables=["/v"])
    assert " v = 1 ;" in text
    assert " w = " not in text


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"variables": ["nothing"]}, ArrayNotFoundError),
        ({"variables": ["/g/v"]}, ArrayNotFoundError),
        ({"groups": ["nothing"]}, GroupNotFoundError),
        ({"width": 9}, SettingError),
        ({"precision": (0, 1)}, SettingError),
        ({"precision": (7, 21)}, SettingError),
    ],
)
def test_options_without_sense_are_an_error_before_anything_is_printed(options, error):
    with pytest.raises(error):
        dump(Source(GroupHeader(variables=variables(header("v", types.INT))), None), name="test", **options)
