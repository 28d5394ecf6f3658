"""The page of `omnizarr view`, driven in a real browser: it shows what NumPy reads, in every format."""

import json
import re
import shutil
import struct
import time
from itertools import pairwise
from urllib.parse import urlsplit

import numpy as np
import pytest

import omnizarr
from omnizarr import netcdf
from tests.faultproxy import Delay, FaultProxy

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright")
viewing = pytest.importorskip("omnizarr.web.viewing", reason="no Starlette")
serving = pytest.importorskip("omnizarr.web.serving", reason="no Starlette")
StaticFiles = pytest.importorskip("starlette.staticfiles", reason="no Starlette").StaticFiles

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium"),
    pytest.mark.skipif(not (viewing.PAGE / "app.js").exists(), reason="the page was not built: make page"),
]

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LATITUDES = np.linspace(-89.5, 89.5, 180)
LONGITUDES = np.arange(360) + 0.5
FIELD = (
    288 - 40 * np.sin(np.radians(LATITUDES))[:, None] ** 2 + 5 * np.cos(np.radians(3 * LONGITUDES))[None, :]
).astype("float32") + np.arange(4, dtype="float32")[:, None, None]
FIELD[:, 60:80, 100:160] = np.nan
FORMATS = {"v1": 1, "v2": 2, "draft2019": "3-draft2019", "draft2020": "3-draft2020"}


def write_field(place, zarr_format, *, factor=1.0, **options):
    """Write a temperature with coordinates, as xarray does."""
    root = omnizarr.create_group(place, zarr_format=zarr_format)
    names = {"time": np.arange(4) * 30, "lat": LATITUDES, "lon": LONGITUDES}
    units = {"time": "days since 2020-01-01", "lat": "degrees_north", "lon": "degrees_east"}
    for name, values in names.items():
        attributes = {"units": units[name], "_ARRAY_DIMENSIONS": [name]}
        named = {"dimension_names": [name]} if zarr_format == 3 else {}
        root.create_array(name, data=values, attributes=attributes, **named)
    attributes = {"units": "K", "long_name": "temperature", "_ARRAY_DIMENSIONS": list(names)}
    named = {"dimension_names": list(names)} if zarr_format == 3 else {}
    root.create_array(
        "t", data=FIELD * np.float32(factor), chunks=(1, 60, 90), attributes=attributes, **named, **options
    )


def write_image(place):
    """Write an OME-Zarr image of two channels and two levels."""
    y, x = np.mgrid[:600, :800]
    finest = np.stack([x + y, 5 * y]).astype("uint16")
    levels = [finest, finest[:, ::2, ::2]]
    axes = [{"name": "c", "type": "channel"}, *({"name": name, "type": "space", "unit": "micrometer"} for name in "yx")]
    datasets = [
        {"path": str(k), "coordinateTransformations": [{"type": "scale", "scale": [1, 0.5 * 2**k, 0.5 * 2**k]}]}
        for k in range(2)
    ]
    channels = [
        {"label": "DAPI", "color": "0000FF", "window": {"start": 0, "end": 1400, "min": 0, "max": 65535}},
        {"label": "GFP", "color": "00FF00", "window": {"start": 0, "end": 3000, "min": 0, "max": 65535}},
    ]
    attributes = {
        "multiscales": [{"version": "0.4", "axes": axes, "datasets": datasets}],
        "omero": {"channels": channels},
    }
    root = omnizarr.create_group(place, zarr_format=2, attributes=attributes)
    for number, level in enumerate(levels):
        root.create_array(str(number), data=level, chunks=(1, 256, 256))
    return finest


