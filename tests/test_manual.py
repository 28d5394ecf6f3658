"""The examples in README, CONTRIBUTING and the manual run, those of the command line too."""

import ast
import contextlib
import json
import os
import re
import runpy
import subprocess
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from importlib.util import find_spec
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click import Context, Option
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import omnizarr
from omnizarr import settings
from omnizarr.cli.commands import COMMANDS
from omnizarr.cli.commands import omnizarr as omnizarr_command
from tests import tables
from tests.pages import ROOT, installs, name_of, run
from tests.servers import s3_client

PAGES = sorted([*ROOT.glob("*.md"), *(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)])
# Pages that change what modules are found, the environment, or what is registered, with the libraries that they show.
ALONE = {
    "docs/howto/anndata.md": ("anndata", "xarray", "dask"),
    "docs/howto/fits.md": ("astropy", "xarray"),
    "docs/howto/grib.md": ("eccodes", "xarray"),
    "docs/howto/napari.md": ("napari", "napari_ome_zarr"),
    "docs/howto/pytorch.md": ("torch",),
    "docs/howto/spatialdata.md": ("spatialdata",),
    "docs/howto/tiff.md": ("tifffile", "imagecodecs", "zarr"),
    "docs/howto/under-the-name-zarr.md": (),
    "docs/howto/write-your-own.md": (),
    "docs/tutorials/train.md": ("torch", "obstore", "uvicorn"),
    "docs/tutorials/s3.md": ("moto", "flask", "boto3", "obstore", "xarray"),
}
AS_ZARR = ROOT / "packages" / "omnizarr-as-zarr" / "src"
# A page that needs servers.
OBJECT_STORES = "docs/howto/object-stores.md"


# What the reader of a page has before it begins.
READERS = {
    "docs/cli.md": (
        "s3://era5/v1.zarr",
        "s3://bucket/era5.zarr",
        "s3://public-bucket/era5.zarr",
        "https://example.org/data/v1.zarr",
    ),
    "docs/converting.md": ("s3://era5/v2.zarr", "s3://era5/days.zarr"),
    "docs/howto/dask-s3.md": ("s3://era5/v1.zarr",),
    "docs/howto/migrate-v2-to-v3.md": ("s3://era5/v2.zarr",),
    "docs/howto/serve.md": ("era5.zarr", "s3://bucket/era5.zarr"),
    "docs/howto/view.md": ("era5.zarr", "before.zarr", "after.zarr", "s3://bucket/image.ome.zarr"),
    "docs/stores.md": ("s3://era5/v1.zarr", "s3://bucket/refs.parq", "https://example.org/data/temp.zarr"),
    "docs/tutorials/ten-minutes.md": ("mine.nc", "mine-of-2015.zarr"),
}


def how_often(name: str) -> Any:
    """Return the marks of a page; that of the command line takes half a minute."""
    marks = [pytest.mark.server] if any("://" in place for place in READERS.get(name, ())) else []
    if name == "docs/cli.md":
        return [*marks, pytest.mark.slow]
    return marks if name in FIRST else [*marks, pytest.mark.sampled(3)]


FIRST = {"README.md", "CONTRIBUTING.md", "docs/tutorials/ten-minutes.md"}
"""Pages that every run of the tests tries; `make test` takes a sample of the others."""
HERE = [
    pytest.param(page, id=name_of(page), marks=how_often(name_of(page)))
    for page in PAGES
    if name_of(page) not in {*ALONE, OBJECT_STORES}
]


