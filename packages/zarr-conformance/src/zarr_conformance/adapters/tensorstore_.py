"""TensorStore."""

import json
from importlib.metadata import version

import numpy as np
import tensorstore
from contract import UnsupportedError, is_v3, serve


def spec(path, **more):
    driver = "zarr3" if more.get("metadata", {}).get("zarr_format") == 3 or is_v3(path) else "zarr"
    where = {"driver": "http", "base_url": path} if path.startswith("http") else {"driver": "file", "path": f"{path}/"}
    return {"driver": driver, "kvstore": where, **more}


def read(path, selection):
    if path.endswith(".zip"):
        raise UnsupportedError("no zip archives of Zarr")
    try:
        values = one(path, selection)
    except ValueError as error:
        if 'Must specify a "field"' not in str(error):
            raise
        return record(path, selection)
    if values.dtype.itemsize == 0:
        raise UnsupportedError("bytes have no form in NumPy")
    return values


def one(path, selection, **more):
    return np.asarray(tensorstore.open(spec(path, **more), read=True).result()[selection].read().result())


def record(path, selection):
    name = f"{path}/zarr.json" if is_v3(path) else f"{path}/.zarray"
    with open(name, encoding="utf-8") as file:
        document = json.load(file)
    fields = (
        document["dtype"]
        if "dtype" in document
        else [each["name"] for each in document["data_type"]["configuration"]["fields"]]
    )
    names = [each if isinstance(each, str) else each[0] for each in fields]
    parts = [one(path, selection, field=name) for name in names]
    shape = min((part.shape for part in parts), key=len)
    dtype = [(name, part.dtype, part.shape[len(shape) :]) for name, part in zip(names, parts, strict=True)]
    out = np.empty(shape, dtype)
    for name, part in zip(names, parts, strict=True):
        out[name] = part
    return out


def write(path, document, values):
    array = tensorstore.open(spec(path, metadata=document), create=True).result()
    array.write(values).result()


def unsupported(error):
    words = ("not supported", "Unsupported", "not one of", "not registered", "Expected one of", "is not one of")
    return any(word in str(error) for word in words)


serve("TensorStore", version("tensorstore"), read=read, write=write, unsupported=unsupported)
