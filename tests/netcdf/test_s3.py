"""Datasets in S3: the URLs of netCDF-C, on servers that speak S3."""

import subprocess
import sys

import numpy as np
import obstore
import pytest
import zarr
from obstore.store import S3Store

from omnizarr import netcdf
from omnizarr.errors import NodeNotFoundError, StoreAccessError
from tests.servers import s3_client

CDL = """netcdf dataset {
dimensions:
    time = UNLIMITED ; // (3 currently)
    x = 4 ;
variables:
    float temp(time, x) ;
        temp:units = "K" ;
        temp:_FillValue = -1.f ;
data:
    temp = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 ;
}
"""
TEMP = np.arange(1, 13, dtype="f4").reshape(3, 4)


def spelled(place, fragment):
    """Return the URLs by which netCDF-C can be told of a dataset on this server."""
    host = place.endpoint.removeprefix("http://")
    return {
        "http": f"http://{host}/{place.name}/data.zarr#{fragment}",
        "escaped": f"http://{host}/{place.name}/data.zarr\\#{fragment}",
    }


def write(url, options):
    with netcdf.Dataset(url, "w", storage_options=options) as dataset:
        dataset.createDimension("time", None)
        dataset.createDimension("x", 4)
        temp = dataset.createVariable("temp", "f4", ("time", "x"), fill_value=-1)
        temp.units = "K"
        temp[0:3] = TEMP


@pytest.mark.parametrize("style", ["http", "escaped"])
@pytest.mark.parametrize("mode", ["mode=nczarr,s3", "mode=zarr,s3", "mode=nczarr,s3,v3"])
def test_dataset_is_written_and_read_by_its_url(s3_server, mode, style):
    place = s3_server.fresh()
    url = spelled(place, mode)[style]
    write(url, place.options)
    with netcdf.Dataset(url, storage_options=place.options) as dataset:
        np.testing.assert_array_equal(dataset["temp"][:], TEMP)
        assert dataset["temp"].units == "K"
        assert dataset.dimensions["x"].size == 4
    # Another program finds the same elements below the same key.
    store = S3Store(
        place.name,
        **{name: value for name, value in place.options.items() if name != "allow_http"},
        client_options={"allow_http": True},
        prefix="data.zarr",
    )
    keys = {each["path"] for page in obstore.list(store) for each in page}
    assert keys
    theirs = zarr.open_array(zarr.storage.ObjectStore(store, read_only=True), path="temp", mode="r")
    np.testing.assert_array_equal(theirs[:], TEMP)


def test_datasets_opened_one_after_the_other_grow_by_a_row_each(s3_server):
    place = s3_server.fresh()
    url = spelled(place, "mode=nczarr,s3")["http"]
    write(url, place.options)
    for row in range(3, 6):
        with netcdf.Dataset(url, "a", storage_options=place.options) as dataset:
            dataset["temp"][row] = np.full(4, row)
    with netcdf.Dataset(url, storage_options=place.options) as dataset:
        assert len(dataset.dimensions["time"]) == 6
        np.testing.assert_array_equal(dataset["temp"][3:], np.arange(3, 6)[:, None] * np.ones(4))


def test_dataset_that_is_missing_is_not_found(s3_server):
    place = s3_server.fresh()
    with pytest.raises(NodeNotFoundError):
        netcdf.Dataset(spelled(place, "mode=nczarr,s3")["http"], storage_options=place.options)


def test_wrong_secret_is_refused_without_being_shown(s3_server):
    place = s3_server.fresh()
    options = {**place.options, "secret_access_key": "not-the-secret"}
    with pytest.raises(StoreAccessError) as caught:
        netcdf.Dataset(spelled(place, "mode=nczarr,s3")["http"], storage_options=options)
    assert "not-the-secret" not in str(caught.value)


# -- the commands of the specification -------------------------------------------------------


@pytest.fixture
def amazon(moto_server, monkeypatch, tmp_path):
    """Let the names of Amazon's servers mean this one, and give it the bucket of the specification's examples."""
    place = moto_server.fresh()
    profile = tmp_path / "credentials"
    profile.write_text("[unidata]\naws_access_key_id = unidata\naws_secret_access_key = secret\nregion = us-east-1\n")
    monkeypatch.setenv("AWS_ENDPOINT_URL", place.endpoint)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profile))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    with s3_client(place.endpoint) as client:
        client.create_bucket(Bucket="datasetbucket")
        yield monkeypatch
        for each in client.list_objects_v2(Bucket="datasetbucket").get("Contents", ()):
            client.delete_object(Bucket="datasetbucket", Key=each["Key"])
        client.delete_bucket(Bucket="datasetbucket")


def generate(url, tmp_path):
    source = tmp_path / "dataset.cdl"
    source.write_text(CDL)
    done = subprocess.run(
        [sys.executable, "-m", "omnizarr", "gen", "-4", "-o", url, str(source)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with netcdf.Dataset(url) as dataset:
        np.testing.assert_array_equal(dataset["temp"][:], TEMP)
        return dataset.layout


def test_command_makes_a_dataset_in_s3(amazon, tmp_path):
    amazon.setenv("AWS_ACCESS_KEY_ID", "someone")
    amazon.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert generate("s3://s3.us-west-1.amazonaws.com/datasetbucket", tmp_path) == "D"


def test_command_makes_a_dataset_of_pure_zarr_in_s3(amazon, tmp_path):
    amazon.setenv("AWS_ACCESS_KEY_ID", "someone")
    amazon.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert generate(r"s3://s3.us-west-1.amazonaws.com/datasetbucket\#mode=zarr", tmp_path) == "pure"


def test_command_makes_a_dataset_in_s3_with_a_profile(amazon, tmp_path):
    assert generate(r"s3://datasetbucket/rootkey\#mode=nczarr&awsprofile=unidata", tmp_path) == "D"
