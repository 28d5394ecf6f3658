"""What netCDF-C and omnizarr read and change of what the other wrote: every layout, storage and available release.

``python -m tests.netcdf.exchange`` prints the tables of the manual; ``--write`` puts them there. The releases are the
system's netCDF-C, that of the wheel of netCDF4, an older one, and those that `OMNIZARR_NETCDF_C` names: folders
into which netCDF-C was installed, separated as in PATH. Only such a one can have zip and S3.
"""

from __future__ import annotations

import ctypes.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from omnizarr.errors import OmnizarrError
from omnizarr.netcdf import Attribute, Dataset, copying, types
from omnizarr.netcdf.header import DimensionHeader, GroupHeader, VariableHeader
from omnizarr.netcdf.layouts import LAYOUTS
from tests import servers
from tests.netcdf.generated import NUMBERS, Made, completed
from tests.netcdf.peers import Peer, PeerError, described

VARIABLE: Final = "OMNIZARR_NETCDF_C"
STORAGES: Final = ("file", "zip", "s3")
MODES: Final = ("nczarr", "zarr")
MANUAL: Final = Path(__file__).parents[2] / "docs" / "netcdf.md"
BEGIN, END = "<!-- exchange: python -m tests.netcdf.exchange --write -->", "<!-- end of exchange -->"
TITLE: Final = "changed"
NO, READ, HALF, CHANGED = "no", "read", "read, changed*", "read, changed"
"""How far an attempt comes: the other one reads all; omnizarr reads what was changed then; netCDF-C reads it, too."""
ABSENT: Final = "–"
BY_OMNIZARR, BY_NETCDF_C = "written by omnizarr in layout", "written by netCDF-C with mode"


# -- the releases ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """A netCDF-C that is here."""

    version: str
    origin: str
    library: Path | None = None
    release: str | None = None
    plugins: str | None = None

    def peer(self, environment: Mapping[str, str]) -> Peer:
        own = {} if self.plugins is None else {"HDF5_PLUGIN_PATH": self.plugins}
        return Peer(self.release, self.library, {**own, **environment})

    def __str__(self) -> str:
        return f"{self.version} ({self.origin})"


def programs() -> list[Program]:
    """Return all that are here, the oldest first."""
    found = [_asked("the wheel"), _asked("the wheel", release="4.9.0"), *_of_the_system(), *_installed()]
    return sorted(found, key=lambda each: [int(part) for part in each.version.partition("-")[0].split(".")])


def _asked(origin: str, **how: Any) -> Program:
    program = Program("0", origin, **how)
    with closing(program.peer({}).start()) as peer:
        return replace(program, version=peer.version)


def _of_the_system() -> Iterator[Program]:
    name = ctypes.util.find_library("netcdf")
    multiarch = getattr(sys.implementation, "_multiarch", "")
    for folder in (f"/usr/lib/{multiarch}", "/usr/lib64", "/usr/lib"):
        if name and Path(folder, name).exists():
            yield _asked("the system", library=Path(folder, name))
            return


def _installed() -> Iterator[Program]:
    for folder in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        config = Path(folder, "bin", "nc-config")
        plugins = subprocess.run([config, "--plugindir"], capture_output=True, text=True, check=True).stdout.strip()
        yield _asked("built", library=Path(folder, "lib", "libnetcdf.so"), plugins=plugins)


# -- where datasets are -----------------------------------------------------------------------------


@dataclass
class Place:
    """Where a dataset is: what omnizarr calls it, and what netCDF-C does."""

    ours: str
    theirs: str
    options: Mapping[str, Any] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class S3:
    """One S3, served in the clear for omnizarr, and by TLS for netCDF-C, whose own client speaks nothing else.

    That client trusts the authorities of the system alone; a library that is loaded before it adds that of the test.
    """

    server: servers.Server
    secure: str
    environment: Mapping[str, str]


_TRUST = """
#include <dlfcn.h>
#include <stdlib.h>
void *curl_easy_init(void) {
    void *curl = dlopen("libcurl.so.4", RTLD_LAZY);
    void *(*init)(void) = (void *(*)(void)) dlsym(curl, "curl_easy_init");
    int (*set)(void *, int, ...) = (int (*)(void *, int, ...)) dlsym(curl, "curl_easy_setopt");
    void *handle = init();
    const char *authority = getenv("OMNIZARR_TEST_AUTHORITY");
    if (handle && authority) set(handle, 10065 /* CURLOPT_CAINFO */, authority);
    return handle;
}
"""