@pytest.mark.parametrize("page", HERE)
def test_examples_of_page_run(page, tmp_path, monkeypatch, request):
    directory = tmp_path / "here"
    directory.mkdir()
    monkeypatch.chdir(directory)
    text, places = page.read_text("utf-8"), {}
    needs = READERS.get(name_of(page), ())
    if buckets := {place.split("/")[2] for place in needs if place.startswith("s3://")}:
        endpoint = request.getfixturevalue("moto_server").endpoint
        for bucket in buckets:
            make_empty(endpoint, bucket)
            make_public(endpoint, bucket)
        variables = {"ENDPOINT_URL": endpoint, "ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "REGION": "us-east-1"}
        for name, value in variables.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        if "http://127.0.0.1:9000" in text:
            places["http://127.0.0.1:9000"] = endpoint
    for place in needs:
        if place.startswith("https://"):
            web = request.getfixturevalue("http_server").fresh()
            url, _, name = place.rpartition("/")
            places[url] = web.url
            provide(str(web.directory / name))
        else:
            provide(place)
    with contextlib.ExitStack() as stack:
        if "tcp://10.0.0.1:8786" in text:
            distributed = pytest.importorskip("distributed", reason="omnizarr[dask] is not installed")
            cluster = distributed.LocalCluster(1, processes=False, protocol="tcp", dashboard_address=":0")
            places["tcp://10.0.0.1:8786"] = stack.enter_context(cluster).scheduler_address
        run(page, places)


def make_empty(endpoint: str, bucket: str) -> None:
    """Make an empty bucket, in the place of that of another page."""
    with s3_client(endpoint) as client:
        client.create_bucket(Bucket=bucket)
        for each in client.list_objects_v2(Bucket=bucket).get("Contents", ()):
            client.delete_object(Bucket=bucket, Key=each["Key"])


def make_public(endpoint: str, bucket: str) -> None:
    """Let everybody read a bucket."""
    resource = f"arn:aws:s3:::{bucket}"
    allowed = {"Effect": "Allow", "Principal": "*", "Action": ["s3:GetObject"], "Resource": f"{resource}/*"}
    listed = {**allowed, "Action": ["s3:ListBucket"], "Resource": resource}
    with s3_client(endpoint) as client:
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed, listed]})
        client.put_bucket_policy(Bucket=bucket, Policy=policy)


def provide(place: str) -> None:
    """Make an example hierarchy or file where the reader of a page has one."""
    values = np.arange(40 * 20 * 20, dtype="float32").reshape(40, 20, 20)
    if place.endswith(".nc"):
        netcdf = pytest.importorskip("netCDF4", reason="omnizarr[netcdf] is not installed")
        with netcdf.Dataset(place, "w") as file:
            file.createDimension("x", 20)
            file.createVariable("t2m", "f4", ("x",))[:] = values[0, 0]
    elif place.endswith(".parq"):
        dataframes = pytest.importorskip("kerchunk.df", reason="kerchunk is not installed")
        dataframes.refs_to_dataframe({".zgroup": '{"zarr_format": 2}'}, place)
    elif place.endswith("image.ome.zarr"):
        image = omnizarr.create_group(place)
        _ = image.create_array("0", data=values[0].astype("uint8"), dimension_names=("y", "x"))
        _ = omnizarr.pyramid(f"{place}/0")
    elif place.endswith(("temp.zarr", "days.zarr")):
        _ = omnizarr.create_array(place, data=values, chunks=(10, 20, 20))
    else:
        root = omnizarr.create_group(place, zarr_format=2 if "v2" in place else 3)
        for name in ("t2m", "temp"):
            dims = ["time", "lat", "lon"]
            named = {"attributes": {"_ARRAY_DIMENSIONS": dims}} if "v2" in place else {"dimension_names": dims}
            _ = root.create_array(name, data=values, chunks=(10, 20, 20), **named)
        _ = omnizarr.consolidate_metadata(place)


