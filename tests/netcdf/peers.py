"""netCDF-C in its releases, each in a process of its own, and how its datasets compare with what was expected.

Odd NCZarr kills netCDF-C, or never ends: then the process is ended, the next request starts another, and the one at
fault raises `PeerError`.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from omnizarr.netcdf import Attribute, types
from omnizarr.netcdf.header import DimensionHeader, GroupHeader, Source, VariableHeader
from tests.interop import peers as environments
from tests.netcdf.generated import Made, variables

SERVER = Path(__file__).parent / "netcdf_c.py"
WHEELS = {"4.9.0": "netCDF4==1.6.2"}
_PATIENCE = 60


class PeerError(Exception):
    """netCDF-C reported an error, died, or did not come back."""


def library_of(version: str) -> Path:
    """Return libnetcdf of an older release, after fetching the wheel that brings it: any Python can load that."""
    home = environments.HOME / f"netcdf-{version}"
    if not home.exists():
        environments.HOME.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=environments.HOME) as work:
            made = Path(work, "wheel")
            subprocess.run(
                [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
                 "--only-binary=:all:", "--python-version", "3.11", "--target", str(made), WHEELS[version]],
                check=True,
            )  # fmt: skip
            with contextlib.suppress(OSError):  # another process was faster
                made.rename(home)
    return next(path for folder in ("netCDF4.libs", "netCDF4/.dylibs") for path in home.glob(f"{folder}/*netcdf*"))


class Peer:
    """A release of netCDF-C: that of this environment's netCDF4, an older one, or a library that is here.

    `library` is a path of libnetcdf, `environment` what its process has besides in its environment.
    """

    def __init__(
        self,
        release: str | None = None,
        library: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._release = release
        self._library = library
        self._environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None
        self.version = ""

    def _start(self) -> subprocess.Popen[bytes]:
        import netCDF4  # its wheel brings the filters, which older wheels lack

        plugins = str(Path(netCDF4.__file__).parent / "plugins")
        environment = {**os.environ, "HDF5_PLUGIN_PATH": plugins}
        libraries = []
        library = library_of(self._release) if self._release else self._library
        if library is not None:
            libraries = [str(library)]
            environment["LD_LIBRARY_PATH"] = str(library.parent)
        environment |= self._environment
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", str(SERVER), *libraries],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )

    def _ask(self, operation: str, *arguments: object) -> Any:
        if self._process is None:
            self._process = self._start()
        process = self._process
        assert process.stdin
        assert process.stdout
        raw = pickle.dumps((operation, arguments), protocol=4)
        watch = threading.Timer(_PATIENCE, process.kill)
        watch.start()
        try:
            process.stdin.write(len(raw).to_bytes(8, "little") + raw)
            process.stdin.flush()
            head = process.stdout.read(8)
            answer = process.stdout.read(int.from_bytes(head, "little")) if head else b""
        except BrokenPipeError:
            answer = b""
        finally:
            watch.cancel()
        if not answer:
            self.close()
            cause = signal.Signals(-process.returncode).name if process.returncode < 0 else f"exit {process.returncode}"
            raise PeerError(f"{operation}: {cause}")
        succeeded, value = pickle.loads(answer)
        if not succeeded:
            raise PeerError(value)
        return value

    def start(self) -> Peer:
        self.version = self._ask("version")
        return self

    def close(self) -> None:
        if self._process:
            for pipe in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()  # type: ignore[union-attr]
            self._process.wait()
            self._process = None

    def write(self, url: str, made: Made) -> None:
        """Make a dataset."""
        self._ask("write", url, _group_out(made.root, made.written))

    def change(self, url: str, name: str, start: list[int], values: np.ndarray, title: str) -> None:
        """Write values of a variable of the root, from `start` on, and set the title of the dataset."""
        nc_type = types.of_dtype(values.dtype)
        what = {"type": nc_type.code, "shape": list(values.shape), "data": _values_out(nc_type, values)}
        self._ask("change", url, name, start, what, ("title", types.CHAR.code, title.encode()))

    def read(self, url: str) -> Made:
        """Return a dataset as netCDF-C sees it; `special` is what ``ncdump -s`` prints."""
        data: dict[str, np.ndarray] = {}
        root = _group_in(self._ask("read", url), "", data)
        return Made(root, data, data)


@contextlib.contextmanager
def running(release: str | None = None) -> Iterator[Peer]:
    """Give a peer, and end its process afterwards."""
    peer = Peer(release).start()
    try:
        yield peer
    finally:
        peer.close()


# From here to there


def _values_out(nc_type: types.NcType, value: object) -> object:
    if nc_type is types.CHAR and isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    array = np.asarray(value)
    if nc_type is types.STRING:
        return [each.encode("utf-8", "surrogateescape") for each in array.ravel()]
    return array.astype(nc_type.dtype).tobytes()


def _attributes_out(attributes: Mapping[str, Attribute]) -> list[tuple]:
    return [(name, each.type.code, _values_out(each.type, each.value)) for name, each in attributes.items()]


def _filters_out(special: Mapping[str, Attribute]) -> list[tuple[int, ...]]:
    filters: list[tuple[int, ...]] = []
    if "_Fletcher32" in special:
        filters.append((3,))
    if "_Shuffle" in special:
        filters.append((2,))
    if "_DeflateLevel" in special:
        filters.append((1, int(special["_DeflateLevel"].value[0])))
    if "_Filter" in special:
        filters += [tuple(map(int, each.split(","))) for each in str(special["_Filter"].value).split("|")]
    return filters


def _group_out(group: GroupHeader, written: Mapping[str, np.ndarray], path: str = "") -> dict:
    return {
        "name": group.name,
        "dimensions": [(each.name, each.size, each.unlimited) for each in group.dimensions.values()],
        "attributes": _attributes_out(group.attributes),
        "variables": [
            {
                "name": name,
                "type": each.type.code,
                "dimensions": list(each.dimensions),
                "attributes": _attributes_out(each.attributes),
                "chunks": [int(size) for size in each.special["_ChunkSizes"].value]
                if "_ChunkSizes" in each.special
                else None,
                "endianness": each.special["_Endianness"].value if "_Endianness" in each.special else None,
                "no_fill": "_NoFill" in each.special,
                "filters": _filters_out(each.special),
                "shape": list(written[f"{path}/{name}"].shape),
                "data": _values_out(each.type, written[f"{path}/{name}"]),
            }
            for name, each in group.variables.items()
        ],
        "groups": [_group_out(each, written, f"{path}/{name}") for name, each in group.groups.items()],
    }


# And back


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _strings(raw: list[bytes]) -> np.ndarray:
    array = np.empty(len(raw), object)
    array[:] = [_text(each) for each in raw]
    return array


def _attribute_in(code: int, raw: Any) -> Attribute:
    nc_type = types.BY_CODE[code]
    if nc_type is types.CHAR:
        return Attribute(nc_type, _text(raw))
    return Attribute(nc_type, _strings(raw) if nc_type is types.STRING else np.frombuffer(raw, nc_type.dtype))


def _special_in(found: dict) -> dict[str, Attribute]:
    special = {"_Storage": Attribute.of(found["storage"])}
    if found["chunks"]:
        special["_ChunkSizes"] = Attribute(types.INT, np.array(found["chunks"], "i4"))
    others = []
    for identifier, *parameters in found["filters"]:
        if identifier == 3:
            special["_Fletcher32"] = Attribute.of("true")
        elif identifier == 2:
            special["_Shuffle"] = Attribute.of("true")
        elif identifier == 1:
            special["_DeflateLevel"] = Attribute.of(np.int32(parameters[0]))
        else:
            others.append(",".join(map(str, (identifier, *parameters))))
    if others:
        special["_Filter"] = Attribute.of("|".join(others))
    if found["endianness"]:
        special["_Endianness"] = Attribute.of(found["endianness"])
    if found["no_fill"]:
        special["_NoFill"] = Attribute.of("true")
    return special


def _group_in(found: dict, path: str, data: dict[str, np.ndarray]) -> GroupHeader:
    variables = {}
    for each in found["variables"]:
        nc_type = types.BY_CODE[each["type"]]
        raw = each["data"]
        array = _strings(raw) if nc_type is types.STRING else np.frombuffer(raw, nc_type.dtype)
        data[f"{path}/{each['name']}"] = array.reshape(each["shape"])
        variables[each["name"]] = VariableHeader(
            name=each["name"],
            type=nc_type,
            dimensions=tuple(each["dimensions"]),
            attributes={name: _attribute_in(code, values) for name, code, values in each["attributes"]},
            special=_special_in(each),
        )
    return GroupHeader(
        name=found["name"],
        dimensions={name: DimensionHeader(name, size, unlimited) for name, size, unlimited in found["dimensions"]},
        variables=variables,
        attributes={name: _attribute_in(code, values) for name, code, values in found["attributes"]},
        groups={each["name"]: _group_in(each, f"{path}/{each['name']}", data) for each in found["groups"]},
    )


# What it says


def _storage(variable: VariableHeader) -> dict[str, object]:
    """Return what the special attributes say, whatever their types."""
    found: dict[str, object] = {}
    for name in ("_ChunkSizes", "_DeflateLevel"):
        if name in variable.special:
            found[name] = tuple(int(each) for each in variable.special[name].value)
    for name in ("_Endianness", "_Filter"):
        if name in variable.special:
            found[name] = variable.special[name].value
    for name in ("_Shuffle", "_Fletcher32", "_NoFill"):
        if name in variable.special:
            found[name] = variable.special[name].value == "true"
    return found


def _attributes(attributes: Mapping[str, Attribute]) -> dict[str, tuple]:
    return {
        name: (each.type.name, each.value if isinstance(each.value, str) else _bits(each.value))
        for name, each in attributes.items()
        if name not in {"_NCProperties", "_ARRAY_DIMENSIONS", "_Codecs"}
    }


def _bits(array: np.ndarray) -> object:
    """Return values that are equal if all bits are."""
    return list(array.ravel()) if array.dtype == object else (str(array.tolist()), array.tobytes())


def described(source: Source, like: GroupHeader | None = None) -> dict[str, object]:
    """Return all that a dataset says, by full name, as plain values that compare and print well.

    The sizes of chunks that were not given are the writer's choice: they count only where `like` has them.
    """
    asked = dict(variables(like)) if like else {}
    found: dict[str, object] = {}
    for path, group in source.root.walk():
        found[path or "/"] = _attributes(group.attributes)
        for name, dimension in group.dimensions.items():
            found[f"dimension {path}/{name}"] = (dimension.size, dimension.unlimited)
    sizes = source.root.sizes()
    for name, variable in variables(source.root):
        storage = _storage(variable)
        if name in asked and "_ChunkSizes" not in asked[name].special:
            storage.pop("_ChunkSizes", None)
        if not variable.type.is_text and variable.type.dtype.itemsize > 1:
            storage.setdefault("_Endianness", sys.byteorder)
        selection = tuple(slice(0, sizes[each].size) for each in variable.dimensions)
        values = source.read(name, selection)
        found[f"variable {name}"] = {
            "type": variable.type.name,
            "dimensions": variable.dimensions,
            "attributes": _attributes(variable.attributes),
            "storage": storage,
            "shape": values.shape,
            "values": _bits(values),
        }
    return found