@contextmanager
def running_s3(home: Path) -> Iterator[S3]:
    """Run the two servers of one S3; skip where something is missing that they need."""
    gateway = servers.need("versitygw")
    for tool in ("openssl", "cc"):
        if shutil.which(tool) is None:
            servers.skip(tool, f"install {tool}")
    certificate, key, trust = home / "certificate.pem", home / "key.pem", home / "trust.so"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", trust, "-ldl"], input=_TRUST.encode(), check=True)
    keys = {"ROOT_ACCESS_KEY": servers.ACCESS_KEY, "ROOT_SECRET_KEY": servers.SECRET_KEY, "VGW_REGION": servers.REGION}
    environment = {
        "AWS_ACCESS_KEY_ID": servers.ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": servers.SECRET_KEY,
        "AWS_REGION": servers.REGION,
        "HOME": str(home),
        "LD_PRELOAD": str(trust),
        "OMNIZARR_TEST_AUTHORITY": str(certificate),
    }
    with servers.running_s3(home) as server:
        secure = servers.Process(
            lambda port: [gateway, "--quiet", "--port", f"127.0.0.1:{port}", "--cert", str(certificate),
                          "--key", str(key), "posix", str(home / "data")],
            env=keys, log=home / "secure.log", speaks_tls=True,
        )  # fmt: skip
        secure.start()
        try:
            yield S3(server, f"https://127.0.0.1:{secure.port}", environment)
        finally:
            secure.kill()


@contextmanager
def new_place(storage: str, mode: str, s3: S3 | None) -> Iterator[Place]:
    """Give a new place for a dataset."""
    fragment = f"#mode={mode},{storage}"
    if storage == "s3":
        assert s3 is not None
        place = s3.server.fresh()
        below = f"/{place.name}/data{fragment}"
        yield Place(f"{place.endpoint}{below}", f"{s3.secure}{below}", place.options, s3.environment)
        return
    folder = tempfile.mkdtemp()
    try:
        url = f"file://{folder}/data.{'zip' if storage == 'zip' else 'zarr'}{fragment}"
        yield Place(url, url)
    finally:
        shutil.rmtree(folder)


# -- datasets -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Features:
    """What a layout, and a release, can have."""

    strings: bool = True
    unlimited: bool = True
    scalars: bool = True
    types: bool = True
    chars: bool = True
    fills: bool = True
    filters: bool = True

    @classmethod
    def of(cls, program: Program, layout: str) -> Features:
        version = tuple(int(part) for part in program.version.partition("-")[0].split("."))
        return cls(
            strings=layout not in {"A", "B"} and version > (4, 9, 0),
            unlimited=LAYOUTS[layout].has_unlimited and version >= (4, 9, 3),
            scalars=version > (4, 9, 0) and layout != "pure" and (layout != "xarray" or version >= (4, 10, 2)),
            types=not layout.startswith("pure"),
            chars=layout not in {"xarray", "pure"},
            fills=layout != "xarray",
            filters=program.origin != "the system",
        )


def sample(has: Features) -> Made:
    """Return a dataset with everything that both can have."""
    variables: dict[str, VariableHeader] = {}
    data: dict[str, np.ndarray] = {}

    def add(name: str, nc_type: types.NcType, dimensions: Sequence[str], values: Any, **attributes: Any) -> None:
        header = VariableHeader(
            name=name,
            type=nc_type,
            dimensions=tuple(dimensions),
            attributes={key: Attribute.of(value) for key, value in attributes.items()},
        )
        variables[name] = header
        data[f"/{name}"] = np.array(values, nc_type.dtype)

    for each in NUMBERS:
        fill = {"_FillValue": each.dtype.type(9)} if has.types else {}
        add(f"of_{each.name}", each, ["/x"], [1, 9, 3], **fill, units="m")
    add("level", types.SHORT, ["/time", "/x"], [[1, 2, 3], [4, 5, 6]], long_name="Größe")
    if has.filters:
        variables["level"] = replace(variables["level"], special={"_DeflateLevel": Attribute.of(np.int32(3))})
    if has.chars:
        add("letters", types.CHAR, ["/x"], [b"a", b"b", b"c"])
    if has.strings:
        add("words", types.STRING, ["/x"], ["a", "Größe", "see"])
    if has.scalars:
        add("scalar", types.DOUBLE, [], 2.5)
    attributes: dict[str, Any] = {"title": "sample", "number": np.float64(0.5)}
    if has.types:
        attributes |= {"shorts": np.int16([1, 2]), "float": np.float32(1.5)}
    if has.strings and has.types:
        attributes["words"] = ["a", "b"]
    inner = VariableHeader(name="v", type=types.INT, dimensions=("/group/y", "/x"))
    data["/group/v"] = np.arange(6, dtype="i4").reshape(2, 3)
    group = GroupHeader(
        name="group",
        dimensions={"y": DimensionHeader("y", 2)},
        variables={"v": inner},
        attributes={"note": Attribute.of("inner")},
    )
    root = GroupHeader(
        dimensions={"time": DimensionHeader("time", 2, has.unlimited), "x": DimensionHeader("x", 3)},
        variables=variables,
        attributes={name: Attribute.of(value) for name, value in attributes.items()},
        groups={"group": group},
    )
    return completed(root, data)


