"""omnizarr."""

from contract import fill_of, serve

import omnizarr
from omnizarr.errors import MissingDependencyError, UnknownExtensionError


def read(path, selection):
    return omnizarr.open_array(path, mode="r")[selection]


def list_nodes(path):
    return [
        {
            "path": each.path[len(group.path) :].strip("/") if group.path else each.path,
            "node_type": "array" if isinstance(each, omnizarr.Array) else "group",
            "attributes": dict(each.attrs),
            **(
                {"shape": each.shape, "dimension_names": each.dimension_names}
                if isinstance(each, omnizarr.Array)
                else {}
            ),
        }
        for group in [omnizarr.open_group(path, mode="r")]
        for _, each in group.members(max_depth=None)
    ]


def write(path, document, values):
    options = {"shape": document["shape"], "fill_value": fill_of(document), "attributes": document.get("attributes")}
    if document["zarr_format"] == 3:
        options |= {
            "dtype": document["data_type"],
            "chunks": document["chunk_grid"]["configuration"]["chunk_shape"],
            "codecs": document["codecs"],
            "chunk_key_encoding": document["chunk_key_encoding"],
            "dimension_names": document.get("dimension_names"),
        }
    else:
        names = ("dtype", "chunks", "order", "filters", "dimension_separator")
        options |= {name: document[name] for name in names if name in document}
        options["compressors"] = document["compressor"]
    array = omnizarr.create_array(path, zarr_format=document["zarr_format"], **options)
    array[...] = values


serve(
    "omnizarr",
    omnizarr.__version__,
    read=read,
    list_nodes=list_nodes,
    write=write,
    unsupported=lambda error: isinstance(error, (UnknownExtensionError, MissingDependencyError)),
)
