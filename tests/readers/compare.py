"""Compare all files of HDF5 in directories with h5py: ``python -m tests.readers.compare DIR...``.

Each dataset and attribute has the value that h5py gives, or a note; each link is shown, or has one. Datasets have the
types of h5py. What only one of the two reads is counted.

In the 375 HDF5 files with the ending .h5 of the HDF5 library 1.10.8 nothing differs: 1,193 datasets (through 1,232
links), 1,132 attributes, 59 external links; all else has a note. Not compared: 13 datasets of more than 32 MB, 24
datasets and 45 attributes that h5py cannot read; on ``h5repack_attr_refs.h5`` it may crash. Read by us only: four files
that a writer has not closed, ``cve_2020_10810.h5``, ``h5clear_fsm_persist_less.h5``, and three objects that newer
releases of libhdf5 refuse.

Test files of the HDF5 library and of netCDF-C: ``apt-get source --download-only hdf5 netcdf``, and unpack ``*.h5``
and ``*.nc``. Those of PyTables are in its wheel.
"""

# ruff: noqa: BLE001 - whatever h5py raises is a difference to count

import collections
import json
import math
import os
import sys
import traceback
import warnings
from pathlib import Path

import h5py
import numpy as np

import omnizarr
from omnizarr.errors import OmnizarrError
from omnizarr.readers.hdf5.store import HDF5Store
from omnizarr.stores import LocalStore

counts = collections.Counter()
LARGEST = 1 << 25


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def plain(value):
    """Return a value of h5py as numbers, texts and lists."""
    if isinstance(value, h5py.Empty):
        return []
    if isinstance(value, np.ndarray) and value.dtype.names is None:
        return [plain(each) for each in value] if value.ndim else plain(value[()])
    if (
        isinstance(value, np.void | tuple | np.ndarray)
        and getattr(value, "dtype", None) is not None
        and value.dtype.names
    ):
        if getattr(value, "ndim", 0):
            return [plain(each) for each in value]
        return {name: plain(value[name]) for name in value.dtype.names}
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode("utf-8", "replace")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, complex | np.complexfloating):
        return [float(value.real), float(value.imag)]
    if isinstance(value, np.generic) and not isinstance(value, np.void):
        return value.item()
    return value


def same(found, expected):
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[name], expected[name]) for name in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if (
        isinstance(expected, h5py.h5r.Reference | h5py.Reference | np.void)
        or type(expected).__name__ == "RegionReference"
    ):
        return True
    if isinstance(found, list) and len(found) == 1 and not isinstance(expected, list):
        return same(found[0], expected)
    if isinstance(expected, list) and len(expected) == 1 and not isinstance(found, list):
        return same(found, expected[0])
    if isinstance(found, float) and isinstance(expected, float) and math.isnan(found):
        return math.isnan(expected)
    if isinstance(found, str) and isinstance(expected, str):
        return found.rstrip(" \0") == expected.rstrip(" \0")
    return bool(found == expected)


def texts(value):
    """Return JSON texts as values."""
    return [texts(each) for each in value] if isinstance(value, list) else json.loads(value)


