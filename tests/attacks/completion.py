"""What a shell looks at when somebody presses Tab."""

from __future__ import annotations

import os
import zipfile

from tests.attacks.arena import COMPLETE, Field, attack

ABOVE = COMPLETE.replace("{x}/", "{x}/../")


@attack("files", "Tab beside pipes called like documents", COMPLETE, ABOVE)
def _(field: Field) -> None:
    (field.received / "a").mkdir()
    for name in ("zarr.json", "a/zarr.json", "a/.zarray", "pipe", "pipe.zip"):
        os.mkfifo(field.received / name)


@attack("files", "Tab after a pipe", COMPLETE)
def _(field: Field) -> None:
    os.mkfifo(field.received / "x.zarr")


@attack("files", "Tab beside links to an endless device", COMPLETE, ABOVE, memory=256 << 20)
def _(field: Field) -> None:
    (field.received / "a").mkdir()
    for name in ("zarr.json", "a/zarr.json", "a/.zgroup", "x.zip", "x.zarr"):
        (field.received / name).symlink_to("/dev/zero")


@attack("files", "Tab beside sparse documents", COMPLETE, ABOVE, memory=256 << 20)
def _(field: Field) -> None:
    (field.received / "a").mkdir()
    for name in ("zarr.json", "a/zarr.json"):
        with (field.received / name).open("wb") as file:
            file.truncate(6 << 30)


@attack("files", "Tab in an archive whose documents inflate", COMPLETE, memory=256 << 20)
def _(field: Field) -> None:
    with (
        zipfile.ZipFile(field.received / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a/zarr.json", "w", force_zip64=True) as file,
    ):
        for _ in range(256):
            file.write(bytes(1 << 22))
