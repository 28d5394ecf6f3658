"""Put a built manual beside those of other versions: ``python docs/publish.py BUILT SITE NAME``.

SITE is what the web server shows: a folder per version, `versions.json`, which fills the list of versions on each page,
and an `index.html` that leads to the newest release. NAME is the folder: the number of a release, or ``dev``.
"""

import json
import shutil
import sys
from pathlib import Path

from packaging.version import InvalidVersion, Version

DEVELOPMENT = "dev"
PAGE = """<!doctype html>
<meta charset="utf-8">
<title>omnizarr</title>
<meta http-equiv="refresh" content="0; url={name}/">
<a href="{name}/">The manual of omnizarr</a>
"""


def publish(built: Path, site: Path, name: str) -> None:
    """Replace one version, and write what names them all."""
    if name != DEVELOPMENT:
        Version(name)
    shutil.rmtree(site / name, ignore_errors=True)
    shutil.copytree(built, site / name)
    releases = sorted(filter(None, map(release, site.iterdir())), reverse=True)
    stable = next((each for each in releases if not each.is_prerelease), None)
    titles = {str(each): f"{each} (stable)" if each == stable else str(each) for each in releases}
    if (site / DEVELOPMENT).is_dir():
        titles = {DEVELOPMENT: "development"} | titles
    versions = [{"name": each, "title": title} for each, title in titles.items()]
    (site / "versions.json").write_text(json.dumps(versions, indent=2) + "\n", encoding="utf-8")
    (site / "index.html").write_text(PAGE.format(name=stable or next(iter(titles))), encoding="utf-8")
    (site / ".nojekyll").touch()  # GitHub would leave out `_static`


def release(folder: Path) -> Version | None:
    """Return the version whose manual a folder holds; None: it holds none."""
    try:
        return Version(folder.name) if folder.is_dir() else None
    except InvalidVersion:
        return None


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
