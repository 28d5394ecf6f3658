"""netCDF-C's own reference datasets, read and printed: the same CDL as it has in its tests.

Where a reference shows a habit of netCDF-C that the specification contradicts, the reference is changed here, in sight.
"""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from omnizarr.errors import ChunkSizeError, ValueTypeError
from omnizarr.netcdf import Dataset, copying
from omnizarr.netcdf.cdl import compiling, writing

REFERENCE = Path(__file__).parent / "data" / "reference"
ANONYMOUS = ("_Anonymous_Dim_", "_Anonymous_Dimension_")  # netCDF-C's habit, and the name in the specification
PLATFORM = (":_NCProperties", ":_IsNetcdf4", ":_SuperblockVersion", ":_Endianness")  # what its scripts strip with sed


def unpacked(folder, archive, within):
    with zipfile.ZipFile(REFERENCE / archive) as source:
        source.extractall(folder)
    return folder / within


def dumped(url, name, **options):
    with Dataset(url) as dataset:
        return "".join(writing.dump(dataset.as_source(), name=name, **options))


def words(text, without=()):
    """Return lines as ``diff -bw`` compares them."""
    return [
        "".join(line.split())
        for line in text.splitlines()
        if line.strip() and not any(each in line for each in without)
    ]


# Script, dataset, mode, options of ncdump: as in the scripts
CASES = [
    (
        "ref_power_901_constants_orig.zip",
        "ref_power_901_constants",
        "zarr,file",
        "ref_power_901_constants",
        {"header_only": True},
    ),
    ("ref_quotes_orig.zip", "ref_quotes", "zarr,file", "ref_quotes", {"header_only": True}),
    ("ref_oldkeys.file.zip", "ref_oldkeys.file", "nczarr,file", "ref_oldkeys", {}),
    ("ref_oldformat.zip", "ref_oldformat", "nczarr,file", "ref_oldformat", {}),
]


@pytest.mark.parametrize(("archive", "within", "mode", "name", "options"), CASES, ids=[each[3] for each in CASES])
def test_the_dump_is_the_reference(tmp_path, archive, within, mode, name, options):
    place = unpacked(tmp_path, archive, within)
    assert dumped(f"file://{place}#mode={mode}", name, **options) == (REFERENCE / f"{name}.cdl").read_text()


def test_netcdf_c_4_8_0_is_read_as_it_was_meant(tmp_path):
    place = unpacked(tmp_path, "ref_oldformat_4.8.0.zip", "oldformat.file")
    assert dumped(place, "ref_oldformat") == (REFERENCE / "ref_oldformat_4.8.0.cdl").read_text()


def test_a_zip_is_read_as_its_folder_is():
    dump = dumped(f"file://{REFERENCE / 'ref_quotes_orig.zip'}#mode=zarr,zip", "ref_quotes", header_only=True)
    assert dump == (REFERENCE / "ref_quotes.cdl").read_text()


def test_a_zip_with_a_group_at_its_top_is_no_folder():
    # netCDF-C takes the folder for the root, although the archive has a group of its own above it.
    archive = REFERENCE / "ref_power_901_constants_orig.zip"
    with Dataset(f"file://{archive}#mode=zarr,zip") as dataset:
        assert list(dataset.groups) == ["ref_power_901_constants"]


def test_anonymous_dimensions_are_named_as_specified(tmp_path):
    place = unpacked(tmp_path, "ref_byte.zarr.zip", "ref_byte.zarr")
    found = words(dumped(f"file://{place}#mode=zarr,file", "ref_byte", special=True), PLATFORM)
    assert found == words((REFERENCE / "ref_byte.cdl").read_text().replace(*ANONYMOUS))


def test_no_fill_value_is_no_fill(tmp_path):
    # Its dimensions have the names of anonymous ones in _ARRAY_DIMENSIONS.
    place = unpacked(tmp_path, "ref_byte_fill_value_null.zarr.zip", "ref_byte_fill_value_null.zarr")
    found = words(dumped(f"file://{place}#mode=zarr,file", "ref_byte_fill_value_null", special=True), PLATFORM)
    assert found == words((REFERENCE / "ref_byte_fill_value_null.cdl").read_text())


