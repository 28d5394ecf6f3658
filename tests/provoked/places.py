"""Errors of places: places that are missing, are of another kind, may not be opened, or cannot be replaced."""

import shutil

import numpy as np

import omnizarr
from omnizarr.stores import LocalStore, SQLiteStore, ZipStore
from tests.provoked.cases import case, document, hierarchy

ABSENT = "there is no node here"


@case(FileNotFoundError, ABSENT, "no such directory", "{at}/nowhere/x.zarr", "zarr.json", remedy="create it")
def nothing_at_all(at):
    return lambda: omnizarr.open(at / "nowhere/x.zarr")


@case(FileNotFoundError, ABSENT, "no such directory", "{at}", remedy="did you mean '{at}/x.zarr'?")
def misspelt_hierarchy(at):
    hierarchy(at)
    return lambda: omnizarr.open(at / "y.zarr"), ["info", at / "y.zarr"]


@case(FileNotFoundError, "there is no array here", "no such directory", "{at}/y.zarr", remedy="did you mean")
def misspelt_hierarchy_as_array(at):
    hierarchy(at)
    return lambda: omnizarr.open_array(at / "y.zarr")


@case(
    FileNotFoundError,
    ABSENT,
    "no such directory",
    "{at}/x.zarr",
    "tmep",
    remedy="did you mean '{at}/x.zarr/ocean/temp'?",
    typed=(ABSENT, "no such directory", "tmep", "did you mean 'temp'?"),
)
def misspelt_node_in_a_path(at):
    hierarchy(at)
    return lambda: omnizarr.open(at / "x.zarr/ocean/tmep"), ["info", at / "x.zarr/ocean/tmep"]


@case(KeyError, ABSENT, "{at}/x.zarr", "/ocean/tmep", remedy="did you mean 'ocean/temp'?", path="ocean/tmep")
def misspelt_member(at):
    root = hierarchy(at)
    return lambda: root["ocean/tmep"]


@case(
    FileNotFoundError,
    ABSENT,
    "the directory is empty",
    "{at}/d",
    remedy="create it",
    typed=(ABSENT, "is empty", "{at}/d"),
)
def empty_directory(at):
    (at / "d").mkdir()
    return lambda: omnizarr.open(at / "d"), ["info", at / "d"]


@case(OSError, "{at}/f", "neither a directory nor a zip archive", remedy="is it of another format?")
def file_of_something_else(at):
    (at / "f").write_text("hello")
    return lambda: omnizarr.open(at / "f"), ["info", at / "f"]


@case(
    FileNotFoundError,
    ABSENT,
    "a file is where a directory should be",
    "{at}/f/x.zarr",
    remedy="create it",
    typed=("{at}/f", "neither a directory nor a zip archive"),
)
def path_through_a_file(at):
    (at / "f").write_text("hello")
    return lambda: omnizarr.open(at / "f/x.zarr"), ["info", at / "f/x.zarr"]


@case(OSError, "Not a directory", "{at}/f/x.zarr", remedy="choose another place")
def new_group_below_a_file(at):
    (at / "f").write_text("hello")
    return lambda: omnizarr.create_group(at / "f/x.zarr")


@case(OSError, "{at}/f.zip", "neither a directory nor a zip archive", remedy="is it of another format?")
def empty_archive(at):
    (at / "f.zip").write_bytes(b"")
    return lambda: omnizarr.open(at / "f.zip"), ["info", at / "f.zip"]


@case(OSError, "{at}/f.zip", "begins as a zip archive", remedy="is it complete?")
def truncated_archive(at):
    with ZipStore(at / "f.zip", mode="w") as store:
        omnizarr.create_array(store, data=np.arange(4))
    (at / "f.zip").write_bytes((at / "f.zip").read_bytes()[:-30])
    return lambda: omnizarr.open(at / "f.zip"), ["info", at / "f.zip"]


@case(
    FileNotFoundError,
    "{at}/f.zip",
    "there is no such archive",
    remedy="correct the path",
    typed=("{at}/f.zip", "no such archive"),
)
def missing_archive(at):
    return lambda: omnizarr.open(at / "f.zip"), ["info", at / "f.zip"]


