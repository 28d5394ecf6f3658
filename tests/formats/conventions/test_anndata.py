"""AnnData's elements are recognised, and what they refer to is checked. (`test_matrix` converts them.)"""

import pytest

import omnizarr
from omnizarr.formats.conventions import Nodes, faults, followed
from omnizarr.model import GroupMetadata


def group(**attributes):
    return GroupMetadata(
        dialect="v3", attributes={name.replace("_", "-", 1): each for name, each in attributes.items()}
    )


def codes(nodes):
    return [(fault.code, fault.found) for fault in faults("", Nodes(nodes))]


CATEGORICAL = group(encoding_type="categorical", encoding_version="0.2.0")
MATRIX = group(encoding_type="csr_matrix", encoding_version="0.1.0")


def test_element_is_recognised_by_type_and_version():
    nodes = Nodes({"": CATEGORICAL, "other": group(encoding_type="utf8")})
    assert [convention.name for convention in followed("", nodes)] == ["anndata"]
    assert list(followed("other", nodes)) == []


@pytest.mark.parametrize(
    ("element", "there", "missing"),
    [
        (CATEGORICAL, ["codes", "categories"], []),
        (CATEGORICAL, ["codes"], ["categories"]),
        (MATRIX, ["data", "indptr"], ["indices"]),
        (group(encoding_type="nullable-integer", encoding_version="0.1.0"), ["values"], ["mask"]),
        (group(encoding_type="array", encoding_version="0.2.0"), [], []),
    ],
)
def test_parts_that_are_missing_are_faults(element, there, missing):
    nodes = {"": element, **dict.fromkeys(there, group())}
    assert codes(nodes) == [("anndata-missing-node", name) for name in missing]


def test_columns_of_a_dataframe_that_are_missing_are_faults():
    attributes = {
        "encoding-type": "dataframe",
        "encoding-version": "0.2.0",
        "column-order": ["kind", "n"],
        "_index": "_index",
    }
    frame = GroupMetadata(dialect="v3", attributes=attributes)
    assert codes({"": frame, "kind": group()}) == [("anndata-missing-node", "n"), ("anndata-missing-node", "_index")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_check_finds_nothing_in_what_anndata_writes(tmp_path, zarr_format):
    writers = pytest.importorskip("tests.formats.conventions.writers")
    writer = next(each for each in writers.WRITERS if (each.program, each.zarr_format) == ("anndata", zarr_format))
    writer.write(tmp_path / "a.zarr")
    found = {finding.code for finding in omnizarr.check(tmp_path / "a.zarr")}
    assert not found & {"anndata-missing-node", "coordinate-length", "mask-unreadable"}


@pytest.mark.parametrize("target", [2, 3])
@pytest.mark.filterwarnings("ignore")  # of anndata, about Zarr v2 and nullable strings
def test_nullable_columns_stay_what_anndata_reads(target, tmp_path):
    """Missing values of AnnData are in a mask beside the values, whatever the format."""
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    pandas = pytest.importorskip("pandas", reason="anndata needs pandas")
    zarr = pytest.importorskip("zarr", reason="anndata writes with it")
    columns = {
        "integer": pandas.array([2**62 + 1, None, 3], dtype="Int64"),
        "boolean": pandas.array([True, None, False], dtype="boolean"),
        "text": pandas.array(["a", None, "c"], dtype="string"),
    }
    stored, other = tmp_path / "a.zarr", tmp_path / "b.zarr"
    source = zarr.open_group(stored, mode="w")
    with anndata.settings.override(allow_write_nullable_strings=True):
        anndata.io.write_elem(source, "obs", pandas.DataFrame(columns, index=["r1", "r2", "r3"]))
    assert omnizarr.convert(stored, other, zarr_format=target, strict=True).is_lossless
    assert omnizarr.diff(stored, other).equal
    kinds = {path: node.attrs.get("encoding-type") for path, node in omnizarr.open_group(other)["obs"].members()}
    assert [kinds[name] for name in columns] == ["nullable-integer", "nullable-boolean", "nullable-string-array"]
    read = zarr.open_group(other, mode="r")
    pandas.testing.assert_frame_equal(
        anndata.io.read_elem(read["obs"]), anndata.io.read_elem(source["obs"]), check_column_type=False
    )
