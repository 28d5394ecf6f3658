"""Everyday tasks of five kinds of users are found on the front page of the manual, or one click from it."""

import re

import pytest

from tests.pages import ROOT

pytestmark = pytest.mark.rules

DOCS = ROOT / "docs"
LINKS = re.compile(r"\[[^\]]*\]\(([^)#\s]+\.md)?(?:#([\w-]+))?\)|^:link: (\S+)$|^(?:\.\./)?([\w/.-]+)$", re.MULTILINE)

# Each task, the page that has it, the heading there, and what the reader types.
TASKS = {
    "climate": [
        ("open an old store in xarray", "howto/xarray.md", "Open it", 'engine="omnizarr"'),
        ("select a month and a box", "howto/subset.md", "Read a part", 'sel(time="2020-01", lat=slice(50, 40))'),
        ("print a month", "howto/subset.md", "Without xarray", "omnizarr get "),
        ("keep a part", "howto/subset.md", "Keep the part", "omnizarr.to_zarr("),
        ("many files into one", "howto/many-as-one.md", "netCDF files", "omnizarr.combine("),
        ("netCDF to Zarr and back", "howto/netcdf.md", None, "omnizarr convert "),
        ("append a time step", "howto/xarray.md", "Write it in today's format", 'append_dim="time"'),
        ("choose chunks for maps and time series", "howto/chunks.md", None, "omnizarr advise"),
        ("rechunk", "howto/chunks.md", "For an array that exists", "omnizarr.rechunk("),
        ("round values to save space", "howto/lossy.md", None, "bitround"),
    ],
    "bioimaging": [
        ("OME-Zarr 0.4 to 0.5", "howto/ome-zarr.md", None, "TranslatedStore("),
        ("TIFF to Zarr", "howto/tiff.md", "Convert it", 'omnizarr.convert("cells.tif"'),
        ("make a pyramid", "cli.md", "pyramid", "omnizarr pyramid"),
        ("see an image in napari", "howto/napari.md", None, "viewer.add_image("),
        ("see an image in the browser", "howto/view.md", None, "omnizarr view"),
        ("SpatialData", "howto/spatialdata.md", None, "spatialdata.read_zarr("),
        ("share an image with a web page", "howto/serve.md", "Read it", "zarrita"),
        ("draw an array in a terminal", "howto/look.md", None, "omnizarr show"),
    ],
    "single-cell": [
        ("read and write AnnData", "howto/anndata.md", None, "anndata.read_zarr("),
        ("sparse matrices", "howto/anndata.md", "Sparse matrices", "sparse_dataset("),
        ("cells that do not fit into memory", "howto/anndata.md", "Larger than memory", "read_lazy("),
        ("pack into one file", "howto/copy.md", None, "omnizarr cp"),
        ("train on an array", "howto/pytorch.md", None, "DataLoader("),
        ("make zarr-python faster", "howto/speed-up-zarr.md", "Switch it on", "accelerate()"),
        ("a package that only calls zarr", "howto/under-the-name-zarr.md", "Switch it on", "install()"),
    ],
    "machine learning and computing": [
        ("workers of a DataLoader", "howto/pytorch.md", None, "multiprocessing_context"),
        ("write from SLURM", "howto/parallel-writes.md", "From SLURM", "SLURM_ARRAY_TASK_ID"),
        ("write from MPI", "howto/parallel-writes.md", "From MPI", "mpiexec"),
        ("write from dask", "howto/parallel-writes.md", "From dask", "to_zarr("),
        ("dask on S3", "howto/dask-s3.md", None, "from_zarr("),
        ("why is a read slow", "howto/slow-reads.md", None, "--trace"),
        ("a data type of my own", "howto/write-your-own.md", "A data type", "data_types"),
        ("keep decoded chunks", "caching.md", None, "chunk_cache"),
    ],
    "archives and operations": [
        ("migrate v2 to v3", "howto/migrate-v2-to-v3.md", "In place", "--in-place"),
        ("check data", "howto/check-and-repair.md", "Check it", "omnizarr check"),
        ("repair data", "howto/check-and-repair.md", "Repair what is certain", "omnizarr repair"),
        ("which way to copy", "howto/copy.md", None, "omnizarr cp"),
        ("publish digests", "digests.md", None, "omnizarr digest"),
        ("read a public bucket", "howto/object-stores.md", "S3", '"anon": True'),
        ("pay for requests", "howto/object-stores.md", "S3", "requester_pays"),
        ("serve over HTTP with a token", "howto/serve.md", "Let others reach it", "--token new"),
        ("compare two hierarchies", "cli.md", "diff", "omnizarr diff"),
        ("what does a word mean", "explanation/glossary.md", None, "consolidated metadata"),
        ("what changed", "changelog.md", None, "CHANGELOG.md"),
    ],
}


def links(page):
    """Return the pages that a page links to, in its text and in its tables of contents."""
    text = (DOCS / page).read_text("utf-8")
    found = set()
    for target, _, card, entry in LINKS.findall(text):
        name = target or (f"{card}.md" if card else f"{entry}.md" if entry else "")
        path = (DOCS / page).parent / name
        if name and path.is_file():
            found.add(path.resolve().relative_to(DOCS).as_posix())
    return found


def test_tasks_are_many():
    assert sum(map(len, TASKS.values())) >= 40


@pytest.mark.parametrize(("task", "page", "heading", "typed"), [task for tasks in TASKS.values() for task in tasks])
def test_task_is_found_in_two_clicks_and_its_page_says_what_to_type(task, page, heading, typed):
    front = links("index.md")
    assert page in front.union(*map(links, front)), task
    text = (DOCS / page).read_text("utf-8")
    if heading:
        assert f"## {heading}\n" in text, task
        text = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    assert typed in text, task
