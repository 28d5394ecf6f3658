"""A real server: addresses, many clients at once, and clients of other programs."""

import http.client
import json
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr import serve
from omnizarr.errors import ServerError
from omnizarr.netcdf import Dataset
from omnizarr.storage import LocalStore, MemoryStore
from omnizarr.stores import resolve
from omnizarr.web.application import application
from omnizarr.web.keys import Keys
from omnizarr.web.serving import listening, running, url_of
from tests.traced import own_threads
from tests.web.client import ask

ZARRITA = Path(__file__).parents[2] / "viewer" / "node_modules" / "zarrita"
LISTING = """
const [zarr, url] = [await import(process.argv[2]), process.argv[3]];
const store = await zarr.withConsolidatedMetadata(new zarr.FetchStore(url));
const temp = await zarr.open(zarr.root(store).resolve("ocean/temp"), { kind: "array" });
const { data } = await zarr.get(temp, [1, null]);
console.log(JSON.stringify([store.contents(), [...data]]));
"""
"""What prints the nodes that zarrita.js finds, and a row of an array."""

VALUES = np.arange(40_000, dtype="<i4").reshape(200, 200)


def place(directory, zarr_format):
    """Return a directory with ``temp`` of any format, chunked and compressed."""
    if zarr_format == "nczarr":
        with Dataset(directory, "w") as dataset:
            dataset.createDimension("y", 200)
            dataset.createDimension("x", 200)
            dataset.createVariable("temp", "i4", ("y", "x"), zlib=True, chunksizes=(50, 50))[:] = VALUES
        return directory
    if zarr_format != 1:
        omnizarr.create_group(directory, zarr_format=zarr_format)
    omnizarr.create_array(directory, name="temp", data=VALUES, chunks=(50, 50), zarr_format=zarr_format)
    return directory


@pytest.fixture(params=[1, 2, "3-draft2019", "3-draft2020", 3, "nczarr"], scope="module")
def url(request, tmp_path_factory):
    with running(application(place(tmp_path_factory.mktemp("served") / "x.zarr", request.param))) as url:
        yield url


def test_omnizarr_reads_what_it_serves(url):
    array = omnizarr.open_array(f"{url}/temp")
    assert array.metadata.zarr_format == 3
    np.testing.assert_array_equal(array[...], VALUES)
    np.testing.assert_array_equal(array[::7, 13], VALUES[::7, 13])


def test_zarr_python_reads_what_is_served(url):
    zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")
    pytest.importorskip("aiohttp", reason="fsspec needs it for HTTP")
    array = zarr.open_array(f"{url}/temp", mode="r", zarr_format=3)
    np.testing.assert_array_equal(array[...], VALUES)


def test_tensorstore_reads_what_is_served(url):
    tensorstore = pytest.importorskip("tensorstore", reason="TensorStore is not installed")
    spec = {"driver": "zarr3", "kvstore": {"driver": "http", "base_url": url, "path": "/temp/"}}
    np.testing.assert_array_equal(tensorstore.open(spec, open=True).result().read().result(), VALUES)


@pytest.fixture(params=[(1, 3), (2, 2), (3, 3), ("3-draft2020", 2)], ids=str, scope="module")
def listed(request, tmp_path_factory):
    """Return the URL of ``ocean/temp`` and ``ocean/x`` in a format, seen in another, without consolidated metadata."""
    source_format, seen_format = request.param
    place = tmp_path_factory.mktemp("listed") / "x.zarr"
    if source_format != 1:
        omnizarr.create_group(place, zarr_format=source_format).create_group("empty")
    for name, values, names in (("temp", VALUES[:3, :4], ["y", "x"]), ("x", np.arange(4) * 10, ["x"])):
        named = {"dimension_names": names} if source_format == 3 else {}
        attributes = {"_ARRAY_DIMENSIONS": names}
        keywords = {"data": values, "attributes": attributes, "zarr_format": source_format, **named}
        omnizarr.create_array(place, name=f"ocean/{name}", **keywords)
    with running(application(place, zarr_format=seen_format)) as url:
        yield url


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_zarr_python_finds_what_is_in_groups(listed):
    zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")
    pytest.importorskip("aiohttp", reason="fsspec needs it for HTTP")
    group = zarr.open_group(listed, mode="r")
    found = {path: node.shape for path, node in group.members(max_depth=None) if isinstance(node, zarr.Array)}
    assert found == {"ocean/temp": (3, 4), "ocean/x": (4,)}
    assert not [node for path, node in group.members() if path == "empty" and list(node.members())]
    assert sorted(name for name, _ in zarr.open_group(f"{listed}/ocean", mode="r").members()) == ["temp", "x"]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_xarray_opens_what_is_served(listed):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("aiohttp", reason="fsspec needs it for HTTP")
    for dataset in (xarray.open_zarr(listed, group="ocean", chunks=None), xarray.open_zarr(f"{listed}/ocean")):
        np.testing.assert_array_equal(dataset["temp"].sel(x=20), VALUES[:3, 2])


