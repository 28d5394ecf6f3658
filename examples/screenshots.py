"""The screenshots of the manual: real data, the demo's, in `omnizarr view`, photographed in Chromium.

Run: python examples/screenshots.py (with omnizarr, its extras "serve", "demo" and "test", and the page, `make page`).
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import demo
import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from skimage.color import rgb2hed

import omnizarr
from omnizarr.web.serving import running
from omnizarr.web.viewing import viewer

TARGET = Path(__file__).resolve().parents[1] / "docs" / "_static"
LARGEST = 200_000
WIDE, NARROW = {"width": 1200, "height": 760}, {"width": 420, "height": 760}

# Name, address, and how it is taken: light or dark, the size, and where the pointer is, in parts of the picture.
PICTURES = [
    ("group", "d=0&p=earth", "light", {"width": 1200, "height": 420}, None),
    ("map", "d=0&p=earth/land&cmap=cividis&min=0&max=1&limits=manual", "light", WIDE, (0.55, 0.4)),
    ("zoom", "d=0&p=earth/land&x=5790&y=1440&z=1.1&cmap=cividis&min=0&max=1&limits=manual", "dark", WIDE, (0.5, 0.5)),
    ("chunks", "d=0&p=earth/land&tab=chunks", "light", WIDE, (0.6, 0.4)),
    ("brain", "d=0&p=brain/anatomy&cmap=magma&dims=2,1&at=16,,&flip=1", "dark", WIDE, (0.5, 0.5)),
    ("compare", "d=0&p=brain/anatomy&d2=1&p2=anatomy&cmap=grey&dims=2,1&at=16,,&flip=1", "light", WIDE, (0.7, 0.5)),
    ("channels", "d=2", "dark", {"width": 1000, "height": 660}, (0.4, 0.4)),
    ("line", "d=0&p=brain/anatomy&tab=line&line=0&at=,20,12", "light", WIDE, None),
    ("small", "d=2&blend=one&cmap=magma", "light", NARROW, None),
]


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the pictures shall show short names
        places = ("atlas.zarr", "half-precision.zarr", "tissue.ome.zarr")
        write(*places)
        with running(viewer(*places)) as url, sync_playwright() as driver:
            program = shutil.which("chromium") or shutil.which("google-chrome")
            browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
            for name, address, scheme, size, pointer in PICTURES:
                if not sys.argv[1:] or name in sys.argv[1:]:
                    take(browser, f"{url}/#{address}", scheme, size, pointer, TARGET / f"view-{name}.png")
            browser.close()


def write(atlas, half, tissue):
    """Write the demo's data: sharded v3, v2, and an OME-Zarr image of the stains that microscopists look for."""
    data = demo.load()
    root = omnizarr.create_group(atlas, attributes={"title": "Land and brains"})
    land = data["land"][::4, ::4]
    attributes = {"long_name": "land", "source": "GLOBE, every fourth kilometre"}
    named = {"dimension_names": ["lat", "lon"], "attributes": attributes}
    root.create_array("earth/land", data=land, chunks=(225, 225), shards=(450, 450), fill_value=False, **named)
    for name, units in (("lat", "degrees_north"), ("lon", "degrees_east")):
        root.create_array(f"earth/{name}", data=data[name][::4], dimension_names=[name], attributes={"units": units})
    root.create_array("brain/anatomy", data=data["anatomy"], chunks=(16, 16, 16), dimension_names=list("xyz"))
    root.create_array("brain/series", data=data["series"], chunks=(64, 48, 12, 1), dimension_names=list("xyzt"))
    copy = omnizarr.create_group(half, zarr_format=2)
    copy.create_array("anatomy", data=data["anatomy"].astype("float16"), chunks=(16, 16, 16))
    write_image(tissue, data["tissue"])


def write_image(place, tissue):
    stains = np.moveaxis(rgb2hed(tissue), -1, 0)[::2].clip(0).astype("float32")  # there is no eosin in it
    names = {"hematoxylin": "4060FF", "DAB": "FFB000"}
    channels = [
        {"label": label, "color": color, "window": {"start": 0, "end": float(np.percentile(stain, 99.5))}}
        for (label, color), stain in zip(names.items(), stains, strict=True)
    ]
    axes = [{"name": "c", "type": "channel"}, *({"name": name, "type": "space", "unit": "micrometer"} for name in "yx")]
    scales = [[1, 0.5 * 2**k, 0.5 * 2**k] for k in range(2)]
    datasets = [
        {"path": str(k), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
        for k, scale in enumerate(scales)
    ]
    multiscale = {"name": "immunohistochemistry", "axes": axes, "datasets": datasets}
    attributes = {"ome": {"version": "0.5", "multiscales": [multiscale], "omero": {"channels": channels}}}
    root = omnizarr.create_group(place, attributes=attributes)
    for k in range(2):
        root.create_array(str(k), data=stains[:, :: 2**k, :: 2**k], chunks=(1, 128, 128), dimension_names=list("cyx"))


def take(browser, address, scheme, size, pointer, path):
    context = browser.new_context(viewport=size, color_scheme=scheme)
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("canvas[data-state=complete], .plot canvas, .chunkmap canvas, .member img", timeout=120_000)
    page.wait_for_load_state("networkidle")
    if pointer:
        box = page.locator("canvas").first.bounding_box()
        page.mouse.move(box["x"] + pointer[0] * box["width"], box["y"] + pointer[1] * box["height"])
    page.wait_for_timeout(500)  # the pointer's value is read
    page.screenshot(path=path)
    context.close()
    shrink(path)
    print(path.name, path.stat().st_size)


def shrink(path):
    """Keep a screenshot as it is if it is small, else in as many colours as it takes."""
    picture = Image.open(path).convert("RGB")
    picture.save(path, optimize=True)
    for colours in (256, 128, 64, 32):
        if path.stat().st_size <= LARGEST:
            return
        picture.quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)
    raise SystemExit(f"{path} is larger than {LARGEST} bytes")


if __name__ == "__main__":
    main()