def test_blosc_of_the_reference_is_read(tmp_path):
    place = unpacked(tmp_path, "ref_data.zarr.zip", "ref_data.zarr")
    with Dataset(f"file://{place}#mode=zarr,file") as dataset:
        np.testing.assert_array_equal(dataset["data"][:], np.arange(10))  # dtype, shape and bytes are in the fixture


def test_a_scalar_over_six_values_is_an_error_and_hides_nothing_else(tmp_path):
    place = unpacked(tmp_path, "ref_noshape.file.zip", "ref_noshape.file")
    with Dataset(f"file://{place}#mode=zarr,file") as dataset:
        assert list(dataset.variables) == ["v"]
        with pytest.raises(ChunkSizeError):
            dataset["v"][...]


# CDL that its scripts compile, and what they then print

COMPILED = [
    # CDL, mode written, mode read, name, reference
    ("ref_purezarr_base.cdl", "zarr,noxarray,file", "zarr,noxarray,file", "tmp_purezarr", "ref_purezarr.cdl"),
    ("ref_purezarr_base.cdl", "zarr,file", "zarr,file", "tmp_purezarr_xarray", "ref_purezarr_xarray.cdl"),
    ("ref_scalar.cdl", "nczarr,file", "nczarr,file", "ref_scalar", "ref_scalar_nczarr.cdl"),
    ("ref_scalar.cdl", "zarr,file", "zarr,file", "ref_scalar", "ref_scalar.cdl"),
    ("ref_xarrayanon.cdl", "zarr,noxarray,file", "zarr,noxarray,file", "tmp_xarrayanon", "ref_xarrayanon.cdl"),
    ("ref_xarraygroup.cdl", "nczarr,file", "nczarr,file", "tmp_xarraygroup", "ref_xarraygroup.cdl"),
    ("ref_jsonconvention.cdl", "nczarr,file", "nczarr,file", "tmp_jsonconvention", "ref_jsonconvention.cdl"),
    ("ref_nulls.cdl", "nczarr,file", "nczarr,file", "ref_nulls", "ref_nulls_nczarr.baseline"),
    ("ref_whole.cdl", "nczarr,noxarray,file", "zarr,file", "nczarr2zarr", "ref_nczarr2zarr.cdl"),
]


@pytest.mark.parametrize(
    ("cdl", "written", "read", "name", "reference"), COMPILED, ids=[f"{each[0]} {each[1]}" for each in COMPILED]
)
def test_compiled_and_printed_it_is_the_reference(tmp_path, cdl, written, read, name, reference):
    place = tmp_path / "made"
    parsed = compiling.load(REFERENCE / cdl)
    with Dataset(f"file://{place}#mode={written}", "w") as dataset:
        copying.write(dataset, parsed.source)
    found = dumped(f"file://{place}#mode={read}", name)
    assert words(found) == words((REFERENCE / reference).read_text().replace(*ANONYMOUS))


def test_netcdf_c_cuts_strings_where_omnizarr_refuses(tmp_path):
    text = (REFERENCE / "ref_string.cdl").read_text()
    with (
        Dataset(f"file://{tmp_path}/a#mode=nczarr,file", "w") as dataset,
        pytest.raises(ValueTypeError, match="/truncated"),
    ):
        copying.write(dataset, compiling.parse(text).source)
    with Dataset(f"file://{tmp_path}/b#mode=nczarr,file", "w") as dataset:
        copying.write(dataset, compiling.parse(text.replace("0123456789", "0123")).source)
    dump = dumped(f"file://{tmp_path}/b#mode=nczarr,file", "ref_string")
    assert words(dump) == words((REFERENCE / "ref_string_nczarr.baseline").read_text())
