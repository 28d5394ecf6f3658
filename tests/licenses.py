"""Collect the licences of the crates in the native engine: ``python -m tests.licenses``.

Writes LICENSE-THIRD-PARTY.txt, which every wheel contains. It has the texts in the sources of the
crates, and in the C libraries that some of them contain. A text that several crates share is written once.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "LICENSE-THIRD-PARTY.txt"
FEATURES = ["--features", "python,remote"]
_NAMES = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE)([-._].*)?", re.IGNORECASE)
_HEAD = """\
The native engine of omnizarr (omnizarr/_native) contains these libraries. omnizarr has the licence in LICENSE.
"""


def crates() -> dict[str, str]:
    """Return the versions of the crates that the engine contains, on any platform, by name and version."""
    tree = [
        "cargo",
        "tree",
        "--locked",
        *FEATURES,
        "--edges",
        "normal,no-proc-macro",
        "--target",
        "all",
        "--prefix",
        "none",
    ]
    done = subprocess.run([*tree, "--format", "{p}"], cwd=ROOT / "rust", capture_output=True, text=True, check=True)
    found = {
        tuple(line.split()[:2]) for line in done.stdout.splitlines() if "(proc-macro)" not in line and "/" not in line
    }
    return {f"{name} {version.removeprefix('v')}": name for name, version in sorted(found)}


def collected() -> str:
    """Return the text of the file."""
    metadata = ["cargo", "metadata", "--locked", "--format-version", "1", *FEATURES]
    done = subprocess.run(metadata, cwd=ROOT / "rust", capture_output=True, text=True, check=True)
    packages = {f"{each['name']} {each['version']}": each for each in json.loads(done.stdout)["packages"]}
    users: dict[str, list[str]] = {}
    listed = []
    for crate in crates():
        package = packages[crate]
        folder = Path(package["manifest_path"]).parent
        listed.append(f"{crate}: {package['license'] or 'see its text'}")
        for file in sorted(folder.rglob("*")):
            if _is_licence(file, folder, package["license"] or ""):
                users.setdefault(_normal(file), []).append(crate)
    for file in sorted((ROOT / "rust" / "licenses").glob("*.txt")):  # the crate blosc-src leaves them out
        users.setdefault(_normal(file), []).append(f"C-Blosc, in blosc-src ({file.stem})")
    texts = [f"{', '.join(dict.fromkeys(names))}\n\n{text}" for text, names in users.items()]
    return f"\n{'=' * 80}\n".join(["\n".join([_HEAD, *listed, ""]), *texts])


def _is_licence(file: Path, folder: Path, choice: str) -> bool:
    """Return whether a file of a crate has a text that applies: of several licences to choose from, the shortest."""
    if not (file.is_file() and _NAMES.fullmatch(file.name)) or file.suffix in {".rs", ".c", ".h"}:
        return False
    if {"tests", "test", "benches", "doc"}.intersection(file.relative_to(folder).parts):
        return False
    if "MIT" in choice and re.search("APACHE|UNLICENSE|ZLIB|BOOST", file.name.upper()) and file.parent == folder:
        return " AND " in choice
    # zstd: under the licence in LICENSE or, instead, that in COPYING.
    return not (file.name == "COPYING" and (file.parent / "LICENSE").exists())


def _normal(file: Path) -> str:
    """Return a text with its spaces at the ends of lines removed."""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


if __name__ == "__main__":
    TARGET.write_text(collected(), encoding="utf-8")