def write_odd(place):
    """Write arrays of one dimension, of none, of text, records, complex numbers, large integers and times."""
    root = omnizarr.create_group(place, zarr_format=2)
    root["line"] = np.sin(np.linspace(0, 20, 500))
    root["scalar"] = np.float64(3.25)
    root.create_array("names", data=np.array(["Bern", "Genève", "Zürich"]))
    root.create_array("records", data=np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i2"), ("b", "f8")]))
    root["complex"] = np.array([[3 + 4j, 1j], [2, -1]] * 20, "complex64")
    root["large"] = (np.arange(400, dtype="int64") + 2**60).reshape(20, 20)
    root["when"] = np.datetime64("2020-01-01T00:00", "m") + np.arange(400).reshape(20, 20)
    root["packed"] = np.arange(400, dtype="int16").reshape(20, 20)
    root["packed"].attrs.update(scale_factor=0.5, add_offset=10, missing_value=7, units="m")


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("view")
    found = {
        name: folder / f"{name}.zarr" for name in (*FORMATS, "sharded", "nczarr", "image", "odd", "warmer", "broken")
    }
    for name, zarr_format in FORMATS.items():
        if zarr_format == 1:
            omnizarr.create_array(found[name], data=FIELD[0], chunks=(60, 90), zarr_format=1)
        else:
            write_field(found[name], zarr_format)
    write_field(found["sharded"], 3, shards=(2, 120, 180))
    write_field(found["warmer"], 3, factor=1.5)
    write_field(found["broken"], 3)
    damaged = found["broken"] / "t" / "c" / "0" / "1" / "2"
    damaged.write_bytes(damaged.read_bytes()[:40])
    (found["broken"] / "t" / "c" / "0" / "0" / "1").unlink()
    with netcdf.Dataset(str(found["nczarr"]), "w") as dataset:
        for name, size in (("y", 180), ("x", 360)):
            dataset.createDimension(name, size)
        dataset.createVariable("t", "f4", ("y", "x"))[:] = FIELD[0]
    write_image(found["image"])
    write_odd(found["odd"])
    return found


@pytest.fixture(scope="module")
def numbers(places):
    return {name: number for number, name in enumerate(places)}


@pytest.fixture(scope="module")
def server(places):
    with serving.running(viewing.viewer(*map(str, places.values()))) as url:
        yield url


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page that fails the test if a script fails, or if anything is asked of another host."""
    context = browser.new_context(viewport={"width": 1200, "height": 800}, accept_downloads=True)
    page = context.new_page()
    playwright.expect.set_options(timeout=60_000)
    page.set_default_timeout(60_000)  # machines that run tests are slow now and then
    troubles, hosts = [], set()
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    yield page
    context.close()
    assert troubles == []
    assert hosts - {None} <= {"127.0.0.1"}


def show(page, server, **look):
    """Open the page at a look, and wait for its picture."""
    page.goto("about:blank")  # another address of the same page would not load it again
    page.goto(f"{server}/#" + "&".join(f"{name}={value}" for name, value in look.items()))
    page.wait_for_selector("canvas[data-pane=first][data-state=complete]")
    page.wait_for_selector(".histogram")


def pointed(page, x=0.5, y=0.4, pane="first"):
    """Point at a place of a picture; return the index and the words of the value."""
    box = page.locator(f"canvas[data-pane={pane}]").bounding_box()
    page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
    readout = page.locator(".readout[data-index]")
    readout.wait_for()
    playwright.expect(readout.locator(".value")).not_to_contain_text("…")
    index, words = readout.evaluate("one => [one.dataset.index, one.querySelector('.value').innerText]")
    return tuple(json.loads(index)), words


def says(page, selector, words):
    """Wait until a part of the page contains some words."""
    playwright.expect(page.locator(selector)).to_contain_text(words)


def number(words):
    return float(re.match(r"[-−\d.e+]+|NaN", words)[0].replace("−", "-"))


@pytest.mark.parametrize("name", ["v1", "v2", "draft2019", "draft2020", "sharded", "nczarr"])
def test_the_value_under_the_pointer_is_numpys(page, server, numbers, places, name):
    path = "" if name == "v1" else "t"
    show(page, server, d=numbers[name], p=path, tab="picture")
    expected = FIELD if name not in ("v1", "nczarr") else FIELD[0]
    for place in ((0.3, 0.3), (0.6, 0.55), (0.8, 0.42)):
        index, words = pointed(page, *place)
        assert len(index) == expected.ndim
        np.testing.assert_allclose(number(words), expected[index], rtol=1e-5)
    if expected.ndim == 3:
        assert words.endswith(" K")
        says(page, ".readout", "°N")  # labels come a moment later


def test_a_slider_moves_through_time(page, server, numbers):
    show(page, server, d=numbers["v2"], p="t")
    slider = page.get_by_role("slider", name="time")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("at=1,"))
    says(page, ".slider", "2020-01-31")
    index, words = pointed(page)
    assert index[0] == 1
    np.testing.assert_allclose(number(words), FIELD[index], rtol=1e-5)


def test_the_line_of_python_reads_what_is_seen(page, server, numbers, places):
    show(page, server, d=numbers["sharded"], p="t", at="2,,", x=200, y=90, z=8)
    page.locator("canvas[data-pane=first]").hover()
    playwright.expect(page.locator(".python code")).to_contain_text(":")
    line = page.locator(".python code").inner_text()
    assert line.startswith(f'omnizarr.open({json.dumps(str(places["sharded"]))})["t"][2, ')
    selection = line.partition('["t"]')[2]
    read = eval(f"array{selection}", {"array": omnizarr.open(places["sharded"])["t"]})
    np.testing.assert_array_equal(read, eval(f"field{selection}", {"field": FIELD}))
    assert 0 < read.shape[1] <= 360


def test_side_by_side_with_the_difference(page, server, numbers):
    show(page, server, d=numbers["sharded"], p="t", d2=numbers["warmer"], p2="t")
    page.wait_for_selector("canvas[data-pane=difference][data-state=complete]")
    index, _ = pointed(page, pane="difference")
    words = page.locator(".readout .difference").inner_text()
    first, second = FIELD[index], FIELD[index] * np.float32(1.5)
    np.testing.assert_allclose(number(words.removeprefix("difference ")), first - second, rtol=1e-4)
    playwright.expect(page.locator(".pane")).to_have_count(3)


def test_both_pictures_move_together(page, server, numbers):
    show(page, server, d=numbers["sharded"], p="t", d2=numbers["warmer"], p2="t")
    page.locator("canvas[data-pane=second]").hover()
    page.mouse.wheel(0, -600)
    page.wait_for_url(re.compile("&z="))
    first, _ = pointed(page, pane="first")
    second, _ = pointed(page, pane="second")
    assert first == second


def test_the_address_reproduces_what_is_seen(page, server, numbers, browser):
    look = {
        "d": numbers["sharded"], "p": "t", "dims": "2,1", "at": "3,,", "cmap": "RdBu", "rev": 1, "limits": "manual",
        "min": 250, "max": 300, "nan": "%23ff00c8", "flip": 0, "grid": 1, "x": 90.5, "y": 180, "z": 2.5,
    }  # fmt: skip
    show(page, server, **look)
    address = page.url
    said = dict(part.split("=", 1) for part in urlsplit(address).fragment.split("&"))
    assert said == {name: str(value) for name, value in look.items()}
    picture = "document.querySelector('canvas[data-pane=first]').toDataURL()"
    page.wait_for_load_state("networkidle")  # the labels of the axes are there, too
    once = page.evaluate(picture)
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("canvas[data-pane=first][data-state=complete]")
    page.wait_for_function(f"once => {picture} === once", arg=once)
    show(page, server, **{**look, "max": 400})
    page.wait_for_load_state("networkidle")
    assert page.evaluate(picture) != once


def test_a_click_on_the_array_that_is_shown_keeps_its_picture(page, server, numbers):
    show(page, server, d=numbers["v2"], p="t")
    page.locator("canvas[data-pane=first]").focus()
    page.keyboard.press("+")
    page.wait_for_url(re.compile("&z="))
    page.wait_for_load_state("networkidle")
    before = page.url, colours_of(page)
    page.get_by_role("treeitem", selected=True).click()
    page.locator(".crumbs [aria-current]").click()
    page.wait_for_timeout(500)  # the address follows the view after a moment
    assert (page.url, colours_of(page)) == before
    assert before[1] > 5


@pytest.mark.parametrize(
    "look", [{"p": "t"}, {"d": "image", "ch": "0000ff;00ff00"}, {"p": "t", "d2": "warmer", "p2": "t"}]
)
def test_an_address_without_limits_is_drawn_over_one_with_them(page, server, numbers, look):
    """As after a step back in the browser's history: nothing else differs, so no new samples arrive."""
    look = {name: numbers.get(value, value) for name, value in ({"d": "v2"} | look).items()}
    show(page, server, **look)
    page.wait_for_load_state("networkidle")
    drawn = {pane: colours_of(page, pane) for pane in panes_of(page)}
    assert min(drawn.values()) > 5
    page.evaluate("address => location.hash = address", "&".join(f"{name}={value}" for name, value in look.items()))
    page.wait_for_function("() => /min=|ch=[0-9a-f]+:/.test(location.hash)")
    page.wait_for_timeout(300)
    assert {pane: colours_of(page, pane) for pane in panes_of(page)} == drawn


def panes_of(page):
    return page.locator("canvas[data-pane]").evaluate_all("all => all.map(one => one.dataset.pane)")


def colours_of(page, pane="first"):
    """Return how many colours a picture has. A blank one has few: those of its frame and its labels."""
    return page.evaluate(
        """pane => {
            const canvas = document.querySelector(`canvas[data-pane=${pane}]`);
            const [left, top] = [0.3, 0.3].map((part, k) => Math.floor(part * (k ? canvas.height : canvas.width)));
            const { data } = canvas.getContext("2d").getImageData(left, top, left, top);
            const found = new Set();
            for (let i = 0; i < data.length; i += 4) found.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
            return found.size;
        }""",
        pane,
    )


def test_a_group_is_a_table_of_its_members(page, server, numbers):
    page.goto(f"{server}/#d={numbers['sharded']}")
    row = page.locator(".member[data-path=t]")
    row.locator("img").wait_for()
    says(
        page,
        ".member[data-path=t]",
        re.compile(r"temperature.*time 4 × lat 180 × lon 360.*float32.*K.*1012\.5 KiB", re.DOTALL),
    )
    assert page.locator(".member[data-path]").count() == 4
    row.get_by_role("link").click()
    page.wait_for_url(re.compile("p=t"))
    page.wait_for_selector("canvas[data-pane=first][data-state=complete]")
    page.go_back()
    page.locator(".member[data-path=t]").wait_for()
    page.keyboard.press("2")
    says(page, ".about", "Consolidated")


def test_of_many_members_those_on_the_screen_are_read(page, tmp_path):
    root = omnizarr.create_group(tmp_path / "x.zarr")
    root.create_array("v00000", data=FIELD[0, ::6, ::6])
    document = (tmp_path / "x.zarr" / "v00000" / "zarr.json").read_text()
    for number in range(1, 10_000):
        folder = tmp_path / "x.zarr" / f"v{number:05}"
        folder.mkdir()
        (folder / "zarr.json").write_text(document)
    with serving.running(viewing.viewer(str(tmp_path / "x.zarr"))) as url:
        asked = []
        page.on("request", lambda request: asked.append(urlsplit(request.url).path))
        page.goto(f"{url}/#d=0")
        page.locator(".member[data-path=v00000] img").wait_for()
        page.wait_for_load_state("networkidle")
        assert asked.count("/api/0/members") == 1
        assert asked.count("/api/0/tree") == 1
        assert asked.count("/small/0") <= 30
        assert page.locator("*").count() < 1500
        page.locator(".contents .scroll").evaluate("one => one.scrollTop = one.scrollHeight")
        page.locator(".member[data-path=v09999] img").wait_for()
        page.wait_for_load_state("networkidle")
        assert asked.count("/api/0/members") <= 3
        assert asked.count("/small/0") <= 60
        assert page.locator("*").count() < 1500


def test_a_notebook_shows_the_page_in_a_frame(page, places, tmp_path):
    with omnizarr.view(str(places["v2"]), block=False) as shown:
        (tmp_path / "notebook.html").write_text(f"<!doctype html><h1>Notebook</h1>{shown._repr_html_()}")
        files = StaticFiles(directory=tmp_path)
        with serving.running(files) as notebook:
            page.goto(f"{notebook}/notebook.html")
            page.frame_locator("iframe").locator(".member[data-path=t] img").wait_for()


@pytest.mark.parametrize("fill", [0, np.nan])
def test_a_sparse_array_offers_what_is_stored(page, tmp_path, fill):
    array = omnizarr.create_array(
        tmp_path / "x.zarr", shape=(50, 4000, 4000), chunks=(1, 250, 250), dtype="f4", fill_value=fill
    )
    values = np.random.default_rng(1).random((250, 250)).astype("f4")
    array[31, 500:750, 1000:1250] = values
    with serving.running(viewing.viewer(str(tmp_path / "x.zarr"))) as url:
        page.goto(f"{url}/#d=0")
        says(page, ".offer", "No chunk of this plane is stored")
        page.get_by_role("button", name="Go to stored data").click()
        playwright.expect(page.locator(".offer")).to_have_count(0)
        page.wait_for_url(re.compile(r"at=31,,.*min="))
        page.wait_for_selector("canvas[data-pane=first][data-state=complete]")
        index, words = pointed(page, 0.5, 0.47)
        assert index[0] == 31
        np.testing.assert_allclose(number(words), values[index[1] - 500, index[2] - 1000], rtol=1e-5)


def test_an_array_of_which_nothing_is_stored_says_so(page, tmp_path):
    omnizarr.create_array(tmp_path / "x.zarr", shape=(50, 40), chunks=(5, 5), dtype="f4", fill_value=0)
    with serving.running(viewing.viewer(str(tmp_path / "x.zarr"))) as url:
        page.goto(f"{url}/#d=0")
        says(page, ".offer", "No chunk of this array is stored")


def test_a_plane_of_one_stored_value_offers_nothing(page, tmp_path):
    omnizarr.create_array(tmp_path / "x.zarr", data=np.full((3, 50, 40), 7.0), chunks=(1, 50, 40))
    with serving.running(viewing.viewer(str(tmp_path / "x.zarr"))) as url:
        with page.expect_response(re.compile("/api/0/nearest")):
            show(page, url, d=0)
        page.wait_for_load_state("networkidle")
        playwright.expect(page.locator(".offer")).to_have_count(0)


@pytest.mark.parametrize("kind", ["image", "named", "labelled"])
def test_channels_without_omero_are_blended(page, tmp_path, kind):
    """In colours of their own, by the axis of channels; its coordinates are their names."""
    values = np.stack([np.add(*np.mgrid[:100, :120]), np.mgrid[:100, :120][0], np.mgrid[:100, :120][1]]).astype("u2")
    names = ["c", "y", "x"]
    root = omnizarr.create_group(tmp_path / "x.zarr", zarr_format=2)
    if kind == "image":
        axes = [{"name": "s", "type": "channel"}, *({"name": name, "type": "space"} for name in "yx")]
        scale = [{"type": "scale", "scale": [1, 1, 1]}]
        datasets = [{"path": "t", "coordinateTransformations": scale}]
        root.attrs["multiscales"] = [{"version": "0.4", "axes": axes, "datasets": datasets}]
    root.create_array("t", data=values, attributes={} if kind == "image" else {"_ARRAY_DIMENSIONS": names})
    if kind == "labelled":
        root.create_array("c", data=np.array(["DAPI", "GFP", "Cy5"]), attributes={"_ARRAY_DIMENSIONS": ["c"]})
    with serving.running(viewing.viewer(str(tmp_path / "x.zarr"))) as url:
        show(page, url, d=0, p="t")
        playwright.expect(page.locator(".channel")).to_have_count(3)
        labels = ["DAPI", "GFP", "Cy5"] if kind == "labelled" else ["channel 0", "channel 1", "channel 2"]
        says(page, ".channel:nth-of-type(2)", labels[1])
        index, words = pointed(page)
        assert words.split(" · ") == [f"{name} {values[k][index[1:]]}" for k, name in enumerate(labels)]
        colours = page.locator(".channel input[type=color]").evaluate_all("all => all.map(one => one.value)")
        assert len(set(colours)) == 3
        page.get_by_label(labels[1], exact=True).uncheck()
        page.wait_for_url(re.compile("ch="))
        assert labels[1] not in pointed(page)[1]


def write_turned(place):
    """Write arrays of which the picture is not what is stored: packed, masked, flipped, turned, by channels."""
    rng = np.random.default_rng(3)
    root = omnizarr.create_group(place)

    def put(name, values, names, **attributes):
        root.create_array(name, data=values, dimension_names=names, attributes=attributes)

    put("lat", np.linspace(-60, 60, 24), ["lat"], units="degrees_north")
    put("lon", np.arange(32.0), ["lon"], units="degrees_east")
    packed = rng.integers(0, 1000, (3, 24, 32)).astype("i2")
    packed[1, 3:9, 4:9] = -1
    put("packed", packed, ["time", "lat", "lon"], scale_factor=0.25, add_offset=10.0, _FillValue=-1, valid_max=900)
    put("turned", packed[:, :, :20].transpose(2, 0, 1), ["lon2", "time", "lat"], missing_value=-1)
    put("bytes", packed.astype("i1")[0], ["lat", "lon"], _Unsigned="true")
    put("filled", packed[1], ["y", "x"])
    put("complex", rng.random((24, 32)) * np.exp(1j * rng.random((24, 32))), ["lat", "lon"])
    put("large", rng.random((4096, 2048)), ["y", "x"])
    put("channels", rng.integers(0, 999, (4, 24, 32)).astype("u2"), ["c", "y", "x"])
    put("photo", rng.integers(0, 255, (24, 32, 4)).astype("u1"), ["y", "x", "rgba"])


TURNED = [
    {"p": "packed", "at": "1,,"},
    {"p": "packed", "at": "1,,", "dims": "2,1"},
    {"p": "packed", "at": ",5,", "dims": "0,2", "flip": 1},
    {"p": "turned", "at": ",2,", "dims": "2,0"},
    {"p": "bytes"},
    {"p": "filled", "fill": 1},
    {"p": "complex"},
    {"p": "complex", "part": "phase", "flip": 0},
    {"p": "complex", "part": "imaginary"},
    {"p": "large"},
    {"p": "large", "dims": "1,0", "flip": 1},
    {"p": "channels", "ch": "ff0000;-00ff00;0000ff;ffffff"},
    {"p": "channels", "ch": "-ff0000;00ff00;0000ff;-ffffff", "dims": "2,1", "flip": 1},
    {"p": "photo"},
]


@pytest.fixture(scope="module")
def turned(tmp_path_factory):
    place = tmp_path_factory.mktemp("turned") / "x.zarr"
    write_turned(place)
    with serving.running(viewing.viewer(str(place))) as url:
        yield url


def run_line(page):
    """Return what the line of Python reads."""
    return np.asarray(eval(page.locator(".python code").inner_text(), {"omnizarr": omnizarr, "numpy": np}))


@pytest.mark.parametrize("look", TURNED, ids=lambda look: " ".join(map(str, look.values())))
def test_the_line_of_python_reads_the_picture(page, turned, look):
    show(page, turned, d=0, stretch=1, **look)
    page.wait_for_load_state("networkidle")
    values = run_line(page)
    rows, columns = values.shape[:2]
    near = 1 if look["p"] == "large" else 0  # samples are about as small as pixels
    for down, across in [(0, 0), (0, 1), (1, 0), (0.55, 0.2), (0.4, 0.8), (0.2, 0.2)]:
        row, column = (
            min(max(round(part * (count - 1)), 2 * near), count - 1 - 2 * near)
            for part, count in ((down, rows), (across, columns))
        )
        for _ in range(2):  # words that are longer may make the picture less high
            box = page.locator("canvas[data-pane=first]").bounding_box()
            width, height = box["width"] - 98, box["height"] - 50  # of the plot
            page.mouse.move(
                box["x"] + 84 + (column + 0.5) / columns * width, box["y"] + 10 + (row + 0.5) / rows * height
            )
            page.locator(".readout[data-index]").wait_for()
        around = values[max(row - near, 0) : row + near + 1, max(column - near, 0) : column + near + 1]
        expected = around.reshape(-1, *around.shape[2:])

        def is_said(expected=expected):
            said = said_of(page, look)
            return any(np.allclose(np.atleast_1d(each), said, rtol=1e-6, equal_nan=True) for each in expected)

        assert until(is_said), (expected, said_of(page, look))


def until(condition, seconds=20):
    """Return whether something becomes true: the page draws a little after it was told."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def said_of(page, look):
    """Return the numbers under the pointer, as the page says them."""
    readout = page.locator(".readout[data-index]")
    words, index = readout.evaluate("one => [one.querySelector('.value').innerText, one.dataset.index]")
    if look["p"] == "complex":  # in words, all its parts
        z = omnizarr.open(page_place(page))["complex"][tuple(json.loads(index))]
        return [{"phase": np.angle, "imaginary": np.imag}.get(look.get("part"), np.abs)(z)]
    parts = words.split(" · ")
    numbers = [part.rpartition(" ")[2] if len(parts) > 1 else part for part in parts]
    return [
        np.nan if re.match("missing|not valid", text) else np.inf if text == "…" else number(text) for text in numbers
    ]


def page_place(page):
    return re.search(r'open\("([^"]+)"\)', page.locator(".python code").inner_text())[1]


def test_the_line_of_python_reads_the_part_that_is_seen(page, turned):
    show(page, turned, d=0, p="packed", at="1,,", x=12, y=8, z=60)
    page.wait_for_load_state("networkidle")
    values = run_line(page)
    assert values.shape[0] < 24
    assert values.shape[1] < 32
    (_, y, x), words = pointed(page, 0.5, 0.4)
    whole = omnizarr.open(page_place(page))["packed"].lazy.unpack()[1][::-1]
    start = next(
        (row, column)
        for row in range(24)
        for column in range(32)
        if np.array_equal(whole[row : row + len(values), column : column + values.shape[1]], values, equal_nan=True)
    )
    np.testing.assert_allclose(values[23 - y - start[0], x - start[1]], number(words))


def test_the_line_of_python_reads_the_level_that_is_drawn(page, server, numbers):
    page.set_viewport_size({"width": 800, "height": 500})
    show(page, server, d=numbers["image"])
    page.wait_for_load_state("networkidle")
    assert '["1"]' in page.locator(".python code").inner_text()
    assert run_line(page).shape == (300, 400, 2)


@pytest.mark.parametrize("look", [{}, {"dims": "2,1"}])
def test_a_table_has_its_axes_as_the_picture_and_its_line_of_python(page, turned, look):
    page.goto("about:blank")
    page.goto(f"{turned}/#d=0&p=packed&tab=table&at=1,,&" + "&".join(f"{name}={value}" for name, value in look.items()))
    page.wait_for_selector(".grid td")
    rows = [row.split("\t")[1:] for row in page.locator(".grid tbody tr").all_inner_texts()]
    found = np.array([[np.nan if cell == "missing" else float(cell) for cell in row] for row in rows])
    np.testing.assert_allclose(found, run_line(page))
    heading = page.locator(".grid thead th").first
    playwright.expect(heading).to_have_text("lon" if look else "lat")


def test_a_line_and_its_line_of_python(page, turned):
    page.goto("about:blank")
    page.goto(f"{turned}/#d=0&p=packed&tab=line&line=2&at=1,5,")
    page.wait_for_selector(".plot canvas")
    values = run_line(page)
    assert values.shape == (32,)
    box = page.locator(".plot .u-over").bounding_box()
    for index in (0, 6, 20, 31):
        page.mouse.move(box["x"] + box["width"] * min(max(index / 31, 0.001), 0.999), box["y"] + box["height"] / 2)
        words = page.locator(".u-legend .u-series:nth-child(2) .u-value").inner_text()
        np.testing.assert_allclose(np.nan if words == "–" else float(words), values[index])


def test_the_map_of_chunks_shows_missing_and_broken_ones(page, server, numbers):
    page.goto(f"{server}/#d={numbers['broken']}&p=t&tab=chunks")
    page.get_by_role("button", name="Check all of them").click()
    canvas = page.locator(".chunkmap canvas[data-broken='1']")
    canvas.wait_for()
    says(page, ".chunkmap .facts", re.compile(r"stored\s*47\D"))
    says(page, ".chunkmap .facts", re.compile(r"missing\s*1\D"))
    says(page, ".findings", "[0, 1, 2]")
    box = canvas.bounding_box()
    side = min((box["width"] - 16) / 4, (box["height"] - 16) / 3, 64)  # 3 x 4 cells in the middle
    left, top = box["x"] + (box["width"] - 4 * side) / 2, box["y"] + (box["height"] - 3 * side) / 2
    page.mouse.move(left + 1.5 * side, top + 0.5 * side)
    says(page, ".readout", "missing")
    page.mouse.move(left + 2.5 * side, top + 1.5 * side)
    says(page, ".readout", "[0, 1, 2]")
    page.mouse.click(left + 2.5 * side, top + 1.5 * side)
    page.wait_for_url(re.compile("tab=picture"))


@pytest.mark.parametrize(
    ("shape", "chunks", "stored"),
    [((10**9, 10**9), (1000, 1000), (10**9 - 1, 0)), ((10**15,), (10**6,), (0,))],
    ids=["two dimensions", "one dimension"],
)
def test_a_map_of_a_trillion_chunks_is_drawn_at_once(page, tmp_path, shape, chunks, stored):
    array = omnizarr.create_array(tmp_path / "x.zarr", shape=shape, chunks=chunks, dtype="f4", fill_value=0)
    array[stored] = 1
    with serving.running(viewing.viewer(str(tmp_path / "x.zarr"))) as url:
        page.goto(f"{url}/#d=0&tab=chunks")
        says(page, ".chunkmap .facts", re.compile(r"stored\s*1\D"))
        page.screenshot(timeout=20_000)  # a page that is busy takes none
        drawn = page.evaluate(
            """() => {
                const canvas = document.querySelector(".chunkmap canvas");
                const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                let count = 0;
                // The only stored chunk is the largest: yellow.
                for (let i = 0; i < data.length; i += 4)
                    count += data[i] > 200 && data[i + 1] > 180 && data[i + 2] < 120;
                return count;
            }"""
        )
        assert 1 <= drawn <= 16


def test_a_broken_chunk_does_not_hide_the_others(page, server, numbers):
    show(page, server, d=numbers["broken"], p="t", z=4, x=225, y=90)
    page.get_by_role("alert").wait_for()
    playwright.expect(page.get_by_role("alert")).to_contain_text("c/0/1/2")
    playwright.expect(page.get_by_role("button", name="Try again")).to_have_count(1)
    index, words = pointed(page, 0.5, 0.45)
    assert (index[1] // 60, index[2] // 90, words) == (1, 2, "broken")
    show(page, server, d=numbers["broken"], p="t", z=4, x=160, y=90)
    index, words = pointed(page, 0.5, 0.45)  # in the same tile, in the chunk beside
    assert (index[1] // 60, index[2] // 90) == (1, 1)
    np.testing.assert_allclose(number(words), FIELD[index], rtol=1e-5)


def test_a_chunk_that_was_mended_is_seen_after_another_try(page, tmp_path):
    omnizarr.create_array(tmp_path / "x.zarr", data=np.arange(1.0, 101).reshape(10, 10), chunks=(5, 5))
    chunk = tmp_path / "x.zarr" / "c" / "0" / "0"
    stored = chunk.read_bytes()
    chunk.write_bytes(b"broken")
    with serving.running(viewing.viewer(str(tmp_path / "x.zarr"))) as url:
        show(page, url, d=0)
        playwright.expect(page.get_by_role("alert")).to_contain_text("c/0/0")
        before = page.evaluate("document.querySelector('canvas[data-pane=first]').toDataURL()")
        chunk.write_bytes(stored)
        page.get_by_role("button", name="Try again").click()
        playwright.expect(page.get_by_role("alert")).to_have_count(0)
        page.wait_for_selector("canvas[data-pane=first][data-state=complete]")
        assert page.evaluate("document.querySelector('canvas[data-pane=first]').toDataURL()") != before
        index, words = pointed(page, 0.45, 0.3)
        assert number(words) == index[0] * 10 + index[1] + 1


def test_channels_of_an_image_are_blended(page, server, numbers):
    show(page, server, d=numbers["image"])
    playwright.expect(page.locator(".channel")).to_have_count(2)
    says(page, ".controls", "DAPI")
    finest = np.stack([np.add(*np.mgrid[:600, :800]), 5 * np.mgrid[:600, :800][0]])
    index, words = pointed(page)
    says(page, ".readout", f"x {index[2] / 2:g} µm [{index[2]}]")
    values = [int(value) for value in re.findall(r"(?:DAPI|GFP) (\d+)", words)]
    assert values == finest[(slice(None), *index[1:])].tolist()
    page.get_by_label("GFP", exact=True).uncheck()
    page.wait_for_url(re.compile("ch="))


def test_an_image_is_read_by_levels(page, server, numbers):
    asked = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    page.set_viewport_size({"width": 800, "height": 500})
    show(page, server, d=numbers["image"])
    tiles = [path for path in asked if path.startswith("/tiles/")]
    assert tiles
    assert all("/1/" in path for path in tiles)


def test_tables_of_what_is_no_picture(page, server, numbers):
    def cells(path):
        page.goto("about:blank")
        page.goto(f"{server}/#d={numbers['odd']}&p={path}&tab=table")
        page.wait_for_selector(".grid td")
        return page.locator(".grid td").all_inner_texts()

    assert cells("names") == ["Bern", "Genève", "Zürich"]
    assert page.locator(".grid td").first.evaluate("cell => getComputedStyle(cell).textAlign") == "left"
    assert cells("records") == ["1", "2.5", "3", "4.5"]
    assert cells("scalar") == ["3.25"]
    assert cells("large")[:2] == [str(2**60), str(2**60 + 1)]


def test_a_line_of_one_dimension(page, server, numbers):
    page.goto(f"{server}/#d={numbers['odd']}&p=line")
    page.wait_for_selector(".plot canvas")
    says(page, ".python code", '["line"][:]')


def test_a_line_of_times_has_dates(page, tmp_path):
    days = np.arange("2020-01-01", "2021-01-01", dtype="datetime64[D]")
    omnizarr.create_array(tmp_path / "days.zarr", data=days)
    with serving.running(viewing.viewer(str(tmp_path / "days.zarr"))) as url:
        page.add_init_script(
            """window.drawn = [];
            const original = CanvasRenderingContext2D.prototype.fillText;
            CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
                window.drawn.push(text);
                return original.call(this, text, ...rest);
            };"""
        )
        page.goto(f"{url}/#d=0")
        page.wait_for_selector(".plot canvas")
        dates = [text for text in page.evaluate("window.drawn") if re.fullmatch(r"20\d\d-\d\d-\d\d", text)]
        assert len(set(dates)) >= 3
        box = page.locator(".plot .u-over").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        index = int(page.locator(".u-legend .u-value").nth(0).inner_text())
        says(page, ".u-legend .u-series:nth-child(2) .u-value", str(days[index]))


DRAWN = """window.drawn = [];
const original = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    window.drawn.push(text);
    return original.call(this, text, ...rest);
};"""


def test_times_of_a_calendar_with_30_february_are_iso_everywhere(page, tmp_path):
    root = omnizarr.create_group(tmp_path / "x.zarr")
    units = {"units": "days since 2020-02-28", "calendar": "360_day"}
    root.create_array("time", data=np.arange(0, 6, 0.25), dimension_names=["time"], attributes=units)
    root.create_array("t", data=np.add(*np.mgrid[:24.0, :40]), dimension_names=["time", "x"])
    root.create_array("stack", data=np.zeros((24, 8, 9)), dimension_names=["time", "y", "x"])
    root.create_array("s", data=np.arange(24.0), dimension_names=["time"])
    with serving.running(viewing.viewer(str(tmp_path / "x.zarr"))) as url:
        page.add_init_script(DRAWN)

        def drawn():
            return {text for text in page.evaluate("window.drawn") if re.match(r"T?\d\d", text)}

        show(page, url, d=0, p="t", at="8,")
        page.wait_for_function("window.drawn.includes('2020-02-30')")
        says_at = pointed(page, 0.5, 0.4)[0][0]
        day, hour = divmod(says_at, 4)
        date = ["2020-02-28", "2020-02-29", "2020-02-30", "2020-03-01", "2020-03-02", "2020-03-03"][day]
        says(page, ".readout", f"time {date}{f'T{6 * hour:02}:00' if hour else ''} [{says_at}]")
        show(page, url, d=0, p="stack", at="9,,")
        says(page, ".slider .of", "2020-02-30T06:00")
        page.goto("about:blank")
        page.goto(f"{url}/#d=0&p=s")
        page.wait_for_selector(".plot canvas")
        page.wait_for_function("window.drawn.some(text => text.startsWith('2020-02-30'))")
        assert not any(text.startswith("2020-02-31") or "/" in text for text in drawn())
        box = page.locator(".plot .u-over").bounding_box()
        page.mouse.move(box["x"] + box["width"] * 9 / 23, box["y"] + box["height"] / 2)
        says(page, ".u-legend .u-series:first-child .u-value", "2020-02-30T06:00")


def test_times_along_a_line_are_iso(page, server, numbers):
    page.add_init_script(DRAWN)
    page.goto(f"{server}/#d={numbers['sharded']}&p=t&tab=line&line=0")
    page.wait_for_selector(".plot canvas")
    page.wait_for_function("window.drawn.some(text => text.startsWith('2020-01'))")
    assert not [text for text in page.evaluate("window.drawn") if "/" in text]


def test_coastlines_are_drawn_over_maps(page, server, numbers, tmp_path):
    asked = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    show(page, server, d=numbers["sharded"], p="t")
    page.wait_for_load_state("networkidle")
    assert asked.count("/coastline.txt") == 1
    drawn = "document.querySelector('canvas[data-pane=first]').toDataURL()"
    with_coast = page.evaluate(drawn)
    page.get_by_label("coast", exact=True).uncheck()
    page.wait_for_url(re.compile("coast=0"))
    page.wait_for_function(f"once => {drawn} !== once", arg=with_coast)
    page.keyboard.press("o")
    page.wait_for_function(f"once => {drawn} === once", arg=with_coast)
    show(page, server, d=numbers["odd"], p="large")
    playwright.expect(page.get_by_label("coast", exact=True)).to_have_count(0)


def test_labels_of_a_line_are_whole_and_apart(page, tmp_path):
    root = omnizarr.create_group(tmp_path / "x.zarr")
    root["large"] = np.array([2**64 - 1, 0], "uint64")
    root.create_array("long", shape=(10**15,), chunks=(10**6,), dtype="f4")
    with serving.running(viewing.viewer(str(tmp_path / "x.zarr"))) as url:
        page.add_init_script(
            """window.drawn = [];
            const original = CanvasRenderingContext2D.prototype.fillText;
            CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
                const { a, b, e, f } = this.getTransform(), { width } = this.measureText(text);
                const left = { center: x - width / 2, right: x - width, end: x - width }[this.textAlign] ?? x;
                if (b === 0) window.drawn.push([text, a * left + e, a * (left + width) + e, y + f]);
                return original.call(this, text, x, y);
            };"""
        )
        for path in ("large", "long"):
            page.goto("about:blank")
            page.goto(f"{url}/#d=0&p={path}")
            page.wait_for_selector(".plot canvas")
            labels = [each for each in page.evaluate("window.drawn") if re.fullmatch(r"[\d,.−-]+", each[0])]
            assert len(labels) > 3
            assert min(left for _, left, _, _ in labels) >= 0
            along = sorted({(y, left, right) for _, left, right, y in labels})
            assert all(a[2] <= b[1] for a, b in pairwise(along) if a[0] == b[0])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("complex", lambda i: {0: "3 + 4j", 1: "0 + 1j", 2: "2 + 0j", 3: "-1 + 0j"}[(i[0] % 2) * 2 + i[1]]),
        ("large", lambda i: str(2**60 + 20 * i[0] + i[1])),
        ("when", lambda i: str(np.datetime64("2020-01-01T00:00:00") + np.timedelta64(60 * (20 * i[0] + i[1]), "s"))),
        ("packed", lambda i: f"{(20 * i[0] + i[1]) / 2 + 10:g} m"),
    ],
)
def test_values_of_every_type(page, server, numbers, path, words):
    show(page, server, d=numbers["odd"], p=path)
    index, said = pointed(page, 0.5, 0.3)
    assert said.startswith(words(index))


def test_the_name_of_a_node_is_seen_on_a_phone(page, server, numbers):
    page.set_viewport_size({"width": 360, "height": 640})
    show(page, server, d=numbers["v2"], p="t")
    name = page.locator(".crumbs [aria-current]").bounding_box()
    around = page.locator(".crumbs").bounding_box()
    assert around["x"] <= name["x"]
    assert name["x"] + name["width"] <= around["x"] + around["width"]


def test_keys(page, server, numbers):
    show(page, server, d=numbers["v2"], p="t")
    page.keyboard.press("/")
    playwright.expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("la")
    page.get_by_role("treeitem").filter(has_text="lat").first.wait_for()
    page.keyboard.press("Escape")
    current = page.locator("[role=treeitem][aria-selected=true]")
    current.wait_for()
    current.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("p=lon"))
    page.go_back()
    page.wait_for_selector("canvas[data-pane=first][data-state=complete]")
    canvas = page.locator("canvas[data-pane=first]")
    canvas.focus()
    page.keyboard.press("+")
    page.wait_for_url(re.compile("&z="))
    before = page.url
    page.keyboard.press("ArrowRight")
    playwright.expect(page).not_to_have_url(before)
    page.keyboard.press("g")
    page.wait_for_url(re.compile("grid=1"))
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("3")
    page.wait_for_url(re.compile("tab=table"))


def test_a_key_right_after_the_list_of_keys_closes_is_not_lost(page, server, numbers):
    show(page, server, d=numbers["v2"], p="t")
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.evaluate(
        """() => {
            document.querySelector("dialog[open]").close();
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "3", bubbles: true }));
        }"""
    )
    page.wait_for_url(re.compile("tab=table"))


def test_limits_are_moved_in_the_histogram(page, server, numbers):
    show(page, server, d=numbers["v2"], p="t")
    handle = page.get_by_role("slider", name="Upper limit of colours")
    before = float(handle.get_attribute("aria-valuenow"))
    handle.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile("limits=manual"))
    assert float(handle.get_attribute("aria-valuenow")) < before


def test_a_picture_is_saved_as_png(page, server, numbers, tmp_path):
    show(page, server, d=numbers["v2"], p="t")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save picture").click()
    path = tmp_path / "t.png"
    download.value.save_as(path)
    assert download.value.suggested_filename == "t.png"
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert width > 500
    assert height > 400


def test_requests_for_what_is_no_longer_seen_are_cancelled(page, server, numbers):
    with FaultProxy(server) as proxy:
        show(page, proxy.endpoint, d=numbers["v2"], p="t")
        proxy.fault(Delay(30), path="/t/c/", first=1, times=100)
        cancelled = []
        page.on("requestfailed", lambda request: cancelled.append(request.failure))
        slider = page.get_by_role("slider", name="time")
        slider.focus()
        with page.expect_request(re.compile("/t/c/1/")):  # asked for when the next frame is drawn
            page.keyboard.press("ArrowRight")
        with page.expect_event("requestfailed"):
            page.keyboard.press("ArrowRight")
        assert all("ABORTED" in failure for failure in cancelled)


def test_a_huge_array_is_drawn_from_few_tiles(page, server, numbers, browser, tmp_path):
    place = tmp_path / "huge.zarr"
    array = omnizarr.create_array(place, shape=(100_000, 100_000), chunks=(1000, 1000), dtype="uint8", fill_value=3)
    array[50_000:51_000, 50_000:51_000] = 200
    with serving.running(viewing.viewer(str(place))) as url:
        asked = []
        page.on("request", lambda request: asked.append(urlsplit(request.url).path))
        show(page, url, d=0)
        assert sum("/c/" in path for path in asked) <= 40
        show(page, url, d=0, x=50_500, y=50_500, z=0.5)
        assert pointed(page, 0.5, 0.47)[1] == "200"


def test_elements_of_a_curved_grid_have_their_latitudes_and_longitudes(page, tmp_path):
    root = omnizarr.create_group(tmp_path / "curved.zarr")
    y, x = np.mgrid[:90, :150]
    lat, lon = 30 + y / 3 + 5 * np.sin(x / 150 * np.pi), -20 + x / 2.5 + y / 10
    named, names = {"coordinates": "lat lon"}, ["time", "y", "x"]
    root.create_array("t", data=np.stack([lat - lon] * 2), chunks=(1, 50, 50), dimension_names=names, attributes=named)
    for name, values, units in (("lat", lat, "degrees_north"), ("lon", lon, "degrees_east")):
        root.create_array(name, data=values, chunks=(50, 50), dimension_names=["y", "x"], attributes={"units": units})
    with serving.running(viewing.viewer(tmp_path / "curved.zarr")) as url:
        show(page, url, p="t")
        playwright.expect(page.get_by_label("flip")).to_be_checked()  # north is up
        playwright.expect(page.locator(".controls")).to_contain_text("no coast: the grid is curved")
        for place in ((0.3, 0.3), (0.8, 0.7)):
            index, _ = pointed(page, *place)
            says(page, ".readout", "°E")
            row, column = index[1:]
            found = page.locator(".readout").inner_text()
            at = re.search(r"lat (\S+) °N, lon (\S+) °E", found.replace("−", "-"))
            assert (float(at[1]), float(at[2])) == pytest.approx((lat[row, column], lon[row, column]), rel=1e-7)


def test_a_map_without_coordinates_shows_where_it_lies(page, tmp_path):
    root = omnizarr.create_group(tmp_path / "maps.zarr")
    for name, code, transform in (
        ("geo", "EPSG:4326", [0.1, 0, -20.0, 0, -0.1, 65.0]),
        ("utm", "EPSG:32633", [100.0, 0, 500000.0, 0, -100.0, 5000000.0]),
    ):
        said = {"proj:code": code, "spatial:dimensions": ["y", "x"], "spatial:transform": transform}
        data = np.add.outer(np.arange(300.0), np.arange(400.0))
        root.create_array(name, data=data, dimension_names=("y", "x"), attributes=said)
    with serving.running(viewing.viewer(tmp_path / "maps.zarr")) as url:
        for name, unit, first, step in (("geo", "°N", 64.95, -0.1), ("utm", "m", 4999950, -100)):
            show(page, url, p=name)
            (row, _), _ = pointed(page)
            found = page.locator(".readout").inner_text().replace("−", "-")
            assert float(re.search(rf"y (\S+) {unit}", found)[1]) == pytest.approx(first + step * row, rel=1e-9)
            playwright.expect(page.get_by_label("coast", exact=True)).to_have_count(int(name == "geo"))
        says(page, ".place", "EPSG:32633 x 500000 to 540000, y 4970000 to 5000000")


def test_wells_of_a_plate_are_a_grid_and_missing_optional_elements_are_missing(page, tmp_path):
    wells = [
        {"path": path, "rowIndex": "AB".index(path[0]), "columnIndex": int(path[2]) - 1} for path in ("A/1", "B/2")
    ]
    plate = {"rows": [{"name": "A"}, {"name": "B"}], "columns": [{"name": "1"}, {"name": "2"}], "wells": wells}
    root = omnizarr.create_group(tmp_path / "plate.zarr", attributes={"ome": {"version": "0.5", "plate": plate}})
    for path in ("A/1", "B/2"):
        well = {"version": "0.5", "well": {"images": [{"path": "0"}]}}
        root.create_group(path, attributes={"ome": well})
        axes = [{"name": name, "type": "space"} for name in "yx"]
        scale = [{"type": "scale", "scale": [1, 1]}]
        image = {"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}
        root.create_group(f"{path}/0", attributes={"ome": {"version": "0.5", "multiscales": [image]}})
        root.create_array(f"{path}/0/0", data=np.eye(16, dtype="u1"))
    data = np.ma.masked_less(np.add.outer(np.arange(40), np.arange(40)).astype("i4"), 40)
    root.create_array("optional", data=data, dtype="optional[int32]")
    with serving.running(viewing.viewer(tmp_path / "plate.zarr")) as url:
        page.goto(f"{url}/#d=0")
        playwright.expect(page.locator(".plate .well:not(.none) img")).to_have_count(2)
        playwright.expect(page.locator(".plate .well.none")).to_have_count(2)
        page.get_by_label("Well B2").click()
        playwright.expect(page.locator(".crumbs")).to_contain_text("B / 2")
        show(page, url, p="optional")
        for place in ((0.35, 0.3), (0.75, 0.7)):
            index, words = pointed(page, *place)
            assert words == ("missing" if data.mask[index] else str(data[index]))


def test_labels_are_drawn_over_their_image(page, tmp_path):
    """The image has channels and the labels half as many rows and columns, and no channels."""
    root = omnizarr.create_group(tmp_path / "cells.zarr")
    labels = np.kron(np.array([[0, 1, 2], [3, 0, 4]], "u2"), np.ones((40, 40), "u2"))
    for path, data, names, step, more in (
        ("image", np.ones((2, 160, 240), "u1"), "cyx", 1, {}),
        (
            "image/labels/cells",
            labels,
            "yx",
            2,
            {"image-label": {"colors": [{"label-value": 3, "rgba": [255, 0, 0, 9]}]}},
        ),
    ):
        axes = [{"name": name, "type": "channel" if name == "c" else "space"} for name in names]
        scale = [{"type": "scale", "scale": [1 if name == "c" else step for name in names]}]
        image = {"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}
        root.create_group(path, attributes={"ome": {"version": "0.5", "multiscales": [image], **more}})
        root.create_array(f"{path}/0", data=data, dimension_names=list(names))
    root["image/labels"].attrs["ome"] = {"version": "0.5", "labels": ["cells"]}
    with serving.running(viewing.viewer(tmp_path / "cells.zarr")) as url:
        show(page, url, p="image", at="0,,", blend="one")
        drawn = "document.querySelector('canvas[data-pane=first]').toDataURL()"
        without = page.evaluate(drawn)
        page.get_by_label("cells", exact=True).check()
        page.wait_for_url(re.compile("labels=cells"))
        page.wait_for_function(f"once => {drawn} !== once", arg=without)
        page.wait_for_selector("canvas[data-pane=first][data-state=complete]")
        for place in ((0.3, 0.35), (0.55, 0.35), (0.35, 0.6), (0.8, 0.6)):
            index, words = pointed(page, *place)
            says(page, ".readout .label", f"label {labels[index[1] // 2, index[2] // 2]}")
            assert words == "1"
        page.get_by_label("cells", exact=True).uncheck()
        page.wait_for_function(f"once => {drawn} === once", arg=without)
