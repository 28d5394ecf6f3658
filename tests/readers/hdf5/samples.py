"""HDF5 files with everything that h5py can write, in every version of the format."""

import h5py
import numpy as np

VERSIONS = [
    ("earliest", "v108"),
    ("earliest", "latest"),
    ("v108", "v108"),
    ("v110", "v110"),
    ("v112", "latest"),
    ("latest", "latest"),
]
"""The least and the latest version of the format that a writer may use."""

CHUNKED = {
    "single": ((5, 5), (5, 5), (5, 5)),
    "fixed": ((30, 20), None, (4, 7)),
    "fixed and growing": ((30, 20), (40, 25), (4, 7)),
    "fixed with pages": ((5000,), (6000,), (1,)),
    "fixed with pages in two dimensions": ((9, 2000), (10, 2100), (3, 1)),
    "extensible": ((300,), (None,), (2,)),
    "extensible along the last dimension": ((30, 20), (40, None), (4, 7)),
    "extensible with pages": ((20000,), (None,), (1,)),
    "growing along two dimensions": ((30, 20), (None, None), (4, 7)),
}
"""Shape, largest shape and chunk shape, by the index of chunks that new versions use."""


def values(shape):
    """Return values for a dataset: of large ones, those at the beginning and at the end are not the fill value."""
    found = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    if found.size > 3000:
        found[..., 100:-50] = 7
    return found


def write(path, version, **options):
    """Write a file."""
    with h5py.File(path, "w", libver=version, **options) as file:
        _attributes(file)
        _groups(file)
        _types(file)
        for name, (shape, most, chunks) in CHUNKED.items():
            for compression in (None, "gzip"):
                dataset = file.create_dataset(
                    f"{name} {compression}",
                    shape,
                    "i4",
                    chunks=chunks,
                    maxshape=most,
                    compression=compression,
                    fillvalue=7,
                )
                array = values(shape)
                if array.size > 3000:
                    dataset[..., :100], dataset[..., -50:] = array[..., :100], array[..., -50:]
                else:
                    dataset[...] = array


def _attributes(file):
    file.attrs["text"] = "Wärme"
    file.attrs["numbers"] = np.arange(6, dtype=">f4").reshape(2, 3)
    file.attrs["boolean"] = True
    file.attrs["complex"] = 1 + 2j
    file.attrs["empty"] = h5py.Empty("f4")
    file.attrs["texts"] = ["a", "bb", ""]
    file.attrs["fixed text"] = np.bytes_(b"fixed")
    file.attrs["none"] = np.empty(0, "i2")


def _groups(file):
    group = file.create_group("group")
    for number in range(40):
        group.attrs[f"attribute {number}"] = number
    for number in range(100):
        group.create_group(f"member {number}")
    tracked = file.create_group("in order", track_order=True)
    for number in range(50):
        tracked.create_group(f"member {49 - number}")
        tracked.attrs[f"attribute {49 - number}"] = number
    file["the group"] = group
    group["circle"] = file["/"]
    file["soft"] = h5py.SoftLink("/group/member 3")
    file["nowhere"] = h5py.SoftLink("/missing")
    file["external"] = h5py.ExternalLink("other.h5", "/x")


def _types(file):
    file["big-endian"] = np.arange(10, dtype=">f4")
    file["half"] = np.arange(3, dtype="f2")
    file["scalar"] = np.int64(5)
    file["null"] = h5py.Empty("i4")
    file["zero"] = np.empty((0, 3), "f8")
    file["texts"] = np.array(["a", "bcd", ""], object)
    file["fixed texts"] = np.array([b"ab", b"c"])
    file["booleans"] = np.array([True, False])
    file["complex"] = np.array([1 + 2j])
    file["references"] = np.array([file["group"].ref, file["half"].ref], h5py.ref_dtype)
    file["compound"] = np.array([(1, 2.5, b"x")], [("a", "i2"), ("b", ">f8"), ("c", "S3")])
    file["with arrays"] = np.array([(1, [1, 2])], [("a", "i2"), ("d", "u1", 2)])
    file["enumeration"] = np.array([1, 2], h5py.enum_dtype({"A": 1, "B": 2}, "u2"))
    file["opaque"] = np.void(b"abc")
    file["arrays"] = np.zeros(2, [("a", "i4", (2, 3))])["a"]
    file["type"] = np.dtype("i4")
    file.create_dataset("of a named type", data=[1, 2], dtype=file["type"])
    file.create_dataset("compact", data=np.arange(4, dtype="u1"))
    lists = file.create_dataset("lists", (3,), h5py.vlen_dtype("i2"))
    lists[0], lists[1] = [1, 2, 3], [4]