def change_of(made: Made) -> tuple[list[int], np.ndarray]:
    """Return where values are written that change a dataset, and which: a new record, if there can be one."""
    start = 2 if made.root.dimensions["time"].unlimited else 1
    return [start, 0], np.array([[70, 80, 90]], "i2")


def changed(made: Made) -> Made:
    """Return a dataset as it is after the change."""
    (start, _), record = change_of(made)
    level = np.concatenate([made.written["/level"][:start], record])
    root = replace(made.root, attributes={**made.root.attributes, "title": Attribute.of(TITLE)})
    return completed(root, {**made.written, "/level": level})


def seen(source: Any, made: Made, has: Features) -> dict[str, object]:
    """Return what a dataset says, without what its layout cannot keep."""
    found = described(source, made.root)
    for each in found.values() if not has.fills else ():
        if isinstance(each, dict) and "storage" in each:
            each["storage"].pop("_NoFill", None)  # type: ignore[attr-defined]
    for each in found.values() if not has.chars else ():
        if isinstance(each, dict) and "attributes" in each:
            each["attributes"].pop("_Encoding", None)
    if has.types:
        return found
    return {name: _without_types(each) for name, each in found.items() if not name.startswith("dimension ")}


def _without_types(said: Any) -> object:
    if isinstance(said, dict) and "values" in said:
        kept = {name: said[name] for name in ("type", "shape", "values")}
        return {**kept, "attributes": _without_types(said["attributes"])}
    if isinstance(said, dict):
        return {name: value for name, (_, value) in said.items() if name != "_FillValue"}
    return said


# -- what is tried ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attempt:
    """One cell: who wrote in which layout (or mode, if it is netCDF-C) and storage, and which netCDF-C takes part."""

    program: Program
    storage: str
    layout: str
    by_netcdf_c: bool = False

    @property
    def mode(self) -> str:
        return self.layout if self.by_netcdf_c else "zarr" if self.layout.startswith("pure") else "nczarr"

    @property
    def features(self) -> Features:
        layout = self.layout
        if self.by_netcdf_c:
            newest = Features.of(self.program, "D").unlimited
            layout = "pure" if layout == "zarr" else "D" if newest else "C"
            if layout == "C" and self.program.version == "4.9.0":
                layout = "B"
        return Features.of(self.program, layout)

    def run(self, s3: S3 | None = None) -> tuple[str, str]:
        """Return how far it comes, and what stopped it."""
        done = [NO]
        try:
            done.extend(self.steps(s3))
        except (PeerError, OmnizarrError, AssertionError) as error:
            return done[-1], f"{type(error).__name__}: {error}"
        return done[-1], ""

    def steps(self, s3: S3 | None = None) -> Iterator[str]:
        """Yield what succeeded, step by step."""
        made = sample(self.features)
        with ExitStack() as opened:
            place = opened.enter_context(new_place(self.storage, self.mode, s3))
            peer = opened.enter_context(closing(self.program.peer(place.environment)))
            first, second = (self._theirs, self._ours) if self.by_netcdf_c else (self._ours, self._theirs)
            writer, reader = first(place, peer), second(place, peer)
            writer.write(made)
            self.check(reader, made)
            yield READ
            reader.change(made)
            ours, theirs = (reader, writer) if self.by_netcdf_c else (writer, reader)
            self.check(ours, changed(made))
            yield HALF
            self.check(theirs, changed(made))
            yield CHANGED

    def check(self, who: Any, made: Made) -> None:
        found, expected = seen(who.source(), made, self.features), seen(made.source(), made, self.features)
        names = [name for name in {**found, **expected} if found.get(name) != expected.get(name)]
        assert not names, f"{names[0]} is {found.get(names[0])}, expected {expected.get(names[0])}"

    def _ours(self, place: Place, _: Peer) -> _Ours:
        return _Ours(place, None if self.by_netcdf_c else self.layout)

    def _theirs(self, place: Place, peer: Peer) -> _Theirs:
        return _Theirs(place, peer)


