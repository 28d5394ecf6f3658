"""Install what ``make dist`` built, each in a new environment with only Python, and use it as a new user would.

``python -m tests.distributions dist`` prints one line per wheel: its size, the time to install it, and its engine.
``--as-zarr DIRECTORY`` tries the wheel of omnizarr-as-zarr there instead, beside the one in ``dist``;
``--conformance DIRECTORY`` that of zarr-conformance, on that omnizarr.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

LIMIT = 16_000_000
"""Most bytes that the installed package may take, without what it depends on."""

PAGE = "omnizarr/web/page/index.html"
"""What `make page` builds; wheels have it if it was built here."""

QUICK = ("api/test_saving.py", "codecs/test_gzip.py", "test_names.py", "test_packaging.py")
"""Tests of the source distribution: that they run at all shows that nothing is missing."""

FIRST_USE = """
import os, tempfile
import numpy as np, omnizarr

place = os.path.join(tempfile.mkdtemp(), "heights.zarr")
data = np.arange(500_000, dtype="float32").reshape(500, 1000)
array = omnizarr.create_array(place, shape=(1000, 1000), chunks=(100, 100), dtype="float32")
array[:500] = data
again = omnizarr.open(place, mode="r")
assert np.array_equal(again[:500], data) and not again[500:].any()
print(again.engine)
"""

UNDER_THE_NAME = """
import omnizarr_as_zarr
omnizarr_as_zarr.install()
import zarr
assert zarr.ones((2, 2))[0].tolist() == [1, 1]
print(zarr.__version__)
"""


def run(*command: object, **environment: str) -> str:
    """Run a program that finds Python and the system's programs only, so neither Rust nor a compiler of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OMNIZARR", "VIRTUAL"))}
    done = subprocess.run(
        [str(part) for part in command],
        env={**kept, "PATH": os.defpath, **environment},
        cwd=tempfile.gettempdir(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout.strip()


def installed_size(wheel: Path) -> int:
    with zipfile.ZipFile(wheel) as archive:
        return sum(member.file_size for member in archive.infolist())


def has_page(wheel: Path) -> bool:
    with zipfile.ZipFile(wheel) as archive:
        return PAGE in archive.namelist()


def try_wheel(wheel: Path, expected: str) -> None:
    """Install a wheel into a new environment, use it, and say what that took."""
    with tempfile.TemporaryDirectory() as directory:
        programs = Path(directory) / "env" / ("Scripts" if os.name == "nt" else "bin")
        run(sys.executable, "-m", "venv", programs.parent)
        begun = time.perf_counter()
        # Where there is a wheel with the native engine, the one without it does not ask for numcodecs by itself.
        extra = "" if expected == "native" else "[numcodecs]"
        run(programs / "python", "-m", "pip", "install", "--quiet", f"{wheel}{extra}")
        seconds = time.perf_counter() - begun
        engine = run(programs / "python", "-c", FIRST_USE)
        version = run(programs / "omnizarr", "--version")
        run(programs / "python", "-m", "pip", "install", "--quiet", f"{wheel}[cli]")
        assert run(programs / "omnizarr", "--version") == version
        assert "look" in run(programs / "omnizarr", "--help").lower()
    if (Path(__file__).parents[1] / "src" / PAGE).is_file():
        assert has_page(wheel), f"{wheel.name} is without the page of omnizarr view"
    size = installed_size(wheel)
    print(
        f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {size / 1e6:.1f} MB installed, {seconds:.0f} s to install"
    )
    print(f"  {version}")
    assert engine == expected, f"{wheel.name} runs on the engine {engine!r}; expected {expected!r}"
    assert size <= LIMIT, f"{wheel.name} takes {size:,} bytes when installed; at most {LIMIT:,} are allowed"


def try_sdist(archive: Path) -> None:
    """Unpack the source distribution, and run tests of it with the libraries that are installed here."""
    with tempfile.TemporaryDirectory() as directory, tarfile.open(archive) as packed:
        packed.extractall(directory, filter="data")
        tree = Path(directory) / archive.name.removesuffix(".tar.gz")
        tests = [tree / "tests" / name for name in QUICK]
        run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, PYTHONPATH=str(tree / "src"))
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB, tests pass")


def try_as_zarr(wheel: Path, omnizarr: Path) -> None:
    """Install omnizarr-as-zarr beside the wheel of omnizarr that runs anywhere, and use it."""
    with tempfile.TemporaryDirectory() as directory:
        programs = Path(directory) / "env" / ("Scripts" if os.name == "nt" else "bin")
        run(sys.executable, "-m", "venv", programs.parent)
        run(programs / "python", "-m", "pip", "install", "--quiet", f"{omnizarr}[numcodecs]", wheel)
        version = run(programs / "python", "-c", UNDER_THE_NAME)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e3:.0f} kB, zarr is {version}")


def try_conformance(wheel: Path, omnizarr: Path) -> None:
    """Install zarr-conformance, which needs NumPy alone, and test the wheel of omnizarr that runs anywhere with it."""
    with tempfile.TemporaryDirectory() as directory:
        kit, library = (
            Path(directory) / name / ("Scripts" if os.name == "nt" else "bin") for name in ("kit", "library")
        )
        run(sys.executable, "-m", "venv", kit.parent)
        run(sys.executable, "-m", "venv", library.parent)
        run(kit / "python", "-m", "pip", "install", "--quiet", wheel)
        run(library / "python", "-m", "pip", "install", "--quiet", f"{omnizarr}[numcodecs]")
        options = ("--impl", "omnizarr", "--python", library / "python", "--levels", "v2-core,v3-core,write-v3")
        said = run(kit / "zarr-conformance", "run", *options)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e3:.0f} kB; {said.splitlines()[-1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--installed", metavar="ENGINE", help="use what is installed, and expect this engine")
    parser.add_argument("--as-zarr", type=Path, metavar="DIRECTORY", help="try the wheel of omnizarr-as-zarr there")
    parser.add_argument("--conformance", type=Path, metavar="DIRECTORY", help="try the wheel of zarr-conformance there")
    options = parser.parse_args()
    if options.as_zarr:
        (wheel,) = options.as_zarr.resolve().glob("*.whl")
        (omnizarr,) = options.directory.resolve().glob("*-none-any.whl")
        try_as_zarr(wheel, omnizarr)
        return
    if options.conformance:
        (wheel,) = options.conformance.resolve().glob("*.whl")
        (omnizarr,) = options.directory.resolve().glob("*-none-any.whl")
        try_conformance(wheel, omnizarr)
        return
    if options.installed:
        assert run(sys.executable, "-c", FIRST_USE) == options.installed
        return
    for archive in options.directory.resolve().glob("*.tar.gz"):
        try_sdist(archive)
    wheels = sorted(options.directory.resolve().glob("*.whl"))
    assert wheels, "there is no wheel: run make dist"
    for wheel in wheels:
        try_wheel(wheel, "reference" if wheel.name.endswith("-none-any.whl") else "native")


if __name__ == "__main__":
    main()
