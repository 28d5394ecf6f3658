"""The package without its native engine runs in Pyodide: CPython as WebAssembly, which has no threads and no sockets.

Node.js runs it. ``make servers`` installs the runtime. The wheels of NumPy and google-crc32c for it are downloaded by
the tests that need them, from where Pyodide publishes them.
"""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tests.servers import need_package, skip

SOURCE = Path(__file__).parents[1] / "src"

RUN = """
const [runtime, source, packages, code] = process.argv.slice(1);
const { loadPyodide } = await import(`file://${runtime}/pyodide.mjs`);
const python = await loadPyodide({ indexURL: `${runtime}/` });
python.mountNodeFS("/source", source);
try {
  await python.loadPackage(JSON.parse(packages), { messageCallback: () => {}, errorCallback: () => {} });
  for (const name of JSON.parse(packages)) python.pyimport(name.replaceAll("-", "_"));
} catch (error) {
  console.error(String(error));
  process.exit(3);
}
console.log(python.runPython(`import sys; sys.path.insert(0, "/source")\\n${code}`));
"""

WRITE_AND_READ = """
import threading
import numpy as np
import omnizarr

values = np.arange(6000, dtype="float32").reshape(60, 100)
store = omnizarr.storage.MemoryStore()
group = omnizarr.create_group(store)
for name, options in {
    "v3": {"compressors": [{"name": "gzip", "configuration": {"level": 5}}, {"name": "crc32c"}]},
    "sharded": {"compressors": None, "shards": (20, 50)},
}.items():
    array = group.create_array(name, shape=(60, 100), chunks=(10, 10), dtype="float32", **options)
    array[...] = values
again = omnizarr.open(store, mode="r")
assert sorted(again) == ["sharded", "v3"]
assert all(np.array_equal(again[name][5:25, ::3], values[5:25, ::3]) for name in again)
old = omnizarr.create_array({}, data=values, chunks=(10, 10), zarr_format=2, compressor={"id": "zlib", "level": 1})
assert np.array_equal(old[:], values)
assert threading.active_count() == 1
again["v3"].engine
"""

LIKE_PYODIDE = """
import sys, threading

def start(thread):
    raise RuntimeError("can't start new thread")

threading.Thread.start = start
sys.modules["numcodecs"] = sys.modules["omnizarr._native"] = None
"""


def in_pyodide(code, *packages):
    """Return what the last line of some code gives in Pyodide, as text."""
    runtime = need_package("pyodide")
    command = ["node", "--input-type=module", "-e", RUN, str(runtime), str(SOURCE), json.dumps(packages), code]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=300)
    if done.returncode == 3:
        skip(f"wheels of {', '.join(packages)} for Pyodide", "a connection to cdn.jsdelivr.net")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_package_is_imported_without_any_other():
    assert in_pyodide("import omnizarr, omnizarr.errors\nsys.platform + ' ' + omnizarr.__version__").startswith(
        "emscripten "
    )


def test_arrays_are_written_and_read_in_memory():
    assert in_pyodide(WRITE_AND_READ, "numpy", "google-crc32c") == "reference"


def test_arrays_are_written_and_read_where_no_thread_can_start_and_numcodecs_is_missing():
    command = [sys.executable, "-c", LIKE_PYODIDE + WRITE_AND_READ]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMNIZARR_ENGINE": "reference"}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=environment)
    assert done.returncode == 0, done.stderr


def test_dependencies_are_those_that_pyodide_has():
    lock = json.loads((need_package("pyodide") / "pyodide-lock.json").read_text("utf-8"))
    has = {name: package["version"] for name, package in lock["packages"].items()}
    machine = {
        "sys_platform": "emscripten",
        "platform_machine": "wasm32",
        "platform_python_implementation": "CPython",
        "python_version": lock["info"]["python"].rpartition(".")[0],
    }
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [Requirement(each) for each in project["dependencies"]]
    needed = [each for each in wanted if each.marker is None or each.marker.evaluate(machine)]
    assert {each.name for each in needed} == {"numpy", "google-crc32c"}
    assert all(each.specifier.contains(has[each.name]) for each in needed)
