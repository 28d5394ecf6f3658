"""netCDF-C itself, called through its C interface: what netCDF4-python hides (char or string, lengths) is seen here.

Run by `peers` in a process of its own, because odd NCZarr kills netCDF-C: it reads requests from standard input and
writes answers to standard output, each a pickle behind its length. Needs only a wheel of netCDF4.

A dataset travels as plain Python: a group is a dict of its ``name``, ``dimensions`` (name, size, unlimited),
``attributes`` (name, type code, values), ``variables`` and ``groups``; values are bytes in the order of the machine,
of the type string a list of bytes.
"""

from __future__ import annotations

import ctypes
import math
import os
import pickle
import sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, create_string_buffer
from pathlib import Path

GLOBAL = -1
CREATE = 0x1000  # NC_NETCDF4; what exists is replaced
NO_CLOBBER = 0x4  # which 4.10.2 needs in S3: to replace something there ends it, as it reads memory that is not set
WRITE = 0x1
CHAR, STRING = 2, 12
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8, 12: ctypes.sizeof(c_char_p)}
ENDIANNESS = {"little": 1, "big": 2}
DEFLATE, SHUFFLE, FLETCHER32 = 1, 2, 3
MAX_NAME = 256


class NetCDFError(Exception):
    """What a function of netCDF-C returned, other than zero."""


def library(path: str | None = None) -> ctypes.CDLL:
    """Return libnetcdf: that of a path, or the one within the wheel of netCDF4 of this environment."""
    if path is None:
        import netCDF4

        wheel = Path(netCDF4.__file__).parent
        places = (wheel.parent / "netCDF4.libs", wheel.parent / "netcdf4.libs", wheel / ".dylibs")
        path = str(next(each for place in places for each in place.glob("*netcdf*")))
    nc = ctypes.CDLL(path)
    nc.nc_strerror.restype = nc.nc_inq_libvers.restype = c_char_p
    return nc