def write_elsewhere(folder, version):
    """Write x.h5, whose elements are in other files and datasets, in every way."""
    for number in range(3):
        with h5py.File(folder / f"part{number}.h5", "w", libver=version) as file:
            data = np.arange(100).reshape(10, 10) + 1000 * number
            file["whole"] = data
            file.create_dataset("chunks", data=data, chunks=(3, 4), compression="gzip", maxshape=(None, 10))
            file.create_dataset("lzf", data=np.arange(10, dtype="f4") * 1.7 + number, compression="lzf")
    with h5py.File(folder / "x.h5", "w", libver=version) as file:
        _virtual(file)
        numbers = np.arange(50).reshape(5, 10)
        for name, dtype, files in (
            ("one file", "i4", [("raw.bin", 12, 200)]),
            ("two files", ">i4", [("raw1.bin", 3, 77), ("raw2.bin", 0, h5py.h5f.UNLIMITED)]),
        ):
            file.create_dataset(name, (5, 10), dtype, external=files)[...] = numbers
        records = np.zeros(5, [("a", "i2"), ("b", ">f8")])
        records["a"] = range(5)
        file.create_dataset("records", (5,), records.dtype, external=[("raw3.bin", 0, 200)])[...] = records
        file.create_dataset("not there", (5,), "i4", external=[("missing.bin", 0, 200)])
        file.create_dataset("outside", (5,), "i4", external=[("/etc/passwd", 0, 200)])


def _virtual(file):
    def part(number, name, shape=(10, 10)):
        return h5py.VirtualSource(f"part{number}.h5", name, shape)

    def write(name, shape, places, dtype="i8", **options):
        layout = h5py.VirtualLayout(shape, dtype)
        for place, source in places:
            layout[place] = source
        file.create_virtual_dataset(name, layout, **options)

    write("stack", (4, 10, 10), [(number, part(number, "whole")) for number in range(3)], fillvalue=-1)
    rows = [slice(10 * number, 10 * number + 10) for number in range(3)]
    write("rows", (30, 10), [(rows[number], part(number, "chunks")) for number in range(3)])
    turns = [(slice(number, None, 3), part(number, "chunks")[:, ::2]) for number in range(3)]
    write("in turns", (30, 5), turns, fillvalue=5)
    for dtype in ("f8", "i2", "f4"):
        write(f"as {dtype}", (30,), [(rows[number], part(number, "lzf", (10,))) for number in range(3)], dtype)
    missing = h5py.VirtualSource("missing.h5", "whole", (10,))
    write("missing", (20,), [(rows[0], missing), (rows[1], part(1, "whole")[:, 3])], fillvalue=9)
    write("window", (5, 3), [(slice(None), part(2, "whole")[1::2, 2:8:2])])
    write("in the same file", (5, 3), [(slice(None), h5py.VirtualSource(file["window"]))])
    write("scalar", (1,), [(slice(None), part(2, "whole")[5:6, 3:4])])
    write("up", (5, 3), [(slice(None), h5py.VirtualSource("../outside.h5", "x", (5, 3)))])
    endless = h5py.h5s.UNLIMITED
    for name, source, shape, start, block, own in (
        ("growing", b"part1.h5", (4, 10), (2, 0), (1, 10), ((4, 10), (endless, 10))),
        ("numbered", b"part%b.h5", (1, 10, 10), (0, 0, 0), (1, 10, 10), None),
    ):
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        ones = (1,) * len(shape)
        target = h5py.h5s.create_simple(shape, (endless, *shape[1:]))
        target.select_hyperslab(start, (endless, *ones[1:]), ones, block)
        from_space = h5py.h5s.create_simple(*(own or ((10, 10),)))
        if own:
            from_space.select_hyperslab((0, 0), (endless, 1), (1, 1), (1, 10))
        properties.set_virtual(target, source, b"chunks", from_space)
        h5py.h5d.create(file.id, name.encode(), h5py.h5t.STD_I64LE, target, properties)
