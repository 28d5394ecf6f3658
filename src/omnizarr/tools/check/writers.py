"""Known mistakes of writers that only a mark of the writer in the hierarchy reveals.

`omnizarr.netcdf` finds mistakes of netCDF-C when it reads a dataset of NCZarr. One of them gives wrong numbers to
readers of plain Zarr: versions 4.8.0 to 4.9.2 stored all numbers in little-endian order, regardless of the ``dtype``.
The attribute ``_NCProperties`` of the root tells the version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from omnizarr.errors import StoreError
from omnizarr.formats.paths import upwards
from omnizarr.nodes.location import StorePath
from omnizarr.tools.check.inventory import Inventory, Node
from omnizarr.tools.check.report import Findings
from omnizarr.tools.extension import extension

_MARK: Final = "_NCProperties"
_VERSIONS = re.compile(r"netcdf=4\.(?:8\.[0-9]|9\.[0-2])(?![0-9])")
_BIG = re.compile(r">[iufcmMU](?!1$)[0-9]+.*")


def check_byte_order(findings: Findings, inventory: Inventory, node: Node) -> None:
    """Report an array whose elements are not stored in the byte order of its document."""
    array = node.values.get(".zarray")
    if not isinstance(array, Mapping):
        return
    dtype = array.get("dtype")
    if not isinstance(dtype, str) or not _BIG.fullmatch(dtype):
        return
    version = _version(inventory, node.path)
    if version is not None:
        findings.add(
            "netcdf-byte-order",
            node.path,
            f"big-endian, but {version} stored little-endian",
            key=node.marker.key,
            pointer=f"{node.base}/dtype",
            found=dtype,
            expected=repr("<" + dtype[1:]),
        )


def is_netcdf(node: Node) -> bool:
    """Whether netCDF left a mark on a node."""
    documents: list[Any] = [value for value in node.values.values() if isinstance(value, Mapping)]
    documents += [each["attributes"] for each in documents if isinstance(each.get("attributes"), Mapping)]
    return any(name == _MARK or name.lower().startswith("_nczarr") for each in documents for name in each)


def check_netcdf(findings: Findings, inventory: Inventory, where: StorePath) -> None:
    """Report where the netCDF view of the nodes departs from their documents."""
    reported = {found.path for found in findings.found if found.code == "netcdf-byte-order"}
    try:
        told_by_path = extension().notes(where)
    except StoreError:  # which is found again, and entered, where the key is looked at
        return
    for path, notes in told_by_path.items():
        for node in inventory.nodes.get(path, ())[:1]:
            for note in notes:
                if path in reported and note.pointer.endswith("/dtype"):
                    continue
                code = "netcdf-short-fill" if note.pointer.endswith("/fill_value") else "nczarr-repaired"
                findings.add(code, path, note.message, key=node.marker.key, pointer=note.pointer)


def _version(inventory: Inventory, path: str) -> str | None:
    """Return which of the versions of netCDF-C concerned wrote the hierarchy that a node is in; None if none did."""
    for above in upwards(path):
        for node in inventory.nodes.get(above, ()):
            attributes = node.values.get(".zattrs")
            mark = attributes.get(_MARK) if isinstance(attributes, Mapping) else None
            found = _VERSIONS.search(mark) if isinstance(mark, str) else None
            if found is not None:
                return found[0].replace("netcdf=", "netCDF-C ")
    return None
