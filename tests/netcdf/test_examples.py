"""The examples of the specification, run with omnizarr's commands, and their results read by netCDF-C.

Spec: NCZarr, "Examples"; what stands there of S3 is parsed, as no server is here.
"""

import subprocess
import sys

import numpy as np
import pytest

from omnizarr.netcdf import urls

CDL = """netcdf dataset {
dimensions:
	time = UNLIMITED ; // (2 currently)
	x = 3 ;
variables:
	short level(time, x) ;
		level:units = "m" ;
data:

 level =
  1, 2, 3,
  4, 5, 6 ;
}
"""


def omnizarr(*arguments):
    """Run a command as in a shell; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "omnizarr", *arguments], capture_output=True, encoding="utf-8", check=False
    )
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.fixture
def cdl(tmp_path):
    path = tmp_path / "dataset.cdl"
    path.write_text(CDL)
    return str(path)


def test_example_1_creates_a_directory_tree(cdl, tmp_path, newest):
    url = f"file://{tmp_path}/dataset.file#mode=nczarr,file"
    omnizarr("gen", "-4", "-lb", "-o", url, cdl)
    found = newest.read(url)
    np.testing.assert_array_equal(found.data["/level"], [[1, 2, 3], [4, 5, 6]])
    assert found.root.dimensions["time"].unlimited


def test_example_2_prints_a_zip(cdl, tmp_path):
    url = f"file://{tmp_path}/dataset.zip#mode=nczarr,zip"
    omnizarr("gen", "-4", "-lb", "-o", url, cdl)
    assert omnizarr("dump", url) == CDL


US_WEST = "https://s3.us-west-1.amazonaws.com/datasetbucket"
S3 = [
    # The URL (in the fourth, the specification's "uswest-1" and its open quote corrected), and what it says
    ("s3://s3.us-west-1.amazonaws.com/datasetbucket", US_WEST, None),
    ("s3://s3.us-west-1.amazonaws.com/datasetbucket#mode=zarr", US_WEST, "zarr"),
    (
        "s3://datasetbucket/rootkey#mode=nczarr&awsprofile=unidata",
        "https://s3.amazonaws.com/datasetbucket/rootkey",
        "nczarr",
    ),
    (  # with the backslash before the hash, which a shell does not take away within quotes
        r"s3://datasetbucket/rootkey\#mode=nczarr&awsprofile=unidata",
        "https://s3.amazonaws.com/datasetbucket/rootkey",
        "nczarr",
    ),
]


@pytest.mark.parametrize(("url", "place", "mode"), S3, ids=["3", "4", "5", "5 with a backslash"])
def test_examples_3_to_5_name_a_bucket(url, place, mode):
    location = urls.parse(url)
    assert (location.place, location.mode) == (place, mode)
    assert ("unidata" in location.options.values()) == ("awsprofile=unidata" in url)
