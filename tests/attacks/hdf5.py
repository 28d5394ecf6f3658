"""HDF5 files that lead to other files."""

from __future__ import annotations

from pathlib import Path

from tests.attacks.arena import SECRET, Field, attack

SIZE = len(SECRET)
TRIES = (
    "omnizarr convert {x} {out}",
    "omnizarr convert {x} {out} --trust-root {x}/../../received",
    "omnizarr dump {x}",
    "omnizarr.convert('{x}', '{out}', references=['/nowhere', 'https://example.org'])",
    "from omnizarr.netcdf import files\nwith files.open_file('{x}') as source: print(source)",
)


def _file(field: Field) -> Path:
    return field.received / "x.nc"


@attack("files", "HDF5: external storage in a file outside", *TRIES)
def _(field: Field) -> None:
    import h5py

    with h5py.File(_file(field), "w") as file:
        file.create_dataset("v", (SIZE,), "u1", external=[(str(field.secret), 0, SIZE)])


@attack("files", "HDF5: an external link to a file outside", *TRIES)
def _(field: Field) -> None:
    import h5py

    with h5py.File(field.secret.parent / "other.h5", "w") as file:
        file["d"] = list(SECRET.encode())
    with h5py.File(_file(field), "w") as file:
        file["v"] = h5py.ExternalLink(str(field.secret.parent / "other.h5"), "d")


@attack("files", "HDF5: a virtual dataset of a file outside", *TRIES)
def _(field: Field) -> None:
    import h5py

    with h5py.File(field.secret.parent / "other.h5", "w") as file:
        file["d"] = list(SECRET.encode())
    layout = h5py.VirtualLayout((SIZE,), "u1")
    layout[:] = h5py.VirtualSource("../elsewhere/other.h5", "d", (SIZE,))
    with h5py.File(_file(field), "w") as file:
        file.create_virtual_dataset("v", layout)


@attack("files", "HDF5: links in circles", *TRIES[:1], TRIES[2], refused=True)
def _(field: Field) -> None:
    import h5py

    with h5py.File(_file(field), "w") as file:
        file["g/up"] = h5py.SoftLink("/")
        file["g/self"] = h5py.ExternalLink("x.nc", "/")


@attack(
    "files", "HDF5: two links from each file to the next one, thirty files long", *TRIES[:1], TRIES[2], refused=True
)
def _(field: Field) -> None:
    import h5py

    for number in range(30):
        with h5py.File(_file(field) if not number else field.received / f"x{number}.h5", "w") as file:
            file["a"] = file["b"] = h5py.ExternalLink(f"x{number + 1}.h5", "/")


IN_PLACE = (
    "omnizarr info {x}",
    "omnizarr tree {x}",
    "omnizarr digest {x}",
    "for _, each in omnizarr.open('{x}').members(max_depth=None): print(each[...] if hasattr(each, 'shape') else '')",
)


@attack("files", "HDF5: opened in place, and leads to files outside in every way", *IN_PLACE)
def _(field: Field) -> None:
    import h5py

    with h5py.File(field.secret.parent / "other.h5", "w") as file:
        file["d"] = list(SECRET.encode())
    layout = h5py.VirtualLayout((SIZE,), "u1")
    layout[:] = h5py.VirtualSource("../elsewhere/other.h5", "d", (SIZE,))
    with h5py.File(_file(field), "w") as file:
        file.create_dataset("external", (SIZE,), "u1", external=[(str(field.secret), 0, SIZE)])
        file["link"] = h5py.ExternalLink(str(field.secret.parent / "other.h5"), "d")
        file.create_virtual_dataset("virtual", layout)


@attack("files", "HDF5: opened in place, with circles and vast numbers", *IN_PLACE[:2])
def _(field: Field) -> None:
    import h5py

    with h5py.File(_file(field), "w") as file:
        file["g/up"], file["g/down"] = h5py.SoftLink("/"), file["/"]
        for number in range(40):
            file.require_group(f"ladder/{number}")
        for number in range(39):
            for name in "ab":
                file[f"ladder/{number}/{name}"] = file[f"ladder/{number + 1}"]
        file.create_dataset("chunks", (2**40, 2**19), "u1", chunks=(1, 1), compression="gzip")[2**39, 5] = 1
        file.create_dataset("growing", (2**40,), "u1", chunks=(1,), maxshape=(None,))[3] = 1
        file.create_dataset("whole", (2**50,), "u1")