def test_zarrita_finds_what_is_served(listed, tmp_path):
    if shutil.which("node") is None or not ZARRITA.exists():
        pytest.skip("zarrita.js is not installed: make page")
    script = tmp_path / "listing.mjs"
    script.write_text(LISTING)
    module = (ZARRITA / json.loads((ZARRITA / "package.json").read_text())["main"]).as_uri()
    done = subprocess.run(
        ["node", str(script), module, listed], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    contents, row = json.loads(done.stdout)
    arrays = sorted(node["path"] for node in contents if node["kind"] == "array")
    assert (arrays, row) == (["/ocean/temp", "/ocean/x"], VALUES[1, :4].tolist())


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_served_copies_are_those_that_zarr_python_makes(listed):
    zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")
    pytest.importorskip("aiohttp", reason="fsspec needs it for HTTP")
    served = zarr.open_group(listed, mode="r")
    copy = MemoryStore()
    omnizarr.convert(listed, copy, zarr_format=served.metadata.zarr_format, verify=False)
    to_zarr_python = pytest.importorskip("omnizarr.interop.zarr_python").to_zarr_python
    theirs = zarr.consolidate_metadata(to_zarr_python(copy))
    assert served.metadata.consolidated_metadata.to_dict() == theirs.metadata.consolidated_metadata.to_dict()


def test_shards_are_read_in_parts(tmp_path):
    omnizarr.create_array(tmp_path / "x.zarr", data=VALUES, shards=(100, 100), chunks=(10, 10))
    with running(application(tmp_path / "x.zarr")) as url:
        np.testing.assert_array_equal(omnizarr.open_array(url)[55:65, 8:12], VALUES[55:65, 8:12])


def test_many_clients_at_once_get_what_they_ask_for(tmp_path):
    store = LocalStore(place(tmp_path / "x.zarr", 2))
    expected = {f"temp/{y}.{x}": bytes(store.get(f"temp/{y}.{x}")) for y in range(4) for x in range(4)}

    def wrong(number):
        """Return the keys whose values a client did not get."""
        with closing(http.client.HTTPConnection(address, timeout=60)) as connection:
            return [key for key in list(expected)[number % 4 :] if answer(connection, key) != (200, expected[key])]

    with running(Keys(store)) as url, ThreadPoolExecutor(16) as pool:
        address = url.removeprefix("http://")
        assert list(pool.map(wrong, range(48))) == [[]] * 48


def answer(connection, key):
    connection.request("GET", f"/{key}")
    with connection.getresponse() as found:
        return found.status, found.read()


def test_a_large_value_arrives_whole(tmp_path):
    value = np.random.default_rng(1).bytes(20_000_000)
    LocalStore(tmp_path).set("a", value)
    with running(Keys(LocalStore(tmp_path))) as url, closing(http.client.HTTPConnection(url[7:], timeout=60)) as asked:
        asked.request("GET", "/a")
        with asked.getresponse() as answer:
            assert answer.read() == value


def test_values_of_another_server_are_passed_on():
    pytest.importorskip("obstore", reason="the extra cloud is not installed")
    body = bytes(range(256))
    with running(Keys(MemoryStore({"a/c/0": body, "zarr.json": b"{}"}))) as url, resolve(url)[0] as source:
        app = Keys(source)
        whole = ask(app, "/a/c/0")
        assert (whole.status, whole.body) == (200, body)
        assert ask(app, "/a/c/0", If_None_Match=whole.fields["etag"]).status == 304
        part = ask(app, "/a/c/0", Range="bytes=-3", If_Range=whole.fields["etag"])
        assert (part.status, part.body, part.fields["content-range"]) == (206, body[-3:], "bytes 253-255/256")
        assert ask(app, "/a/c/0", "HEAD").fields["content-length"] == "256"
        assert ask(app, "/a/c/1").status == 404
        assert ask(app, "/../zarr.json").status == 404


def test_the_server_is_gone_after_the_block():
    with running(Keys(MemoryStore({"a": b"1"}))) as url:
        pass
    with pytest.raises(ConnectionRefusedError), closing(http.client.HTTPConnection(url[7:], timeout=60)) as connection:
        connection.request("GET", "/a")


def test_an_error_in_the_block_ends_the_server():
    before = own_threads()
    with pytest.raises(KeyError), running(Keys(MemoryStore())):
        raise KeyError
    assert own_threads() <= before


def test_a_port_that_is_taken_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ServerError, match=f"port {port} of 127.0.0.1 is taken.*port=0"):
            listening("127.0.0.1", port)


@pytest.mark.parametrize("host", ["203.0.113.1", "no such host"])
def test_an_address_of_others_is_reported(host):
    with pytest.raises(ServerError, match="no address of this machine"):
        listening(host, 0)


def test_urls_are_those_of_this_machine():
    for host in ("127.0.0.1", "0.0.0.0", "localhost"):
        with listening(host, 0) as listener:
            assert url_of(listener).startswith(("http://127.0.0.1:", "http://[::1]:"))


def test_an_address_that_others_reach_wants_a_token_or_a_word():
    with pytest.raises(ValueError, match="public=True"):
        serve({}, host="0.0.0.0")
