"""The drafts of Zarr v3 from July 2020 to January 2022 as zarrita, the first program for them, writes them.

python3.8 -m venv env; env/bin/pip install numpy==1.19.5 numcodecs==0.7.3 fsspec==0.8.7
git clone https://github.com/alimanfoo/zarrita
git -C zarrita fetch origin '+refs/pull/*/head:refs/pull/*'
env/bin/python tests/corpus/make/zarrita2021.py zarrita

zarrita has no releases: a case is named by the day and the commit, and runs the module of that commit. Those said to
be proposals were never merged.
"""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import fsspec
import numcodecs
import numpy as np
from numcodecs import Blosc, GZip
from recorder import Case

GRID = np.arange(35).reshape(5, 7)
VERSIONS = f"fsspec {fsspec.__version__}, numcodecs {numcodecs.__version__}, numpy {np.__version__}"
WORDS = str.maketrans({"?": "bool", "1": "_one", "2": "_two", "4": "_four", "8": "_eight"})  # no digits before 2021
STAGES = {
    "2020-07-02_f66871a": "",
    "2020-07-29_586d99a_slashes": ", a proposal",
    "2020-07-30_e7e298d": "",
    "2020-09-07_7f95e56_separator": ", a proposal",
    "2020-09-21_39bfe49": "",
    "2020-10-16_1e82e9e": "",
    "2021-03-18_c9272ce": "",
    "2021-03-25_e174ee4_codecs": ", a proposal",
    "2021-05-27_3a0a14f_uri": ", a proposal",
    "2022-01-24_31789f6_sharding": ", a proposal",
}
COMPLETE = {
    "2020-07-02_f66871a",
    "2020-09-21_39bfe49",
    "2021-03-18_c9272ce",
}  # the others do the same, but for a detail


def case(name, program):
    recording = Case("zarrita", name, program)
    recording.document["script"] = "tests/corpus/make/zarrita2021.py"
    return recording


def module_at(repository, commit, name):
    """Return the module as it was at `commit`."""
    source = subprocess.run(
        ["git", "-C", repository, "show", f"{commit}:{name}.py"], check=True, stdout=subprocess.PIPE
    ).stdout
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, f"{name}.py")
        path.write_bytes(source)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return module


class Hierarchy:
    """A hierarchy of one stage of zarrita, and the case that records it."""

    def __init__(self, recording, module):
        self.recording = recording
        self.module = module
        self.hierarchy = module.create_hierarchy(str(recording.store))

    def add(self, path, data, chunk_shape=(3, 4), only=Ellipsis, attributes=None, **options):
        """Write `data` (only the part `only`), read it back, record what was read."""
        data = np.asarray(data)
        options.setdefault("compressor", None)
        array = self.hierarchy.create_array(
            "/" + path, shape=data.shape, dtype=data.dtype, chunk_shape=chunk_shape, attrs=attributes, **options
        )
        if only is not None:
            array[only] = data[only] if data.ndim else data.item()
        array = self.module.get_hierarchy(str(self.recording.store)).get_array("/" + path)
        found = np.asarray(array[...] if data.ndim else array[()])
        if only is Ellipsis:
            np.testing.assert_array_equal(found, data)
        assert found.dtype == data.dtype
        self.recording.array(path, found, array.fill_value, attributes)
        return array

    def group(self, path, attributes=None, explicit=True):
        if explicit:
            self.hierarchy.create_group("/" + path, attrs=attributes)
        self.recording.group(path, attributes)

    def members(self):
        """Expect every group to have the members that zarrita lists."""
        hierarchy = self.module.get_hierarchy(str(self.recording.store))
        for path, node in self.recording.document["nodes"].items():
            if node["node_type"] == "group":
                listing = getattr(hierarchy, "get_children", getattr(hierarchy, "list_children", None))("/" + path)
                names = [item["name"] for item in listing] if isinstance(listing, list) else listing
                node["members"] = sorted(names)


def attempt(what, write):
    """Call `write` and say what this stage cannot do."""
    try:
        write()
    except Exception as error:  # noqa: BLE001
        print(f"  {what}: {type(error).__name__}: {error}")


def write(h, stage):
    codes = ["?", "i1", "u1", "i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8"]
    for code in codes if stage.startswith("2021-03-18") else codes[:2]:
        for order in "<>" if code[-1] in "248" else "|":
            name = {"<": "little_", ">": "big_", "|": ""}[order] + code.translate(WORDS)
            data = (GRID % 2 if code == "?" else GRID).astype(order + code)
            if code == "f8":
                data[0, :3] = np.nan, np.inf, -0.0
            attempt(code, lambda data=data, name=name: h.add(f"types/{name}", data, (5, 7)))
    compressor = None if "sharding" in stage else GZip(1)  # which cannot compress
    h.add("compressed", GRID, compressor=compressor, attributes={"answer": 42, "text": "Größe \N{GRINNING FACE}"})
    h.add("missing_chunks", GRID.astype("i4"), fill_value=-7, only=np.s_[3:, :4])
    if stage not in COMPLETE:
        write_details(h, stage)
        return
    h.add("all_missing", GRID.astype("f4"), fill_value=2.5, only=None)
    h.add("no_fill_value", GRID.astype(">f4"), only=np.s_[:3, :])
    attempt("bool fill", lambda: h.add("bool_fill", GRID > 3, fill_value=True, only=np.s_[:3, :4]))
    h.add("line", np.arange(50, dtype="u2"), (7,), compressor=compressor)
    h.add("cube", np.arange(60, dtype=">u2").reshape(3, 4, 5), (2, 3, 4))
    attempt("scalar", lambda: h.add("scalar", np.array(2.5), ()))
    h.group("marvin", {"heart": "gold"})
    h.add("marvin/android", GRID.astype("i4"))
    h.add("marvin.group", GRID.astype("i4"))
    h.group("x.array", {"kind": "group"})
    h.group("types", explicit=False)
    h.group("", explicit=False)
    write_details(h, stage)


def write_details(h, stage):
    """Write what stages differ in."""
    for separator in "./":
        for option in ["chunk_separator", "separator"]:
            attempt(
                option,
                lambda separator=separator, option=option: h.add(
                    "dots" if separator == "." else "slashes", GRID.astype("i2"), **{option: separator}
                ),
            )
    h.group("plain/deep")
    if "codecs" in stage:
        for cname in ["lz4", "zstd", "zlib"]:
            h.add(f"blosc_{cname}", GRID, compressor=Blosc(cname, 5, Blosc.SHUFFLE))
    if "sharding" in stage:
        sharding = {"chunks_per_shard": (2, 2)}
        h.add("sharded", GRID, (2, 2), sharding=dict(sharding))
        h.add("sharded_missing", GRID, (2, 2), sharding=dict(sharding), only=np.s_[:1, :3], fill_value=-1)
        h.add("sharded_dots", GRID.astype(">i2"), (1, 2), sharding={"chunks_per_shard": (3, 2)}, chunk_separator=".")
    h.members()


if __name__ == "__main__":
    for name, remark in STAGES.items():
        day, commit = name.split("_")[:2]
        module = module_at(sys.argv[1], commit, "zarr_v3" if day == "2020-07-02" else "zarrita")
        program = f"zarrita {commit} of {day}{remark}, {VERSIONS}"
        print(name)
        with case(name, program) as c:
            write(Hierarchy(c, module), name)
        if name in COMPLETE or "slashes" in name:
            with case(f"{name}_root_array", program) as c:
                Hierarchy(c, module).add("", GRID.astype("i4"), attributes={"a": 1})