def in_own_process(path):
    """Check a file, on which libhdf5 may crash."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            check_file(path)
            os.write(writing, json.dumps([counts, reasons]).encode())
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        found = pipe.read()
    if os.waitpid(child, 0)[1] or not found:
        counts["files on which a process ended"] += 1
        say(f"{path}: the process ended: libhdf5 crashes, or there is a traceback above")
        return
    for all_of_them, added in zip((counts, reasons), json.loads(found), strict=True):
        all_of_them.clear()
        all_of_them.update(added)


def check_file(path):
    try:
        theirs = h5py.File(path)
    except OSError as error:
        try:
            HDF5Store(LocalStore(path.parent, read_only=True), path.name)
            counts["files that only we open"] += 1
            say(f"{path}: only we open it: {error}")
        except OmnizarrError:
            counts["files that neither opens"] += 1
        return
    with theirs:
        check_open_file(path, theirs)


def check_open_file(path, theirs):
    try:
        root = omnizarr.open_group(HDF5Store(LocalStore(path.parent, read_only=True), path.name), mode="r")
    except OmnizarrError as error:
        try:
            list(theirs)
        except (RuntimeError, KeyError):
            counts["files that neither reads"] += 1
            return
        counts["files that only h5py opens"] += 1
        say(f"{path}: {error}")
        return
    counts["files"] += 1
    noted = collections.defaultdict(list)
    for note in root.store.notes:
        noted[note.split(": ")[0].strip("/")].append(note)
    ours = {"": root, **dict(root.members(max_depth=None))}
    check_object(path, "", theirs, ours, noted)
    try:
        seen, groups = {h5py.h5o.get_info(theirs.id).addr}, [("", theirs)]
    except RuntimeError as error:
        counts["files of which h5py does not read the root"] += 1
        say(f"{path}: only we read the root: {error}")
        return
    visited = {""}
    for above, group in groups:
        try:
            names = list(group)
        except (RuntimeError, UnicodeError) as error:
            counts["groups that h5py cannot list"] += 1
            say(f"{path}: /{above}: h5py cannot list: {error}")
            continue
        for each in names:
            name = f"{above}/{each}" if above else each
            visited.add(name)
            found = check_link(path, name, group, each, ours, noted)
            if isinstance(found, h5py.Group) and isinstance(group.get(each, getlink=True), h5py.HardLink):
                address = h5py.h5o.get_info(found.id).addr
                if address not in seen:
                    seen.add(address)
                    groups.append((name, found))
    for name in ours.keys() - visited:
        counts["nodes that only we read"] += 1
        say(f"{path}: /{name}: only we read it")


def check_link(path, name, group, each, ours, noted):
    """Check what a link leads to, and return it if it is in the file."""
    name = name.encode("utf-8", "replace").decode()
    plain_name = "/".join((*name.split("/")[:-1], name.split("/")[-1].removeprefix("_nc4_non_coord_")))
    notes = " ".join(noted.get(name, []))
    try:
        link = group.get(each, getlink=True)
    except (RuntimeError, KeyError, ValueError):
        link = None
    except TypeError:
        counts["links of unknown kinds" if "a link of an unknown kind" in notes else "links MISSING"] += 1
        return None
    if isinstance(link, h5py.ExternalLink):
        counts["external links" if "it leads to" in notes else "external links MISSING"] += 1
        return None
    try:
        found = group[each]
    except Exception as error:
        if plain_name in ours:
            counts["nodes that only we read"] += 1
            say(f"{path}: /{name}: only we read it: {error}")
        else:
            counts["links that neither follows" if notes else "links that neither follows, without a note"] += 1
            _ = notes or say(f"{path}: /{name}: no note of a link that h5py cannot follow: {error}")
        return None
    if isinstance(found, h5py.Datatype):
        counts["named datatypes" if "named datatype" in notes else "named datatypes MISSING"] += 1
    elif plain_name not in ours:
        missing(path, name, found, notes, noted)
    else:
        check_object(path, plain_name, found, ours, noted)
    return found


def check_object(path, name, each, ours, noted):
    notes, node = " ".join(noted.get(name, [])), ours[name]
    check_attributes(path, name, each, node, notes)
    if isinstance(each, h5py.Dataset):
        counts["links to datasets"] += 1
        check_dataset(path, name, each, node, notes)


def missing(path, name, each, notes, noted):
    shown = "datasets" if isinstance(each, h5py.Dataset) else "groups"
    if not notes and any(str(above) in noted for above in Path(name).parents):
        counts[f"{shown} below another name of a group"] += 1
    elif "not shown" in notes:
        counts[f"{shown} with a note"] += 1
        reasons[notes.split("not shown: ")[-1][:70]] += 1
    elif not str(each.attrs.get("NAME", "")).startswith(("This is a netCDF", "b'This is a netCDF")):
        counts[f"{shown} MISSING"] += 1
        say(f"{path}: /{name}: MISSING")


def same_type(found, expected):
    """Return whether a type of omnizarr is that of h5py; the order of bytes is one of storage."""
    if expected.subdtype is not None or found.subdtype is not None:
        return (found.shape == expected.shape or not found.shape) and same_type(found.base, expected.base)
    if expected.names is not None:
        return (
            found.names == expected.names and all(same_type(found[each], expected[each]) for each in expected.names)
        ) or found.kind in "TO"
    if h5py.check_string_dtype(expected) is not None and found.kind in "TUO":
        return True
    if expected.kind == "O":
        return found.kind in "OT"
    return found.newbyteorder("=") == np.dtype(expected.str).newbyteorder("=")


reasons = collections.Counter()


def check_attributes(path, name, each, node, notes):
    found = node.attrs.asdict()
    try:
        names = list(each.attrs)
    except (RuntimeError, OSError):
        return
    for attribute in names:
        try:
            value = each.attrs[attribute]
            expected = plain(value)
        except Exception:
            counts["attributes that h5py cannot read"] += 1
            continue
        if attribute not in found:
            hidden = {"CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS", "_Netcdf4Dimid"}
            hidden |= {"_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"}
            if attribute in hidden:
                counts["attributes of dimensions"] += 1
            elif f"{attribute!r}" in notes:
                counts["attributes with a note"] += 1
            else:
                counts["attributes MISSING"] += 1
                say(f"{path}: /{name}: attribute {attribute} MISSING")
            continue
        if attribute == "_FillValue" or isinstance(value, h5py.Reference) or same(found[attribute], expected):
            counts["attributes"] += 1
        else:
            counts["attributes DIFFERENT"] += 1
            say(f"{path}: /{name}: attribute {attribute}: {str(found[attribute])[:80]!r}, h5py {str(expected)[:80]!r}")


def check_dataset(path, name, each, node, notes):
    if each.size is None or each.nbytes > LARGEST or node.nbytes > LARGEST:
        counts["large datasets"] += 1
        return
    try:
        expected = each[...]
    except Exception:
        try:
            node[...]
            counts["datasets that only we read"] += 1
        except OmnizarrError:
            counts["datasets that neither reads"] += 1
        return
    try:
        found = node[...]
    except Exception as error:
        counts["datasets with errors"] += 1
        say(f"{path}: /{name}: {type(error).__name__}: {error}")
        return
    if each.shape == () and h5py.check_vlen_dtype(each.dtype) is not None:
        expected, found = np.asarray(expected[()]), np.asarray(found)
    found = np.asarray(found)
    if not same_type(np.dtype(node.dtype), each.dtype) and "JSON texts" not in notes:
        counts["types DIFFERENT"] += 1
        say(f"{path}: /{name}: {np.dtype(node.dtype)!r}, h5py {each.dtype!r}")
    if found.shape != np.shape(expected):
        counts["datasets DIFFERENT"] += 1
        say(f"{path}: /{name}: shape {found.shape}, h5py {expected.shape}")
        return
    ours = plain(found.astype(object) if found.dtype.kind == "T" else found)
    if "JSON texts" in notes:
        ours = texts(ours)
    if same(ours, plain(expected)):
        counts["datasets"] += 1
    else:
        counts["datasets DIFFERENT"] += 1
        say(
            f"{path}: /{name}: {found.dtype} {str(found.ravel()[:3])[:90]}, "
            f"h5py {expected.dtype} {str(expected.ravel()[:3])[:90]}"
        )


def main(folders):
    warnings.simplefilter("ignore")
    for folder in folders:
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    heads = [(file.seek(at), file.read(8))[1] for at in (0, 512, 1024, 2048)]
                if b"\x89HDF\r\n\x1a\n" in heads:
                    in_own_process(path)
    for name, count in sorted(counts.items()):
        say(f"{count:6} {name}")
    for reason, count in reasons.most_common():
        say(f"{count:6} note: {reason}")


if __name__ == "__main__":
    main(sys.argv[1:])