@dataclass
class _Ours:
    """omnizarr."""

    place: Place
    layout: str | None

    def write(self, made: Made) -> None:
        with self._open("w", layout=self.layout) as dataset:
            copying.write(dataset, made.source())

    def source(self) -> Any:
        with self._open("r") as dataset:
            source = dataset.as_source()
            sizes = source.root.sizes()
            data = {
                f"{path}/{name}": source.read(
                    f"{path}/{name}", tuple(slice(0, sizes[dimension].size) for dimension in each.dimensions)
                )
                for path, group in source.root.walk()
                for name, each in group.variables.items()
            }
            return Made(source.root, data, data).source()

    def change(self, made: Made) -> None:
        (start, _), record = change_of(made)
        with self._open("a") as dataset:
            dataset.title = TITLE
            dataset["level"][start] = record[0]

    def _open(self, mode: str, **options: Any) -> Dataset:
        return Dataset(self.place.ours, mode, storage_options=self.place.options, **options)


@dataclass
class _Theirs:
    """netCDF-C."""

    place: Place
    peer: Peer

    def write(self, made: Made) -> None:
        self.peer.write(self.place.theirs, made)

    def source(self) -> Any:
        return self.peer.read(self.place.theirs).source()

    def change(self, made: Made) -> None:
        start, record = change_of(made)
        self.peer.change(self.place.theirs, "level", start, record, TITLE)


def has_storage(program: Program, storage: str, s3: S3 | None) -> bool:
    """Return whether a netCDF-C was built with a storage: whether it reads what it wrote there."""
    attempt = Attempt(program, storage, "nczarr", by_netcdf_c=True)
    with new_place(storage, "nczarr", s3) as place, closing(program.peer(place.environment)) as peer:
        theirs, made = _Theirs(place, peer), sample(attempt.features)
        try:
            theirs.write(made)
            theirs.source()
        except PeerError:
            return False
    return True


# -- the tables --------------------------------------------------------------------------------------------


def tables(s3: S3 | None, say: Callable[[str], object] = lambda _: None) -> str:
    """Return the tables of the manual; what no netCDF-C opens is left out."""
    found = programs()
    has = {(each, storage): has_storage(each, storage, s3) for each in found for storage in STORAGES}

    def cell(program: Program, storage: str, layout: str, *, by_netcdf_c: bool) -> str:
        if not has[program, storage]:
            return ABSENT
        result, why = Attempt(program, storage, layout, by_netcdf_c).run(s3)
        say(f"{program}: {storage}, {layout}{' of netCDF-C' * by_netcdf_c}: {result} {why[:700]!r}")
        return result

    parts = []
    for head, layouts, by_netcdf_c in ((BY_OMNIZARR, LAYOUTS, False), (BY_NETCDF_C, MODES, True)):
        parts += [f"| {head} | in | {' | '.join(map(str, found))} |", "|---" * (len(found) + 2) + "|"]
        for storage in STORAGES:
            for layout in layouts:
                cells = [cell(each, storage, layout, by_netcdf_c=by_netcdf_c) for each in found]
                if not set(cells) <= {NO, ABSENT}:
                    parts.append(f"| {layout} | {storage} | {' | '.join(cells)} |")
        parts.append("")
    return "\n".join(parts)


def cells_of_the_manual() -> Iterator[tuple[str, str, str, bool, str]]:
    """Yield what the tables of the manual say: which netCDF-C, storage, layout, whether netCDF-C wrote, the result."""
    names: list[str] = []
    by_netcdf_c = False
    for line in MANUAL.read_text().partition(BEGIN)[2].partition(END)[0].splitlines():
        head, *rest = [each.strip() for each in line.strip("|").split("|")]
        if head in (BY_OMNIZARR, BY_NETCDF_C):
            names, by_netcdf_c = rest[1:], head == BY_NETCDF_C
        elif head and "---" not in head:
            for name, result in zip(names, rest[1:], strict=True):
                yield name, rest[0], head, by_netcdf_c, result


def main() -> None:
    home = Path(tempfile.mkdtemp())
    try:
        with running_s3(home) as s3:
            made = tables(s3, lambda line: sys.stderr.write(f"{line}\n"))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    sys.stdout.write(made)
    if "--write" in sys.argv:
        text = MANUAL.read_text()
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
        MANUAL.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{after}")


if __name__ == "__main__":
    main()