@case(
    ValueError,
    "there is a group, not an array",
    "{at}/x.zarr",
    remedy="omnizarr.open_group",
    typed=("is a group, not an array", "omnizarr ls -r {at}/x.zarr"),
)
def group_as_array(at):
    hierarchy(at)
    return lambda: omnizarr.open_array(at / "x.zarr"), ["get", at / "x.zarr"]


@case(ValueError, "there is an array, not a group", "{at}/x.zarr", "temp", remedy="choose the group that contains it")
def array_as_group(at):
    hierarchy(at)
    place = at / "x.zarr/ocean/temp"
    return lambda: omnizarr.open_group(place), ["consolidate", place]


@case(FileExistsError, "there is a group already", "{at}/x.zarr", remedy="overwrite=True")
def group_that_exists_in_mode_w_minus(at):
    hierarchy(at)
    return lambda: omnizarr.open_group(at / "x.zarr", mode="w-")


@case(
    FileExistsError,
    "there is an array already",
    "{at}/x.zarr",
    "temp",
    remedy="overwrite=True",
    typed=("there is an array already", "/ocean/temp", "pass --overwrite to replace it"),
)
def array_that_exists(at):
    hierarchy(at)
    place = at / "x.zarr/ocean/temp"
    return lambda: omnizarr.create_array(place, shape=3, dtype="i4"), ["create", place, "--shape", "3", "--dtype", "i4"]


@case(
    FileExistsError,
    "an array is in the way",
    "{at}/x.zarr/ocean/temp",
    "expected a group",
    remedy="choose another place",
    typed=("an array is in the way", "/ocean/temp"),
)
def new_array_below_an_array(at):
    hierarchy(at)
    place = at / "x.zarr/ocean/temp/b"
    return lambda: omnizarr.create_array(place, shape=3, dtype="i4"), ["create", place, "--shape", "3", "--dtype", "i4"]


@case(ValueError, "mode='rw'", "'r+'")
def unknown_mode(at):
    hierarchy(at)
    return lambda: omnizarr.open(at / "x.zarr", mode="rw")


@case(PermissionError, "the array is read-only", "{at}/x.zarr/ocean/temp", remedy="open it in a mode that writes")
def writing_in_mode_r(at):
    hierarchy(at)
    array = omnizarr.open_array(at / "x.zarr/ocean/temp", mode="r")
    return lambda: array.__setitem__(0, 1)


@case(PermissionError, "the store is read-only", "{at}/x.zarr", "/b", remedy="open it in a mode that writes", path="b")
def creating_in_mode_r(at):
    hierarchy(at)
    return lambda: omnizarr.open_group(at / "x.zarr", mode="r").create_group("b")


@case(PermissionError, "the store is read-only", "{at}/x.zarr", remedy="open it in a mode that writes")
def attributes_in_mode_r(at):
    hierarchy(at)
    return lambda: omnizarr.open_group(at / "x.zarr", mode="r").attrs.update(a=1)


@case(FileNotFoundError, ABSENT, "{at}/x.zarr", ".zgroup", remedy="there is a group of another format")
def another_format(at):
    hierarchy(at)
    return lambda: omnizarr.open(at / "x.zarr", zarr_format=2)


@case(ValueError, "there is no Zarr format 7", "3, 2, 1")
def unknown_format(at):
    hierarchy(at)
    return lambda: omnizarr.open(at / "x.zarr", zarr_format=7)


@case(ValueError, "there is no consolidated metadata", "{at}/x.zarr", remedy="omnizarr.consolidate_metadata")
def no_consolidated_metadata(at):
    hierarchy(at)
    return lambda: omnizarr.open_consolidated(at / "x.zarr")


@case(ValueError, "consolidated metadata is stale", "{at}/x.zarr", "ocean/temp", remedy="use_consolidated=False")
def stale_consolidated_metadata(at):
    hierarchy(at)
    omnizarr.consolidate_metadata(at / "x.zarr")
    document(at, shape=[5, 6])
    return lambda: omnizarr.open_group(at / "x.zarr", check_consolidated=True)


