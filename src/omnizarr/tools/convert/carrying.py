"""Copy nodes to another format one by one, and keep their meaning: for `omnizarr.copy`."""

from __future__ import annotations

from collections.abc import Mapping

from omnizarr.errors import ChunkError, Function, Remedy
from omnizarr.formats import dialect_named
from omnizarr.formats.contract import Dialect
from omnizarr.model import JSON, ArrayMetadata, Metadata
from omnizarr.nodes import detection, hierarchy, replacing
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath
from omnizarr.stores import LocalStore
from omnizarr.support.progress import Tick, silent
from omnizarr.tools.convert.moving import Move
from omnizarr.tools.convert.planning import Step, plan
from omnizarr.tools.convert.report import would_be_lost
from omnizarr.tools.streaming.executors import Executor, Local
from omnizarr.tools.translate.coding import Encoding


class Carrying:
    """Translate the nodes of a hierarchy together: the meaning of some of them depends on others.

    Attributes
    ----------
    files : tuple of str
        Keys below the topmost node of files that are not Zarr.

    Parameters
    ----------
    source : Found
        The topmost node.
    dialect : Dialect
        Of the target.
    depth : int, optional
        How many levels of nodes below the topmost are copied; None: all.

    Raises
    ------
    NotRepresentableError
        If something would be lost.
    """

    def __init__(self, source: Found[Metadata], dialect: Dialect, depth: int | None) -> None:
        self._root = source.where
        made = plan(source, dialect, Encoding(compressors="keep"))
        self.files = made.files
        self._steps = {step.path: step for step in made.steps if depth is None or _depth(step.path) <= depth}
        whole = [step for step in self._steps.values() if not _is_read_and_written(step)]
        if losses := [loss for step in whole for loss in step.losses]:
            remedy = Remedy("{convert} copies what can be carried, and reports what is lost", convert=Function())
            raise would_be_lost(source.where, losses, remedy)

    def _step(self, where: StorePath) -> Step:
        return self._steps[f"{where.path}/"[len(self._root.prefix) :].rstrip("/")]

    def attributes(self, where: StorePath) -> Mapping[str, JSON]:
        """Return the attributes that a node of the source has in the target."""
        step = self._step(where)
        node = step.found.metadata if step.target is None and step.found is not None else step.target
        return {} if node is None else node.attributes

    def copies_chunks(self, where: StorePath) -> bool:
        """Return whether an array can be copied by its chunks."""
        return not _is_read_and_written(self._step(where))

    def copy_array(
        self,
        where: StorePath,
        target: StorePath,
        executor: Executor | None,
        tick: Tick = silent,
        *,
        overwrite: bool,
    ) -> None:
        """Copy an array, chunks first, and compare both; if that fails, nothing stays of the copy.

        A node that it replaces stays until the copy is complete, except in stores that workers reach and that cannot
        rename.

        Raises
        ------
        ChunkError
            If a chunk of the source cannot be read.
        """
        step = self._step(where)
        if step.found is None or step.translation is None or not isinstance(step.target, ArrayMetadata):
            raise TypeError("a node without a translation was to be lost")
        metadata = step.target
        found, translation = step.found, step.translation

        def make(place: StorePath) -> None:
            move = Move(found.where, place, translation)
            move.check_memory()
            try:
                workers = executor or Local()
                _refuse_broken(where, move.run(workers, tick).broken)
                _refuse_broken(where, move.compare(workers, silent).broken)
                hierarchy.create(place, metadata)
            except BaseException:
                if detection.detect(place) is None:  # else another writer has made a node there
                    hierarchy.delete_strays(place, metadata)
                raise

        if overwrite and (executor is None or type(target.store) is LocalStore):
            replacing.remade(target, dialect_named(metadata.dialect), make)
            return
        if overwrite:
            hierarchy.clear(target)
        make(target)


def _is_read_and_written(step: Step) -> bool:
    """Return whether chunks of an array are as a storage transformer wants them, so that its elements are copied."""
    metadata = None if step.found is None else step.found.metadata
    return isinstance(metadata, ArrayMetadata) and bool(metadata.storage_transformers)


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0


def _refuse_broken(where: StorePath, broken: Mapping[str, str]) -> None:
    for key, why in broken.items():
        remedy = Remedy("repair the source").also("{convert} copies what can be read", convert=Function())
        raise ChunkError(why, store=str(where.store), path=where.path, key=key, remedy=remedy)
