"""The command line over HTTP, where nothing can be listed, and over S3: what it shows, and in how many requests."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr import netcdf
from omnizarr.stores import resolve
from tests import servers


def fill(place, zarr_format, *, consolidated=True, arrays=2, **options):
    """Make a hierarchy: a group with one array, and others beside it."""
    root = omnizarr.create_group(place, zarr_format=zarr_format, **options)
    temp = root.create_array("ocean/temp", shape=(4, 6), chunks=(2, 3), dtype="float32", fill_value=0)
    temp[:2] = 1
    temp.attrs["units"] = "K"
    for number in range(arrays - 1):
        root.create_array(f"x{number}", data=np.arange(6, dtype="int16"), chunks=2)
    if consolidated:
        omnizarr.consolidate_metadata(root.store_path)


@pytest.fixture
def web(http_server):
    return http_server.fresh()


# -- HTTP: what is shown


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_members_are_those_of_consolidated_metadata(web, run, zarr_format):
    fill(web.directory / "x.zarr", zarr_format)
    url = f"{web.url}/x.zarr"
    code, out, err = run("ls", "-r", url)
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == ["/", "/ocean", "/ocean/temp", "/x0"]
    code, out, _ = run("tree", url)
    assert code == 0
    assert "temp (4, 6) float32" in out
    code, out, _ = run("info", url)
    assert code == 0
    assert "consolidated (not compared)" in out
    assert "the server cannot list what is stored; members as consolidated metadata names them" in out
    assert "stored: unknown, of 4 chunks · 96 B logical" in out
    code, out, _ = run("info", f"{url}/ocean/temp")
    assert code == 0
    assert re.search(r"stored +unknown, of 4 chunks\n", out)
    assert run("get", f"{url}/ocean/temp", "0, :2", "--csv")[:2] == (0, "1.0\n1.0\n")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_group_inside_a_consolidated_hierarchy_has_its_members(web, run, zarr_format):
    fill(web.directory / "x.zarr", zarr_format)
    code, out, _ = run("ls", f"{web.url}/x.zarr/ocean")
    assert (code, out.split()) == (0, ["temp", "Array", "{4,", "6}", "float32"])


def test_members_are_those_that_nczarr_names(web, run):
    with netcdf.Dataset(str(web.directory / "x.zarr"), "w") as ds:
        ds.createDimension("x", 3)
        ds.createVariable("level", "i2", ("x",))[:] = [1, 2, 3]
        ds.createGroup("deep").createVariable("salt", "f4", ("x",))[:] = 1
    url = f"{web.url}/x.zarr"
    code, out, _ = run("ls", "-r", url)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["/", "/deep", "/deep/salt", "/level"]
    code, out, _ = run("info", url)
    assert code == 0
    assert "members as NCZarr names them" in out
    assert run("dump", "-h", url)[0] == 0


def test_members_are_those_that_ome_zarr_names(web, run):
    root = omnizarr.create_group(web.directory / "x.zarr", zarr_format=2)
    root.attrs["multiscales"] = [{"version": "0.4", "datasets": [{"path": "0"}, {"path": "s/1"}]}]
    root.create_array("0", data=np.zeros((4, 4)))
    root.create_array("s/1", data=np.zeros((2, 2)))
    labels = root.create_group("labels")
    labels.attrs["labels"] = ["cells"]
    labels.create_group("cells").attrs["multiscales"] = [{"datasets": [{"path": "0"}]}]
    labels["cells"].create_array("0", data=np.zeros((4, 4), "int8"))
    code, out, _ = run("ls", "-r", f"{web.url}/x.zarr")
    assert code == 0
    names = ["/", "/0", "/labels", "/labels/cells", "/labels/cells/0", "/s", "/s/1"]
    assert [line.split()[0] for line in out.splitlines()] == names
    assert "members as OME-Zarr names them, there may be others" in run("info", f"{web.url}/x.zarr")[1]


@pytest.mark.parametrize("command", ["ls", "tree", "info"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_members_that_nothing_names_are_stated_to_be_unknown_with_what_to_do(web, run, command, zarr_format):
    fill(web.directory / "x.zarr", zarr_format, consolidated=False)
    code, out, err = run(command, f"{web.url}/x.zarr")
    assert code == 1
    assert len(err.splitlines()) == 1
    assert "the members of the group are not known: the server cannot list them; give the path of an array" in err
    assert "unreadable" not in out


@pytest.mark.parametrize("command", ["ls", "tree", "info", "check"])
def test_bare_array(web, run, command):
    omnizarr.create_array(web.directory / "a.zarr", data=np.arange(6), chunks=2)
    code, out, err = run(command, f"{web.url}/a.zarr")
    assert (code, err) == (0, "")
    assert out


def test_paths_inside_references_and_archives_at_a_url(web, run):
    omnizarr.create_group(web.directory / "z.zip", zarr_format=2).create_array("a/b", data=np.arange(3))
    references = {".zgroup": '{"zarr_format": 2}'}
    values = {}
    omnizarr.create_group(values, zarr_format=2).create_array("a/b", data=np.arange(3), compressors=None)
    references |= {key: bytes(value).decode("latin-1") for key, value in values.items() if "/." in key}
    references["a/b/0"] = "base64:AAAAAAAAAAABAAAAAAAAAAIAAAAAAAAA"
    (web.directory / "refs.json").write_text(json.dumps({"version": 1, "refs": references}))
    for name in ("refs.json", "z.zip"):
        assert run("get", "--csv", f"{web.url}/{name}/a/b")[:2] == (0, "0\n1\n2\n"), name
        assert run("ls", f"{web.url}/{name}/a")[1].startswith("b "), name
        assert run("info", f"{web.url}/{name}")[0] == 0, name
        code, out, _ = run("check", "--data", "--json", f"{web.url}/{name}/a/b")
        assert (code, json.loads(out)["chunks"]) == (0, 1), name
    omnizarr.create_group(web.directory / "x.json", zarr_format=2).create_array("a/b", data=np.arange(3))
    assert run("get", "--csv", f"{web.url}/x.json/a/b")[:2] == (0, "0\n1\n2\n")


def test_stores_on_a_web_server_say_that_they_cannot_list(web):
    fill(web.directory / "x.zarr", 3)
    store = omnizarr.storage.ObjectStore.from_url(f"{web.url}/x.zarr")
    for each in (store, omnizarr.storage.PrefixStore(store, "ocean"), omnizarr.storage.CacheStore(store)):
        assert not each.supports_listing
        with pytest.raises(omnizarr.errors.StoreError, match="does not say what it has"):
            list(each.list())


# -- HTTP: check


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_check_holds_documents_that_can_be_found_and_says_what_it_did_not_look_at(web, run, zarr_format):
    fill(web.directory / "x.zarr", zarr_format)
    code, out, _ = run("check", "--json", f"{web.url}/x.zarr")
    report = json.loads(out)
    assert (code, report["nodes"], report["chunks"], report["missing"]) == (0, 4, 0, None)
    assert [(f["code"], f["severity"]) for f in report["findings"]] == [("unlisted-store", "note")]
    assert "strays, chunks were not looked at" in report["findings"][0]["message"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_check_with_data_decodes_each_chunk_and_counts_the_missing_ones(web, run, zarr_format):
    fill(web.directory / "x.zarr", zarr_format)
    chunk = web.directory / "x.zarr" / ("x0/1" if zarr_format == 2 else "x0/c/1")
    chunk.write_bytes(b"broken" + chunk.read_bytes()[:3])
    code, out, _ = run("check", "--data", "--json", f"{web.url}/x.zarr")
    report = json.loads(out)
    assert (code, report["chunks"], report["missing"]) == (1, 5, 2)
    found = {(f["code"], f["path"]) for f in report["findings"]}
    assert {("missing-chunks", "ocean/temp"), ("unlisted-store", "")} < found
    assert any(f["severity"] == "error" and f["path"] == "x0" for f in report["findings"])


@pytest.mark.parametrize(
    ("key", "text", "code"),
    [
        ("x0/.zattrs", '{"units": "m"}', "stale-consolidated-metadata"),
        ("ocean/temp/.zarray", "{", "not-json"),
        (".zmetadata", "{", "not-json"),
    ],
)
def test_check_finds_what_it_finds_in_a_directory(web, key, text, code):
    fill(web.directory / "x.zarr", 2)
    (web.directory / "x.zarr" / key).write_text(text)
    there = omnizarr.check(web.directory / "x.zarr")
    assert code in {finding.code for finding in there}
    far = {(f.code, f.key) for f in omnizarr.check(f"{web.url}/x.zarr") if f.severity != "note"}
    assert far == {(f.code, f.key) for f in there if f.severity != "note"}


def test_check_of_a_group_without_names_says_that_its_members_were_not_looked_at(web):
    fill(web.directory / "x.zarr", 3, consolidated=False)
    report = omnizarr.check(f"{web.url}/x.zarr", data=True)
    assert report.nodes == 1
    assert "members of this group, which nothing names" in str(report)


def test_check_of_nothing_says_so(web, run):
    code, _, err = run("check", f"{web.url}/nothing.zarr")
    assert code == 2
    assert "nothing.zarr" in err


# -- requests


REQUESTS = {
    # command: most requests for a consolidated hierarchy of v2, and of v3, over HTTP, and over S3
    "info": ((6, 1), (7, 2)),
    "tree": ((5, 1), (5, 1)),
    "ls -r": ((5, 1), (5, 1)),
    "info --json": ((6, 1), (7, 2)),
    "dump -h": ((5, 1), (5, 1)),
}


def requests_of(run, command, place, *options):
    """Return how many requests a command makes."""
    name, *words = command.split()
    code, _, err = run(name, "--trace", *words, place, *options)
    assert code == 0, err
    return int(re.search(r"^all +([\d,]+) ", err, re.MULTILINE)[1].replace(",", ""))


def s3_options(place):
    return [f"-o{name}={value}" for name, value in place.options.items()]


def test_the_manual_tells_these_numbers():
    manual = (Path(__file__).parents[2] / "docs/howto/object-stores.md").read_text("utf-8")
    for command, numbers in REQUESTS.items():
        row = f"| {' | '.join(str(number) for places in numbers for number in places)} |\n"
        assert re.search(rf"\| .*`{command.removesuffix(' --json')}`.* {re.escape(row)}", manual), command


@pytest.mark.parametrize("arrays", [2, 100])
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("command", REQUESTS)
def test_requests_over_http_do_not_grow_with_arrays(web, run, command, zarr_format, arrays):
    fill(web.directory / "x.zarr", zarr_format, arrays=arrays)
    assert requests_of(run, command, f"{web.url}/x.zarr") == REQUESTS[command][0][zarr_format - 2]


@pytest.mark.parametrize("arrays", [2, 100])
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("command", REQUESTS)
@pytest.mark.sampled(3)
def test_requests_over_s3_do_not_grow_with_arrays(s3_server, run, command, zarr_format, arrays):
    place = s3_server.fresh()
    fill(f"{place.url}/x.zarr", zarr_format, arrays=arrays, storage_options=place.options)
    count = requests_of(run, command, f"{place.url}/x.zarr", *s3_options(place))
    assert count == REQUESTS[command][1][zarr_format - 2]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_requests_of_check_grow_by_the_documents_of_each_array(web, run, zarr_format):
    counts = []
    for arrays in (2, 102):
        fill(web.directory / f"{arrays}.zarr", zarr_format, arrays=arrays)
        counts.append(requests_of(run, "check", f"{web.url}/{arrays}.zarr"))
    assert counts[0] <= 25
    assert counts[1] - counts[0] <= 100 * (4 - zarr_format)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_element_takes_its_chunk_and_the_documents_of_its_array(web, run, zarr_format):
    fill(web.directory / "x.zarr", zarr_format)
    assert requests_of(run, "get", f"{web.url}/x.zarr/x0", "3") <= {2: 4, 3: 2}[zarr_format]


# -- S3: what is shown


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_listing_of_s3_counts_the_chunks_of_all_arrays(s3_server, run, zarr_format):
    place = s3_server.fresh()
    fill(f"{place.url}/x.zarr", zarr_format, storage_options=place.options)
    code, out, _ = run("info", "--json", f"{place.url}/x.zarr", *s3_options(place))
    facts = json.loads(out)
    assert code == 0
    assert facts["consolidated"] == {"state": "not compared", "stale": []}
    temp = next(node for node in facts["nodes"] if node["path"].endswith("ocean/temp"))
    assert (temp["stored"], temp["expected"]) == (2, 4)
    assert temp["bytes_stored"] > 0


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_nodes_that_consolidated_metadata_lacks_are_named_without_a_request(s3_server, run, zarr_format):
    place = s3_server.fresh()
    url = f"{place.url}/x.zarr"
    fill(url, zarr_format, storage_options=place.options)
    root = omnizarr.open_group(url, mode="r+", use_consolidated=False, storage_options=place.options)
    key = {2: ".zmetadata", 3: "zarr.json"}[zarr_format]
    copies = root.store.get(key)
    root.create_array("late", data=[1, 2])
    root.store.set(key, copies)  # as programs leave it that do not know of it
    code, out, _ = run("info", url, *s3_options(place))
    assert code == 0
    assert "stale: consolidated metadata differs from the documents of /late" in out


# -- storage options


@pytest.mark.parametrize("server", ["s3_server", "gcs_server", "azurite_server"])
def test_commands_take_storage_options_on_each_cloud(request, run, tmp_path, server):
    place = request.getfixturevalue(server).fresh()
    url = f"{place.url}/x.zarr"
    fill(url, 3, storage_options=place.options)
    options = s3_options(place)
    for command in (["ls"], ["info"], ["tree"], ["check", "--data"], ["dump", "-h"], ["repair"]):
        code, _, err = run(*command, url, *options)
        assert (code, err) == (0, ""), command
    options = [option.replace("-o", "--storage-option=", 1) for option in options]
    assert run("get", "--csv", f"{url}/x0", "1", *options)[:2] == (0, "1\n")
    (tmp_path / "n.cdl").write_text("netcdf n { dimensions: x = 2; variables: short v(x); data: v = 3, 4; }")
    code, _, err = run("gen", tmp_path / "n.cdl", "-o", f"{place.url}/n.zarr", *options)
    assert (code, err) == (0, "")
    assert run("get", "--csv", f"{place.url}/n.zarr/v", *options)[:2] == (0, "3\n4\n")
    options = s3_options(place)
    assert run("convert", url, tmp_path / "here.zarr", *options)[0] == 0
    assert run("convert", tmp_path / "here.zarr", f"{place.url}/y.zarr", "--to", "v2", *options)[0] == 0
    assert run("convert", url, f"{place.url}/z.zarr", *options)[0] == 0
    assert run("ls", f"{place.url}/y.zarr", *options)[0] == 0


def test_azure_takes_its_variables(azurite_server, run, monkeypatch):
    place = azurite_server.fresh()
    fill(f"{place.url}/x.zarr", 2, storage_options=place.options)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", servers.AZURE_ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", servers.AZURE_KEY)
    code, _, err = run("ls", f"{place.url}/x.zarr", "--endpoint", place.options["endpoint"])
    assert (code, err) == (0, "")


def test_google_takes_anon_and_endpoint(gcs_server, run):
    place = gcs_server.fresh()
    fill(f"{place.url}/x.zarr", 2, storage_options=place.options)
    code, _, err = run("ls", f"{place.url}/x.zarr", "--anon", "--endpoint", gcs_server.endpoint)
    assert (code, err) == (0, "")


def test_denied_access_to_azure_names_its_variables(azurite_server, run):
    place = azurite_server.fresh()
    url = f"{place.url}/x.zarr"
    options = {**place.options, "account_key": "d3Jvbmc="}
    code, _, err = run("ls", url, *[f"-o{name}={value}" for name, value in options.items()])
    assert code == 1
    assert "AZURE_STORAGE_ACCOUNT_KEY" in err
    assert "d3Jvbmc=" not in err


def test_endpoint_region_and_credentials_of_the_environment(s3_server, run, monkeypatch):
    place = s3_server.fresh()
    fill(f"{place.url}/x.zarr", 3, storage_options=place.options)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", servers.ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", servers.SECRET_KEY)
    options = ["--endpoint", place.endpoint, "--region", servers.REGION]
    for command in (["ls"], ["info"], ["tree"], ["check", "--data"]):
        code, _, err = run(*command, f"{place.url}/x.zarr", *options)
        assert (code, err) == (0, ""), command
    assert run("get", "--csv", f"{place.url}/x.zarr/x0", "1", *options)[:2] == (0, "1\n")


def test_denied_access_names_the_options_and_the_variables(s3_server, run, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    place = s3_server.fresh()
    fill(f"{place.url}/x.zarr", 3, storage_options=place.options)
    code, _, err = run("ls", f"{place.url}/x.zarr", "--anon", "--endpoint", place.endpoint)
    assert code == 1
    assert "--anon" in err
    assert "AWS_ACCESS_KEY_ID" in err
    assert "{'anon'" not in err


@pytest.mark.parametrize(
    ("place", "options", "said"),
    [
        ("here.zarr", ["--anon"], "for URLs of object stores"),
        ("memory://x", ["--endpoint", "http://h"], "for URLs of object stores"),
        ("https://127.0.0.1:1/x", ["--region", "r"], "--region means nothing for https://"),
        ("gs://bucket/x", ["--region", "r"], "--region means nothing for gs://"),
    ],
)
def test_options_that_mean_nothing_are_refused(run, place, options, said):
    code, _, err = run("ls", place, *options)
    assert code == 2
    assert said in err


def test_anon_means_nothing_to_a_web_server_and_does_no_harm(web, run):
    fill(web.directory / "x.zarr", 3)
    assert run("ls", "--anon", f"{web.url}/x.zarr")[0] == 0


@pytest.mark.parametrize("name", ["x.h5", "x.nc"])
def test_files_of_other_formats_in_s3(s3_server, run, tmp_path, name):
    """`dump`, `convert` and `get` take the options of the store, and what is within a file by its path."""
    h5py = pytest.importorskip("h5py", reason="h5py is not installed, which writes HDF5")
    place = s3_server.fresh()
    with h5py.File(tmp_path / name, "w") as file:
        file["g/v"] = np.arange(12.0).reshape(3, 4)
        file["g/v"].attrs["units"] = "K"
    resolve(place.url, "r+", place.options)[0].set(name, (tmp_path / name).read_bytes())
    url, options = f"{place.url}/{name}", s3_options(place)
    code, local, _ = run("dump", str(tmp_path / name))
    assert run("dump", url, *options)[:2] == (code, local)
    long = [option.replace("-o", "--storage-option=", 1) for option in options]
    assert run("get", "--csv", f"{url}/g/v", "0", *long)[:2] == (0, "0.0\n1.0\n2.0\n3.0\n")
    code, out, err = run("convert", url, str(tmp_path / "x.zarr"), *options)
    assert code == 0, (out, err)
    assert "netCDF-4 -> Zarr v3" in out
    assert np.array_equal(omnizarr.open(tmp_path / "x.zarr")["g/v"][...], np.arange(12.0).reshape(3, 4))
    code, out, err = run("convert", url, f"{place.url}/x.zarr", *options)
    assert code == 0, (out, err)
    assert run("digest", f"{place.url}/x.zarr/g/v", *options)[1] == run("digest", f"{url}/g/v", *options)[1]
