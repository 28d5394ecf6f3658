"""What is printed as CDL, compiled and printed again is the same text: of any dataset, in memory and as NCZarr."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnizarr import netcdf
from omnizarr.netcdf import copying, types
from omnizarr.netcdf.cdl import compiling, writing
from omnizarr.netcdf.cdl.lines import escaped_name
from tests.netcdf import generated

LAYOUTS = {"D": 2, "pure": 2, "v3": 3}


def printed(source, **options):
    return "".join(writing.dump(source, name="x", **options))


def keeps_its_length(made):
    """Whether CDL tells how long unlimited dimensions are: of characters, NULs at the end go, in ncdump too.

    Rows of one character are not told apart either: an empty text is none of them.
    """
    sizes = made.root.sizes()
    variables = [each for _, group in made.root.walk() for each in group.variables.values()]
    characters = [[sizes[name] for name in each.dimensions] for each in variables if each.type is types.CHAR]
    return not any(
        found and (found[-1].unlimited or (found[-1].size == 1 and any(each.unlimited for each in found)))
        for found in characters
    )


@settings(max_examples=60, deadline=None)
@given(made=generated.datasets().filter(keeps_its_length), special=st.booleans())
def test_text_is_compiled_to_what_prints_it(made, special):
    # Of special attributes, compiling adds those that follow from others: _Storage from _ChunkSizes.
    text = printed(compiling.parse(printed(made.source(), special=special)).source, special=special)
    assert printed(compiling.parse(text).source, special=special) == text
    if not special:
        assert text == printed(made.source())


@settings(max_examples=30, deadline=None)
@given(made=generated.datasets().filter(keeps_its_length), layout=st.sampled_from(sorted(LAYOUTS)))
def test_dataset_of_the_text_prints_it(made, layout):
    texts = []
    source = made.source()
    for _ in range(2):
        with netcdf.Dataset({}, "w", layout=layout.removeprefix("v3") or None, zarr_format=LAYOUTS[layout]) as dataset:
            copying.write(dataset, source)
            texts.append(printed(dataset.as_source(), special=True))
        source = compiling.parse(texts[-1]).source
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["5%", "a%09b", "%", "a b", "a.b@c+d-e", "größe", "~#!"])
def test_name_is_read_back(name):
    if name[0] in "%~":
        name = f"_{name}"
    root = compiling.parse(f"netcdf x {{ variables: int {escaped_name(name)} ; }}").source.root
    assert list(root.variables) == [name]


def test_percent_sign_in_a_name_is_escaped_as_ncgen_reads_it():
    # ncgen 4.10.2-development: "int a\%b ;" makes the variable a%b, "int a%b ;" is a syntax error.
    assert escaped_name("a%b") == r"a\%b"


def test_nuls_at_the_end_of_a_row_are_there_if_something_else_is_filled_in():
    # ncgen 4.10.2-development: of char x(3) with the fill value "0", data "a" is "a00".
    head = 'netcdf x { dimensions: n = 3 ; variables: char x(n) ; x:_FillValue = "0" ; data: x = '
    source = compiling.parse(f'{head}"a\\000\\000" ; }}').source
    assert 'x = "a\\000\\000" ;' in printed(source)
    assert 'x = "a00" ;' in printed(compiling.parse(f'{head}"a" ; }}').source)