@case(
    FileExistsError,
    "there is a group already",
    "{at}/z.zarr",
    remedy="overwrite=True",
    typed=("there is a group already", "{at}/z.zarr", "pass --overwrite to replace it"),
)
def conversion_to_what_exists(at):
    hierarchy(at)
    omnizarr.create_group(at / "z.zarr")
    return lambda: omnizarr.convert(at / "x.zarr", at / "z.zarr"), ["convert", at / "x.zarr", at / "z.zarr"]


@case(
    FileExistsError,
    "there is a group already",
    "{at}/z.zarr",
    remedy="overwrite=True",
    typed=("there is a group already", "{at}/z.zarr", "pass --overwrite to replace it"),
)
def copy_to_what_exists(at):
    hierarchy(at)
    omnizarr.create_group(at / "z.zarr")
    return lambda: omnizarr.copy_node(at / "x.zarr", at / "z.zarr"), ["cp", at / "x.zarr", at / "z.zarr"]


@case(ValueError, "copied or moved into itself", "{at}/x.zarr", "/ocean/y", "a place that is not below", path="ocean/y")
def copy_into_itself(at):
    hierarchy(at)
    return lambda: omnizarr.copy_node(at / "x.zarr", at / "x.zarr/ocean/y"), [
        "cp",
        at / "x.zarr",
        at / "x.zarr/ocean/y",
    ]


@case(FileNotFoundError, ABSENT, "{at}/x.zarr", "/osean", remedy="did you mean 'ocean'?")
def removing_what_is_missing(at):
    hierarchy(at)
    return lambda: omnizarr.delete_node(at / "x.zarr/osean"), ["rm", at / "x.zarr/osean"]


@case(ValueError, "the archive is closed", "{at}/f.zip", "c/0", remedy="open it again", coords=(0,))
def closed_archive(at):
    store = ZipStore(at / "f.zip", mode="w")
    array = omnizarr.create_array(store, shape=4, dtype="i4")
    store.close()
    return lambda: array[:]


@case(ValueError, "the store is closed", "{at}/f.sqlite", "c/0", remedy="open it again", coords=(0,))
def closed_database(at):
    store = SQLiteStore(at / "f.sqlite")
    array = omnizarr.create_array(store, shape=4, dtype="i4")
    store.close()
    return lambda: array[:]


@case(FileNotFoundError, "the array is not there any more", "{at}/x.zarr/ocean/temp", remedy="open it where it is now")
def directory_that_has_gone(at):
    hierarchy(at)
    array = omnizarr.open_array(at / "x.zarr/ocean/temp")
    shutil.rmtree(at / "x.zarr")
    return lambda: array[:]


@case(OSError, "no store is known", "s4://", remedy="did you mean 's3://'?")
def unknown_scheme(at):
    return lambda: omnizarr.open("s4://b/x.zarr"), ["info", "s4://b/x.zarr"]


@case(OSError, "an option that s3:// does not have", "regionn", remedy="did you mean 'region'?")
def unknown_storage_option(at):
    return (
        lambda: omnizarr.open("s3://b/x.zarr", storage_options={"regionn": "x"}),
        ["info", "s3://b/x.zarr", "-o", "regionn=x"],
    )


@case(ValueError, "not a number", "found max_retries", "expected a number", typed=("not a number", "found max_retries"))
def storage_option_that_is_no_number(at):
    return (
        lambda: omnizarr.open("http://127.0.0.1:1/x.zarr", storage_options={"max_retries": "many"}),
        ["info", "http://127.0.0.1:1/x.zarr", "-o", "max_retries=many"],
    )


@case(TypeError, "int is not a store", "a path, a URL")
def number_as_store(at):
    return lambda: omnizarr.open(5)


@case(PermissionError, "the store is read-only", "{at}/x.zarr", remedy="open it in a mode that writes")
def writing_to_a_read_only_store(at):
    hierarchy(at)
    store = LocalStore(at / "x.zarr", read_only=True)
    return lambda: store.set("a", b"1")
