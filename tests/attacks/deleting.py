"""Somebody else may write into a hierarchy, and replaces a directory by a link while you write, delete or move."""

from __future__ import annotations

from tests.attacks.arena import Field, attack
from tests.attacks.racing import FOLDERS, VERBS

RACE = "from tests.attacks import racing; racing.sweep({verb!r}, '{{x}}', {folder!r})"

for _verb in VERBS:

    @attack(
        "files",
        f"a directory becomes a link at each step of: {_verb}",
        *(RACE.format(verb=_verb, folder=folder) for folder in FOLDERS),
        changes=True,
        cpu=600,
    )
    def _(field: Field) -> None:
        (field.received / "x").mkdir()
