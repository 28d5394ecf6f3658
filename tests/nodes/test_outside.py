"""Nothing is made below an array, through whatever function, in whatever format, though a store begins below it."""

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.errors import ContainsArrayError, NotRepresentableError
from omnizarr.storage import StorePath
from omnizarr.stores import LocalStore
from omnizarr.tools.edit.create import make

ARRAY = {"shape": (2,), "dtype": "int32"}
WAYS = {
    "create_array": lambda at, _: omnizarr.create_array(at, **ARRAY),
    "create_array of the format": lambda at, form: omnizarr.create_array(at, **ARRAY, zarr_format=form),
    "create_group": lambda at, _: omnizarr.create_group(at),
    "open_array": lambda at, _: omnizarr.open_array(at, mode="a", **ARRAY),
    "open_group": lambda at, _: omnizarr.open_group(at, mode="a"),
    "save": lambda at, _: omnizarr.save(at, np.arange(3)),
    "convert": lambda at, _: omnizarr.convert(at.parents[1] / "source.zarr", at),
    "copy_node": lambda at, _: omnizarr.copy_node(at.parents[1] / "source.zarr", at),
    "move_node": lambda at, _: omnizarr.move_node(at.parents[1] / "source.zarr", at),
    "pyramid": lambda at, _: omnizarr.pyramid(at.parents[1] / "source.zarr/image", at, axes="yx"),
    "make an array": lambda at, _: make(at, ARRAY, kind="array"),
    "make a group": lambda at, _: make(at, {}, kind="group"),
    "make in a store": lambda at, _: make(StorePath(LocalStore(at.parents[1]), "p.zarr/below"), ARRAY, kind="array"),
}  # fmt: skip


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("zarr_format", [0, 1, 2, 3])
def test_nothing_is_made_below_an_array(tmp_path, zarr_format, way):
    omnizarr.create_array(tmp_path / "p.zarr", data=np.arange(3.0), zarr_format=zarr_format)
    source = omnizarr.create_group(tmp_path / "source.zarr", zarr_format=zarr_format if zarr_format > 1 else 3)
    source.create_array("image", data=np.zeros((8, 8)))
    before = files(tmp_path)
    with pytest.raises((ContainsArrayError, NotRepresentableError)):
        WAYS[way](tmp_path / "p.zarr/below", zarr_format)
    assert files(tmp_path) == before


@pytest.mark.parametrize("zarr_format", [0, 1, 2, 3])
def test_nothing_is_made_several_directories_below_an_array(tmp_path, zarr_format, capsys):
    omnizarr.create_array(tmp_path / "p.zarr", data=np.arange(3.0), zarr_format=zarr_format)
    before = files(tmp_path)
    with pytest.raises(ContainsArrayError, match=r"an array at .*p\.zarr"):
        omnizarr.create_array(tmp_path / "p.zarr/a/b/c", **ARRAY)
    assert main(["create", str(tmp_path / "p.zarr/a/b"), "--shape", "3", "--dtype", "int8"]) == 1
    assert "an array is in the way" in capsys.readouterr().err
    assert files(tmp_path) == before


def test_files_of_others_with_names_of_documents_stop_nothing(tmp_path):
    for name in ("meta", "zarr.json", ".zarray"):
        (tmp_path / name).write_bytes(b"of another program")
    omnizarr.create_array(tmp_path / "new/x.zarr", data=np.arange(3))
    omnizarr.create_group(tmp_path / "group.zarr")
    omnizarr.create_array(tmp_path / "group.zarr/below/x", data=np.arange(3))
