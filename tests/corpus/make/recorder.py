"""Record what a program wrote, and what the same program reads back.

Imported by the scripts beside it. They run in the environments of the programs that
write the data, so this needs NumPy and nothing else, and never omnizarr.
"""

import base64
import json
import shutil
import warnings
import zipfile
from pathlib import Path

import numpy as np

CORPUS = Path(__file__).parents[1]


def plain(value):
    """Return `value` as JSON that describes its Python objects."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, tuple):
        return {"tuple": [plain(item) for item in value]}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {"dict": {key: plain(item) for key, item in value.items()}}
    if isinstance(value, np.generic):
        return plain(value.item())
    return value


def pack(directory, archive):
    """Put the files of `directory` into `archive`, the same bytes in every run, and remove it."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                name = path.relative_to(directory).as_posix()
                target.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    shutil.rmtree(directory)


class Case:
    """One hierarchy on disk: `store` is where it is to be written.

    A directory is packed into ``store.zip`` at the end: the corpus consists of few files, and no tool changes
    their line ends. With ``store="store.zip"`` the program writes the archive itself.
    """

    def __init__(self, writer, name, program, *, store="store"):
        self.directory = CORPUS / writer / name
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        self.store = self.directory / store
        self.document = {
            "program": program,
            "script": f"tests/corpus/make/{writer}.py",
            "store": "zip" if store.endswith(".zip") else "directory",
            "nodes": {},
        }
        self.arrays = {}

    def array(self, path, values, fill_value, attributes=None, **more):
        """Expect an array with these values.

        A fixed-size array goes to ``expected.npz``, any other to JSON. ``dtype`` says what it is in memory
        where an .npy file cannot. `fill_value` None: the document says that there is none.
        """
        values = np.asanyarray(values)
        node = {"node_type": "array", "shape": list(values.shape), "attributes": attributes or {}, **more}
        if values.dtype.kind in "OT":
            node.setdefault("dtype", "StringDType" if values.dtype.kind == "T" else "object")
            node["values"] = [plain(value) for value in values.ravel().tolist()]
            node["fill_value"] = plain(fill_value)
        else:
            self.arrays[f"{path}/values"] = values
            if fill_value is None:
                node["fill_value"] = None
            else:
                self.arrays[f"{path}/fill_value"] = np.asarray(fill_value, dtype=values.dtype)
        self.document["nodes"][path] = node

    def group(self, path, attributes=None, members=None, **more):
        """Expect a group with these attributes and, if given, exactly these children."""
        node = {"node_type": "group", "attributes": attributes or {}, **more}
        if members is not None:
            node["members"] = sorted(members)
        self.document["nodes"][path] = node

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            return
        if self.store.is_dir():
            pack(self.store, self.directory / "store.zip")
        if self.arrays:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy mentions that metadata of dtypes is not stored
                np.savez_compressed(self.directory / "expected.npz", **self.arrays)
        text = json.dumps(self.document, indent=1, ensure_ascii=False)
        (self.directory / "expected.json").write_text(text + "\n", encoding="utf-8")
        print(f"{self.directory.name}: {len(self.document['nodes'])} nodes")