def test_examples_of_object_stores_run_on_servers(
    tmp_path, monkeypatch, s3_server, gcs_server, azurite_server, http_server
):
    pytest.importorskip("obstore", reason="omnizarr[cloud] is not installed")
    monkeypatch.chdir(tmp_path)
    s3, gcs, azure, http = (server.fresh() for server in (s3_server, gcs_server, azurite_server, http_server))
    for prefix, place in (("AWS_", s3), ("GOOGLE_", gcs), ("AZURE_STORAGE_", azure)):
        for name, value in place.options.items():
            monkeypatch.setenv(prefix + name.upper(), str(value))
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.endpoint)
    array = omnizarr.create_array(http.directory / "heights.zarr", data=np.arange(12.0).reshape(3, 4), chunks=(2, 2))
    assert array.shape == (3, 4)
    public = s3_server.fresh()
    make_public(public.endpoint, public.name)
    _ = omnizarr.create_array(f"{public.url}/data.zarr", data=np.arange(3), storage_options=public.options)
    urls = {"s3://bucket": public.url, "s3://weather": s3.url, "gs://weather": gcs.url, "az://weather": azure.url}
    run(ROOT / OBJECT_STORES, {**urls, "https://data.example.org": http.url})


@pytest.mark.parametrize("name", ALONE)
def test_examples_of_page_run_in_a_process_of_its_own(name, tmp_path):
    missing = [library for library in ALONE[name] if find_spec(library) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    program = f"from tests.pages import ROOT, run; run(ROOT / {name!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "src", AS_ZARR)))}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.rules
def test_lessons_and_guides_install_what_they_import():
    """What a page imports and types comes with what it installs, and with `omnizarr[all]` if it installs nothing."""
    provided = packages_distributions()
    missing = []
    for page in [*(ROOT / "docs" / "howto").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]:
        text = page.read_text("utf-8")
        lines = re.findall(r"(?m)^pip install .*$", text)
        installed = closure([word for line in lines for word in installs(line)] or [".[all]"])
        needed = set(re.findall(r"(?m)^(?:>>> |\.\.\. |    )?(?:import|from) (\w+)", typed_python(text)))
        needed |= {"click"} if re.search(r"(?m)^(\$ )?omnizarr ", text) else set()
        missing += [
            f"{name_of(page)}: {module}"
            for module in sorted(needed - sys.stdlib_module_names - {"omnizarr"})
            if not installed & {canonicalize_name(name) for name in provided.get(module, [module])}
        ]
    assert not missing, "\n".join(missing)


def typed_python(text: str) -> str:
    """Return the blocks of a page that are Python."""
    return "\n".join(re.findall(r"(?ms)^```(?:python|\{code-block\} python)\n(.*?)^```$", text))


def closure(words: list[str]) -> set[str]:
    """Return the names of what these bring with them, as far as it is installed here; `.` is omnizarr."""
    ours = {"./packages/omnizarr-as-zarr": "omnizarr-as-zarr"}
    waiting = [Requirement(ours.get(word, re.sub(r"^\.", "omnizarr", word))) for word in words]
    names = {("omnizarr-as-zarr", ""), ("zarr", "")} if set(words) & ours.keys() else set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - {extra for each, extra in names if each == name}:
            names.add((name, extra))
            with contextlib.suppress(PackageNotFoundError):
                below = map(Requirement, requires(name) or ())
                waiting += [each for each in below if not each.marker or each.marker.evaluate({"extra": extra})]
    return {name for name, _ in names}


@pytest.mark.rules
@pytest.mark.parametrize(("page", "text"), tables.pages().items(), ids=lambda each: getattr(each, "name", ""))
def test_tables_of_the_manual_say_what_the_source_says(page, text):
    assert page.read_text(encoding="utf-8") == text, "python -m tests.tables"


SETTINGS = ROOT / "docs" / "reference" / "configuration.md"


def rows_below(heading: str) -> dict[str, str]:
    """Return the second cells of a table of the configuration page by the names in the first."""
    section = SETTINGS.read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"(?m)^\| `([^`]+)` \| ([^|]+?) \|", section))


@pytest.mark.rules
def test_configuration_page_has_every_setting_with_its_default():
    found = {name: ast.literal_eval(default.strip("`")) for name, default in rows_below("Settings").items()}
    assert found == settings.DEFAULTS


@pytest.mark.rules
def test_configuration_page_names_the_settings_of_zarr_python():
    section = SETTINGS.read_text("utf-8").partition("\n## Names of zarr-python\n")[2].partition("\n## ")[0]
    names = {*settings._ALIASES, *settings._ALIASES.values(), *settings._WITHOUT_EFFECT}
    assert set(re.findall(r"`([^`]+)`", section)) == names