class NetCDF:
    """The operations on whole datasets."""

    def __init__(self, path: str | None = None) -> None:
        self.nc = library(path)

    def call(self, name: str, *arguments: object) -> None:
        code = getattr(self.nc, name)(*arguments)
        if code:
            raise NetCDFError(f"{name}: {self.nc.nc_strerror(code).decode()} ({code})")

    def version(self) -> str:
        return self.nc.nc_inq_libvers().decode().split()[0]

    # Writing

    def write(self, url: str, root: dict) -> None:
        ncid = c_int()
        self.call("nc_create", url.encode(), CREATE | (NO_CLOBBER if url.startswith("http") else 0), byref(ncid))
        try:
            variables: list[tuple[int, int, dict]] = []
            self.define(ncid.value, root, "", {}, variables)
            self.call("nc_enddef", ncid)
            for group, variable, what in variables:
                self.put(group, variable, what)
        except BaseException:
            self.nc.nc_abort(ncid)
            raise
        self.call("nc_close", ncid)

    def define(self, ncid: int, group: dict, path: str, dimensions: dict, variables: list) -> None:
        number = c_int()
        for name, size, unlimited in group["dimensions"]:
            self.call("nc_def_dim", ncid, name.encode(), c_size_t(0 if unlimited else size), byref(number))
            dimensions[f"{path}/{name}"] = number.value
        for each in group["attributes"]:
            self.put_attribute(ncid, GLOBAL, *each)
        for each in group["variables"]:
            variables += [(ncid, self.define_variable(ncid, each, dimensions), each)]
        for each in group["groups"]:
            self.call("nc_def_grp", ncid, each["name"].encode(), byref(number))
            self.define(number.value, each, f"{path}/{each['name']}", dict(dimensions), variables)

    def define_variable(self, ncid: int, what: dict, dimensions: dict) -> int:
        ids = [dimensions[each] for each in what["dimensions"]]
        number = c_int()
        self.call(
            "nc_def_var", ncid, what["name"].encode(), what["type"], len(ids), (c_int * len(ids))(*ids), byref(number)
        )
        variable = number.value
        if what.get("chunks"):
            chunks = (c_size_t * len(ids))(*what["chunks"])
            self.call("nc_def_var_chunking", ncid, variable, 0, chunks)
        if what.get("endianness"):
            self.call("nc_def_var_endian", ncid, variable, ENDIANNESS[what["endianness"]])
        if what.get("no_fill"):
            self.call("nc_def_var_fill", ncid, variable, 1, None)
        for identifier, *parameters in what.get("filters", ()):
            self.call(
                "nc_def_var_filter",
                ncid,
                variable,
                identifier,
                c_size_t(len(parameters)),
                (c_uint * len(parameters))(*parameters),
            )
        for name, code, values in what["attributes"]:
            if name == "_FillValue":
                self.call("nc_def_var_fill", ncid, variable, 0, buffer(code, values))
            else:
                self.put_attribute(ncid, variable, name, code, values)
        return variable

    def put_attribute(self, ncid: int, variable: int, name: str, code: int, values: object) -> None:
        length = len(values) if code == STRING else len(values) // SIZES[code]
        self.call("nc_put_att", ncid, variable, name.encode(), code, c_size_t(length), buffer(code, values))

    def put(self, ncid: int, variable: int, what: dict) -> None:
        shape = what["shape"]
        if what["data"] is None or math.prod(shape) == 0:
            return
        data = buffer(what["type"], what["data"])
        self.call("nc_put_vara", ncid, variable, (c_size_t * len(shape))(), (c_size_t * len(shape))(*shape), data)

    def change(self, url: str, name: str, start: list[int], what: dict, attribute: tuple) -> None:
        """Write values of a variable of the root, from `start` on, and set an attribute of the root.

        All attributes are read first: netCDF-C forgets those that it has not read when it changes a dataset.
        """
        ncid, variable = c_int(), c_int()
        self.call("nc_open", url.encode(), WRITE, byref(ncid))
        try:
            self.group(ncid.value, "", {})
            self.put_attribute(ncid, GLOBAL, *attribute)
            self.call("nc_inq_varid", ncid, name.encode(), byref(variable))
            origin, extent = (c_size_t * len(start))(*start), (c_size_t * len(start))(*what["shape"])
            self.call("nc_put_vara", ncid, variable, origin, extent, buffer(what["type"], what["data"]))
        except BaseException:
            self.nc.nc_close(ncid)
            raise
        self.call("nc_close", ncid)

    # Reading

    def read(self, url: str) -> dict:
        ncid = c_int()
        self.call("nc_open", url.encode(), 0, byref(ncid))
        try:
            return self.group(ncid.value, "", {})
        finally:
            self.nc.nc_close(ncid)

    def numbers(self, name: str, *arguments: object) -> list[int]:
        """Return what a function gives that fills a count and a list."""
        count = c_int()
        self.call(name, *arguments[:1], byref(count), None, *arguments[1:])
        values = (c_int * count.value)()
        self.call(name, *arguments[:1], byref(count), values, *arguments[1:])
        return list(values)

    def group(self, ncid: int, path: str, dimensions: dict) -> dict:
        unlimited = self.numbers("nc_inq_unlimdims", ncid)
        own = []
        dimensions = dict(dimensions)
        name, size = create_string_buffer(MAX_NAME + 1), c_size_t()
        for each in self.numbers("nc_inq_dimids", ncid, 0):
            self.call("nc_inq_dim", ncid, each, name, byref(size))
            own.append((name.value.decode(), size.value, each in unlimited))
            dimensions[each] = (f"{path}/{name.value.decode()}", size.value)
        groups = []
        for each in self.numbers("nc_inq_grps", ncid):
            self.call("nc_inq_grpname", each, name)
            label = name.value.decode()
            groups.append({**self.group(each, f"{path}/{label}", dimensions), "name": label})
        count = c_int()
        self.call("nc_inq_natts", ncid, byref(count))
        return {
            "name": "",
            "dimensions": own,
            "attributes": self.attributes(ncid, GLOBAL, count.value),
            "variables": [self.variable(ncid, each, dimensions) for each in self.numbers("nc_inq_varids", ncid)],
            "groups": groups,
        }

    def attributes(self, ncid: int, variable: int, count: int) -> list[tuple]:
        found = []
        name, code, length = create_string_buffer(MAX_NAME + 1), c_int(), c_size_t()
        for number in range(count):
            self.call("nc_inq_attname", ncid, variable, number, name)
            self.call("nc_inq_att", ncid, variable, name, byref(code), byref(length))
            values = self.get(code.value, length.value, "nc_get_att", ncid, variable, name)
            found.append((name.value.decode(), code.value, values))
        return found

    def get(self, code: int, count: int, function: str, *arguments: object) -> object:
        """Return the values that a function gives into a buffer."""
        if code == STRING:
            pointers = (c_char_p * count)()
            self.call(function, *arguments, pointers)
            strings = [each or b"" for each in pointers]
            self.call("nc_free_string", c_size_t(count), pointers)
            return strings
        raw = create_string_buffer(max(count * SIZES[code], 1))
        self.call(function, *arguments, raw)
        return raw.raw[: count * SIZES[code]]

    def variable(self, ncid: int, number: int, dimensions: dict) -> dict:
        name, code, rank, attributes = create_string_buffer(MAX_NAME + 1), c_int(), c_int(), c_int()
        self.call("nc_inq_varndims", ncid, number, byref(rank))
        ids = (c_int * rank.value)()
        self.call("nc_inq_var", ncid, number, name, byref(code), byref(rank), ids, byref(attributes))
        shape = [dimensions[each][1] for each in ids]
        start, extent = (c_size_t * len(shape))(), (c_size_t * len(shape))(*shape)
        size = math.prod(shape)
        data: object = [] if code.value == STRING else b""
        if size:
            data = self.get(code.value, size, "nc_get_vara", ncid, number, start, extent)
        return {
            "name": name.value.decode(),
            "type": code.value,
            "dimensions": [dimensions[each][0] for each in ids],
            "attributes": self.attributes(ncid, number, attributes.value),
            "shape": shape,
            "data": data,
            **self.storage(ncid, number, code.value, len(shape)),
        }

    def storage(self, ncid: int, number: int, code: int, rank: int) -> dict:
        kind, chunks, endianness, no_fill = c_int(), (c_size_t * rank)(), c_int(), c_int()
        self.call("nc_inq_var_chunking", ncid, number, byref(kind), chunks)
        self.call("nc_inq_var_endian", ncid, number, byref(endianness))
        if code == STRING:
            self.call("nc_inq_var_fill", ncid, number, byref(no_fill), None)
            fill: object = None
        else:
            room = create_string_buffer(8)
            self.call("nc_inq_var_fill", ncid, number, byref(no_fill), room)
            fill = room.raw[: SIZES[code]]
        count = c_size_t()
        self.call("nc_inq_var_filter_ids", ncid, number, byref(count), None)
        identifiers = (c_uint * count.value)()
        self.call("nc_inq_var_filter_ids", ncid, number, byref(count), identifiers)
        filters = []
        for each in identifiers:
            length = c_size_t()
            self.call("nc_inq_var_filter_info", ncid, number, each, byref(length), None)
            parameters = (c_uint * max(length.value, 1))()
            self.call("nc_inq_var_filter_info", ncid, number, each, byref(length), parameters)
            filters.append((each, *parameters[: length.value]))
        return {
            "storage": {0: "chunked", 1: "contiguous", 2: "compact"}.get(kind.value, "unknown"),
            "chunks": list(chunks),
            "endianness": {1: "little", 2: "big"}.get(endianness.value) if SIZES[code] > 1 else None,
            "no_fill": bool(no_fill.value),
            "fill": fill,
            "filters": filters,
        }


def buffer(code: int, values: object) -> object:
    """Return values as C wants them."""
    if code == STRING:
        return (c_char_p * max(len(values), 1))(*values)
    return create_string_buffer(values, max(len(values), 1))


def serve() -> None:
    """Answer requests until standard input ends: what netCDF-C prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    peer = NetCDF(*sys.argv[1:])
    requests = sys.stdin.buffer
    while head := requests.read(8):
        operation, arguments = pickle.loads(requests.read(int.from_bytes(head, "little")))
        try:
            answer = (True, getattr(peer, operation)(*arguments))
        except Exception as error:  # noqa: BLE001 - whatever it is, the tests are to see it
            answer = (False, str(error) if isinstance(error, NetCDFError) else f"{type(error).__name__}: {error}")
        raw = pickle.dumps(answer, protocol=4)
        answers.write(len(raw).to_bytes(8, "little") + raw)
        answers.flush()


if __name__ == "__main__":
    serve()
