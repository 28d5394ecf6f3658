"""Check that everything is ready for a release: ``python -m tests.release dist``, which ``make release`` calls.

``--as-zarr`` checks omnizarr-as-zarr, for ``make release-as-zarr``; ``--conformance`` zarr-conformance, for
``make release-conformance``.
Every check that fails is printed; the exit code says whether there was one.
"""

import argparse
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout


def versions() -> dict[str, str]:
    """Return the version that each file states."""
    return {
        "src/omnizarr/__init__.py": re.findall(
            r'^__version__ = "(.*)"$', text("src/omnizarr/__init__.py"), re.MULTILINE
        )[0],
        "rust/Cargo.toml": tomllib.loads(text("rust/Cargo.toml"))["package"]["version"],
        "CITATION.cff": re.findall(r"^version: (.*)$", text("CITATION.cff"), re.MULTILINE)[0],
    }


def problems(directory: Path) -> Iterator[str]:
    """Yield what is still to be done."""
    stated = versions()
    version = stated["src/omnizarr/__init__.py"]
    yield from (
        f"{file} states version {found}, omnizarr.__version__ is {version}"
        for file, found in stated.items()
        if found != version
    )
    changes = text("CHANGELOG.md")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}$", changes, re.MULTILINE):
        yield f"CHANGELOG.md has no section [{version}] with its date"
    yield from unfinished(directory, "omnizarr", version, f"v{version}")


def problems_of_as_zarr(directory: Path) -> Iterator[str]:
    """Yield what is still to be done before omnizarr-as-zarr is published."""
    version = tomllib.loads(text("packages/omnizarr-as-zarr/pyproject.toml"))["project"]["version"]
    yield from unfinished(directory, "omnizarr_as_zarr", version, f"as-zarr-v{version}")
    needed = f"v{versions()['src/omnizarr/__init__.py']}"
    if needed not in git("tag").split():
        yield f"it needs the omnizarr of this tree, which has no tag {needed}: release that first"


def problems_of_conformance(directory: Path) -> Iterator[str]:
    """Yield what is still to be done before zarr-conformance is published."""
    source = text("packages/zarr-conformance/src/zarr_conformance/__init__.py")
    (version,) = re.findall(r'^__version__ = "(.*)"$', source, re.MULTILINE)
    yield from unfinished(directory, "zarr_conformance", version, f"conformance-v{version}")


def unfinished(directory: Path, project: str, version: str, tag: str) -> Iterator[str]:
    """Yield what commits, tags and built distributions lack."""
    if git("status", "--porcelain"):
        yield "there are changes that are not committed: git status"
    if tag not in git("tag", "--points-at", "HEAD").split():
        yield f"the commit has no tag {tag}: git tag --sign {tag}"
    built = [path.name for path in directory.glob(f"{project}-*")]
    wanted = {f"{project}-{version}.tar.gz", f"{project}-{version}-py3-none-any.whl"}
    yield from (f"{directory} lacks {name}: make dist" for name in sorted(wanted - set(built)))
    yield from (
        f"{directory} has {name}, of another version" for name in built if not name.startswith(f"{project}-{version}")
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--as-zarr", action="store_true", help="check omnizarr-as-zarr")
    parser.add_argument("--conformance", action="store_true", help="check zarr-conformance")
    options = parser.parse_args()
    check = problems_of_as_zarr if options.as_zarr else problems_of_conformance if options.conformance else problems
    found = list(check(options.directory))
    print("\n".join(found) if found else "ready for a release")
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
