"""Somebody else may write into a hierarchy, and replaces a directory by a link while you delete, move or change it."""

from __future__ import annotations

from tests.attacks.arena import Field, attack
from tests.attacks.racing import FOLDERS

RACE = "from tests.attacks import racing; racing.sweep({verb!r}, '{{x}}', {folder!r})"

SAFE = ("mode=w", "delete_prefix", "clear", "delete_many", "delete", "move_prefix", "convert in place")

for _verb in SAFE:

    @attack(
        "files",
        f"a directory becomes a link at each step of: {_verb}",
        *(RACE.format(verb=_verb, folder=folder) for folder in FOLDERS),
        changes=True,
        cpu=60,
    )
    def _(field: Field) -> None:
        (field.received / "x").mkdir()
