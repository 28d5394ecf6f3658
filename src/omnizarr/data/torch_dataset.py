"""The batches of a loader as an iterable dataset of torch, which divides them among the workers of a DataLoader.

The class is made when it is first used, because its base class is torch's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from omnizarr.errors import SettingError

if TYPE_CHECKING:
    from omnizarr.data.loader import Loader

_MOST_WORKERS: Final = 1024


def batches_of(loader: Loader) -> Any:
    """Return what `Loader.as_torch` returns."""
    return _class()(loader)


def __getattr__(name: str) -> Any:
    if name == "Batches":  # as pickle looks for it
        return _class()
    raise AttributeError(f"module 'omnizarr.data.torch_dataset' has no attribute {name!r}")


@cache
def _class() -> Any:
    torch: Any = import_module("torch")
    data: Any = import_module("torch.utils.data")

    def begin(self: Any, loader: Loader) -> None:
        self.loader = loader
        # In memory that all processes share: workers that end after an epoch, and those that stay, go on with the next.
        self.first = torch.full((1,), loader.epoch, dtype=torch.int64).share_memory_()
        self.begun = torch.zeros(_MOST_WORKERS, dtype=torch.int64).share_memory_()

    def set_epoch(self: Any, epoch: int) -> None:
        """Let all workers begin an epoch next."""
        self.begun.zero_()
        self.first.fill_(epoch)

    def iterate(self: Any) -> Iterator[dict[str, Any]]:
        info = data.get_worker_info()
        worker, several = (0, 1) if info is None else (info.id, info.num_workers)
        if several > _MOST_WORKERS:
            raise SettingError("too many workers", found=several, expected=f"at most {_MOST_WORKERS}")
        epoch = int(self.first[0]) + int(self.begun[worker])
        self.begun[worker] += 1
        return iter(self.loader.part(worker, several, epoch))

    members = {"__init__": begin, "__iter__": iterate, "set_epoch": set_epoch, "__module__": __name__}
    return type("Batches", (data.IterableDataset,), members)
