"""Atomic changes of values: under a lock, only if the value has not changed, and never without a backup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from omnizarr.nodes.location import StorePath
from omnizarr.stores import Store
from omnizarr.stores.base import Buffer
from omnizarr.tools.check.report import Finding
from omnizarr.tools.repair.backup import Backup
from omnizarr.tools.repair.overlay import Overlay
from omnizarr.tools.repair.report import Action

Identity = tuple[str, str, str | None, str]


def identity(finding: Finding) -> Identity:
    """Return what tells a finding from others."""
    return finding.code, finding.path, finding.key, finding.pointer


@dataclass(slots=True)
class RepairState:
    """The state of one repair.

    Attributes
    ----------
    where : StorePath
        Where it began; the store is an `Overlay` in a dry run.
    codes : frozenset of str
        What is to be mended.
    backup : Backup or None
    actions : list of Action
    settled : set
        The findings that were mended.
    reasons : dict
        Of findings that were not: why, and what to do.
    touched : set of str
        Paths of nodes that have other documents now.
    """

    where: StorePath
    codes: frozenset[str]
    backup: Backup | None = None
    actions: list[Action] = field(default_factory=list)
    settled: set[Identity] = field(default_factory=set)
    reasons: dict[Identity, str] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)

    @property
    def store(self) -> Store:
        """What is read, and changed."""
        return self.where.store

    @property
    def is_dry(self) -> bool:
        """Whether nothing is to be changed."""
        return isinstance(self.store, Overlay)

    def change(
        self,
        key: str,
        old: Buffer | None,
        new: Buffer | None,
        actions: Sequence[Action],
        *,
        lock: str,
        is_chunk: bool = False,
    ) -> bool:
        """Put `new` in the place of `old` (None: nothing), and enter what that mends.

        A dry run remembers documents, on which more depends, but no chunks, which may be large.

        Returns False, and changes nothing, if the value is no longer `old`, because another writer has changed it.
        """
        path, code = actions[0].path, actions[0].code
        kept = ""
        with self.store.lock(lock):
            current = self.store.get(key)
            same = (None if current is None else bytes(current)) == (None if old is None else bytes(old))
            if same:
                if self.backup is not None:
                    kept = self.backup.keep({"code": code, "path": path, "key": key, "lock": lock}, old, new)
                if is_chunk and self.is_dry:
                    pass
                elif new is None:
                    self.store.delete(key)
                else:
                    self.store.set(key, new)
        done = same and not self.is_dry
        self.actions += [
            replace(action, done=done, kept=kept)
            if same
            else replace(action, what=f"{action.what}, another writer has changed the value; run the repair again")
            for action in actions
        ]
        return same

    def discard_file(self, file: Path, action: Action, remove: Callable[[], object]) -> None:
        """Remove a file that is not a key of the store."""
        kept = ""
        if not self.is_dry:
            if self.backup is not None:
                entry = {"code": action.code, "path": action.path, "key": action.key, "lock": "", "is_file": True}
                kept = self.backup.keep(entry, file.read_bytes(), None)
            remove()
        self.actions.append(replace(action, done=not self.is_dry, kept=kept))

    def settle(self, finding: Finding) -> None:
        """Record that a finding was repaired."""
        self.settled.add(identity(finding))

    def refuse(self, finding: Finding, why: str) -> None:
        """Record why a finding was not repaired, and the remedy."""
        self.reasons[identity(finding)] = why
