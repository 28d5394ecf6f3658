"""zarr-python, releases 2 and 3."""

import zarr
from contract import UnsupportedError, fill_of, is_v3, serve

THREE = int(zarr.__version__.split(".")[0]) >= 3


if THREE:
    zarr.config.set({"array.rectilinear_chunks": True})


def read(path, selection):
    if not THREE and is_v3(path):
        raise UnsupportedError("zarr-python 2 does not read Zarr v3")
    store = zarr.storage.ZipStore(path, mode="r") if path.endswith(".zip") else path
    return zarr.open_array(store, mode="r")[selection]


def list_nodes(path):
    if not THREE and is_v3(path):
        raise UnsupportedError("zarr-python 2 does not read Zarr v3")
    if not THREE and path.startswith("http"):  # release 2 has to be told where a store cannot list
        group = zarr.open_consolidated(path, mode="r")
    else:
        group = zarr.open_group(path, mode="r")
    if THREE:
        members = group.members(max_depth=None)
    else:
        members = []
        group.visititems(lambda name, node: members.append((name, node)))
    return [described(name, node) for name, node in members]


def described(name, node):
    kind = {"path": name, "attributes": dict(node.attrs)}
    if isinstance(node, zarr.Group):
        return {**kind, "node_type": "group"}
    names = getattr(node.metadata, "dimension_names", None) if THREE else None
    return {**kind, "node_type": "array", "shape": node.shape, **({"dimension_names": names} if names else {})}


def write(path, document, values):
    options = {"shape": document["shape"], "fill_value": fill_of(document)}
    if document["zarr_format"] == 2:
        names = ("dtype", "chunks", "order", "filters", "dimension_separator")
        options |= {name: document[name] for name in names if document.get(name) is not None}
        compressor = document["compressor"]
        if not THREE:
            from numcodecs import get_codec

            filters = [get_codec(each) for each in options.pop("filters", [])] or None
            array = zarr.open_array(
                path, mode="w", compressor=compressor and get_codec(compressor), filters=filters, **options
            )
        else:
            array = zarr.create(store=path, zarr_format=2, compressor=compressor, **options)
    elif not THREE:
        raise UnsupportedError("zarr-python 2 does not write Zarr v3")
    else:
        array = zarr.create(
            store=path,
            zarr_format=3,
            dtype=document["data_type"],
            chunk_shape=document["chunk_grid"]["configuration"]["chunk_shape"],
            codecs=document["codecs"],
            chunk_key_encoding=document["chunk_key_encoding"],
            dimension_names=document.get("dimension_names"),
            attributes=document.get("attributes"),
            **options,
        )
    array[...] = values


def unsupported(error):
    words = (
        "unknown codec",
        "codec not available",
        "unsupported",
        "No Zarr data type found",
        "not supported",
        "Unknown chunk grid",
    )
    return type(error).__name__ in {"UnknownCodecError", "NotImplementedError"} or any(
        word in str(error) for word in words
    )


def main(name="zarr-python", version=zarr.__version__):
    serve(name, version, read=read, list_nodes=list_nodes, write=write, unsupported=unsupported)


if __name__ == "__main__":
    main()