@pytest.mark.rules
def test_configuration_page_has_every_environment_variable():
    sources = [ROOT / "setup.py", *(ROOT / "packaging").glob("*.py"), *(ROOT / "src").rglob("*.py")]
    asked = re.compile(r"""(?:environ(?:\.get\(|\[)|envvar=|choice\()"(OMNIZARR_\w+|NO_COLOR)\"""")
    found = {name for source in sources for name in asked.findall(source.read_text("utf-8"))}
    assert found == rows_below("Environment variables").keys()


@pytest.mark.rules
def test_reference_of_the_command_line_has_every_command_and_option(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "extensions"))
    text = import_module("commands").text()
    page = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    assert len(import_module("commands").PLACE.findall(page)) == 1
    for group in COMMANDS.values():
        for name, (_, summary) in group.items():
            section = text.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
            assert f"omnizarr {name} " in section
            assert re.sub(r"\W", "", summary) in re.sub(r"\W", "", section)
            command = omnizarr_command.get_command(Context(omnizarr_command), name)
            options = {
                option
                for each in command.params
                if isinstance(each, Option) and not each.hidden
                for option in each.opts
            }
            assert [option for option in options if option not in section] == []


@pytest.mark.rules
def test_picture_of_the_front_page_has_the_figures_of_the_benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "extensions"))
    speed = import_module("speed")
    found = speed.rows()
    table = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    for name, times in found.items():
        (row,) = re.findall(rf"(?m)^\| {re.escape(name)} \|(.*)$", table)[:1]
        cells = [cell.strip(" *").replace("\N{NO-BREAK SPACE}", " ") for cell in row.split("|")]
        assert cells[0] == times["omnizarr"]
        assert all(time in cells for time in times.values())
    root = ET.fromstring(speed.picture(found))
    bars = [float(each.attrib["width"]) for each in root.iter("rect")][len(speed.COLORS) :]
    for row in found.values():
        times = [speed.seconds(row[library]) for library in speed.COLORS if library in row]
        assert len(times) > 1
        drawn, bars = bars[: len(times)], bars[len(times) :]
        assert np.argsort(drawn).tolist() == np.argsort(times).tolist()
    assert not bars
    assert len(speed.PLACE.findall((ROOT / "docs" / "index.md").read_text("utf-8"))) == 1


def test_published_manuals_are_side_by_side(tmp_path):
    built, site = tmp_path / "built", tmp_path / "site"
    built.mkdir()
    site.mkdir()
    publish = runpy.run_path(str(ROOT / "docs" / "publish.py"))["publish"]
    for name in ("dev", "0.9.0", "0.10.0", "0.11.0rc1", "0.9.0"):
        (built / "index.html").write_text(name, encoding="utf-8")
        publish(built, site, name)
    versions = json.loads((site / "versions.json").read_text("utf-8"))
    assert [each["name"] for each in versions] == ["dev", "0.11.0rc1", "0.10.0", "0.9.0"]
    assert [each["title"] for each in versions] == ["development", "0.11.0rc1", "0.10.0 (stable)", "0.9.0"]
    assert (site / "0.9.0" / "index.html").read_text("utf-8") == "0.9.0"
    assert "url=0.10.0/" in (site / "index.html").read_text("utf-8")
    with pytest.raises(ValueError, match=r"\.\."):
        publish(built, site, "..")


@pytest.mark.rules
def test_pages_are_in_the_table_of_contents_once():
    pages = {path: path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts}
    toctrees = re.compile(r"(?ms)^```\{toctree\}\n(.*?)^```$")
    entries = [
        (path.parent / f"{line}.md").resolve()
        for path, text in pages.items()
        for tree in toctrees.findall(text)
        for line in tree.splitlines()
        if line and not line.startswith(":")
    ]
    assert sorted(entries) == sorted(path for path in pages if path != ROOT / "docs" / "index.md")
