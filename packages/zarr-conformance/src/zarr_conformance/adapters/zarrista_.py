"""zarrista, the Python bindings of zarrs."""

import numpy as np
import zarrista
from contract import UnsupportedError, serve
from zarrista.store import FilesystemStore


def read(path, selection):
    if path.endswith(".zip") or path.startswith("http"):
        raise UnsupportedError("not tried")
    array = zarrista.Array.open(FilesystemStore(path), "/")
    stepped = selection is not ... and any(isinstance(each, slice) and each.step not in {None, 1} for each in selection)
    found = array[... if stepped or selection is ... else selection]
    if hasattr(found, "mask"):  # elements that may be missing, which are zero then
        found = found.data
    try:
        values = np.asarray(found.to_numpy())
    except TypeError:  # a type that NumPy does not have
        raw = found.buffer()
        count = max(int(np.prod(found.shape)), 1)
        values = np.frombuffer(raw, f"V{len(bytes(raw)) // count}").reshape(found.shape)
    return values[selection] if stepped else values


def list_nodes(path):
    if path.startswith("http"):
        raise UnsupportedError("not tried")
    group = zarrista.Group.open(FilesystemStore(path), "/")
    return [described(node.path.strip("/"), node) for node in group.traverse()]


def described(path, node):
    if isinstance(node, zarrista.Group):
        return {"path": path, "node_type": "group"}
    return {"path": path, "node_type": "array", "shape": node.shape}


def write(path, document, values):
    array = zarrista.Array.from_metadata(document, FilesystemStore(path), "/")
    array.store_metadata()
    array[...] = np.array(values, order="C")


def unsupported(error):
    if "DLPack type code" in str(error):
        return True
    return "not supported" in str(error) or "unsupported" in str(error)


serve("zarrista", zarrista.__version__, read=read, list_nodes=list_nodes, write=write, unsupported=unsupported)
