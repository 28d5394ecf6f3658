"""The repr of arrays and groups, and their HTML, name the store, its place and the path."""

import pytest

import omnizarr
from omnizarr.stores import CacheStore, LocalStore, MemoryStore, PrefixStore


def both(node):
    return [repr(node), node._repr_html_()]


@pytest.mark.parametrize(
    ("name", "word"), [("a.zarr", "local"), ("a.zip", "zip"), ("a.sqlite", "sqlite"), ("a.lmdb", "lmdb")]
)
def test_place_on_disk_is_named(tmp_path, name, word):
    place = tmp_path / name
    with omnizarr.open_group(place, mode="w") as root:
        root["a/t"] = [1, 2]
        for text in both(root):
            assert f"{word} {place}" in text
        assert repr(root["a/t"]) == f"<Array /a/t (2,) int64 {word} {place}>"
        assert repr(root["a"]) == f"<Group /a {word} {place}>"
        for text in both(root["a/t"]) + both(root["a"]):
            assert f"{word} {place}" in text


def test_memory_has_no_place():
    root = omnizarr.create_group({})
    root["t"] = [1, 2]
    assert (repr(root), repr(root["t"])) == ("<Group / memory>", "<Array /t (2,) int64 memory>")


def test_part_of_a_store_and_a_store_around_another_have_the_place_of_the_data(tmp_path):
    omnizarr.create_group(tmp_path / "x.zarr")["a/t"] = [1, 2]
    part = PrefixStore(LocalStore(tmp_path), "x.zarr")
    assert repr(omnizarr.open(part)["a/t"]) == f"<Array /a/t (2,) int64 local {tmp_path}/x.zarr>"
    around = CacheStore(LocalStore(tmp_path / "x.zarr"))
    assert repr(omnizarr.open(around)["a"]) == f"<Group /a cache {tmp_path}/x.zarr>"
    assert PrefixStore(MemoryStore(), "x").place == ""


def test_name_of_others_is_made_safe_to_show(tmp_path):
    group = omnizarr.create_group(tmp_path / "a\x1b[31m\n.zarr")
    assert "\x1b" not in repr(group)
    assert "\n" not in repr(group)
