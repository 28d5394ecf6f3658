"""The readers of `benchmarks.latency` over HTTP and S3: each library behind the same methods, by default and tuned.

A place is a URL, with the options of `omnizarr` for S3, which each peer translates into its own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.peers.contract import Shapes, Unsupported
from benchmarks.workloads import AnyArray

Window = tuple[slice, ...]


@dataclass(frozen=True)
class Place:
    """Where arrays are."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_s3(self) -> bool:
        return self.url.startswith("s3:")

    @property
    def bucket(self) -> str:
        return self.url.removeprefix("s3://").rstrip("/")


class Remote:
    """One library, with settings. What it cannot do raises `Unsupported`."""

    def __init__(self, place: Place, **settings: Any) -> None:
        self.place = place
        self.settings = settings

    def version(self) -> str:
        raise NotImplementedError

    def open(self, name: str) -> Any:
        """Open an array, from what the server says now."""
        raise NotImplementedError

    def read(self, array: Any, window: Window) -> AnyArray:
        raise NotImplementedError

    def write(self, array: Any, values: AnyArray) -> None:
        raise Unsupported("no writing")

    def consolidated(self, name: str) -> Shapes:
        """Open a group by what is consolidated, and return the shapes of all its arrays."""
        raise Unsupported("no consolidated metadata")

    def members(self, name: str) -> Shapes:
        """Look for the arrays in a group, and return their shapes."""
        raise Unsupported("no listing")


class Omnizarr(Remote):
    """This library; which of its engines, the environment says."""

    def __init__(self, place: Place, **settings: Any) -> None:
        super().__init__(place, **settings)
        self._omnizarr = import_module("omnizarr")
        self._options = {**place.options, **settings}

    def version(self) -> str:
        return version("omnizarr")

    def open(self, name: str) -> Any:
        return self._omnizarr.open_array(f"{self.place.url}/{name}", mode="r+", storage_options=self._options)

    def read(self, array: Any, window: Window) -> AnyArray:
        result: AnyArray = array[window]
        return result

    def write(self, array: Any, values: AnyArray) -> None:
        array[...] = values

    def _group(self, name: str, *, is_consolidated: bool) -> Shapes:
        group = self._omnizarr.open_group(
            f"{self.place.url}/{name}", mode="r", use_consolidated=is_consolidated, storage_options=self._options
        )
        return {name: array.shape for name, array in group.arrays()}

    def consolidated(self, name: str) -> Shapes:
        return self._group(name, is_consolidated=True)

    def members(self, name: str) -> Shapes:
        return self._group(name, is_consolidated=False)


class TensorStore(Remote):
    """`concurrency` is how many requests it sends at once; by default 32."""

    def __init__(self, place: Place, concurrency: int | None = None) -> None:
        super().__init__(place)
        self._tensorstore = import_module("tensorstore")
        settings: dict[str, Any] = {"cache_pool": {"total_bytes_limit": 0}}
        if concurrency is not None:
            settings["s3_request_concurrency" if place.is_s3 else "http_request_concurrency"] = {"limit": concurrency}
        if place.is_s3:
            os.environ["AWS_ACCESS_KEY_ID"] = place.options["access_key_id"]
            os.environ["AWS_SECRET_ACCESS_KEY"] = place.options["secret_access_key"]
        self._context = self._tensorstore.Context(settings)

    def version(self) -> str:
        return version("tensorstore")

    def _kvstore(self, name: str) -> dict[str, Any]:
        if not self.place.is_s3:
            return {"driver": "http", "base_url": f"{self.place.url}/", "path": f"{name}/"}
        return {
            "driver": "s3", "bucket": self.place.bucket, "path": f"{name}/", "endpoint": self.place.options["endpoint"],
            "aws_region": self.place.options["region"], "aws_credentials": {"type": "environment"},
        }  # fmt: skip

    def open(self, name: str) -> Any:
        spec = {"driver": "zarr3", "kvstore": self._kvstore(name)}
        return self._tensorstore.open(spec, open=True, context=self._context).result()

    def read(self, array: Any, window: Window) -> AnyArray:
        result: AnyArray = array[window].read().result()
        return result

    def write(self, array: Any, values: AnyArray) -> None:
        array.write(values).result()


def _obstore(place: Place) -> Any:
    stores = import_module("obstore.store")
    client = {"allow_http": True}
    if not place.is_s3:
        return stores.HTTPStore(place.url, client_options=client)
    options = {name: value for name, value in place.options.items() if name != "allow_http"}
    return stores.S3Store(place.bucket, client_options=client, **options)


class ZarrPython(Remote):
    """`through` is obstore or fsspec, `pipeline` the class of codec pipelines; the rest goes to its configuration."""

    def __init__(self, place: Place, through: str, pipeline: str | None = None, **settings: Any) -> None:
        super().__init__(place)
        self._zarr = import_module("zarr")
        self._through, self._connections = through, settings.get("async__concurrency")
        if pipeline is not None:
            module, _, name = pipeline.rpartition(".")
            if not hasattr(import_module(module), name):
                raise Unsupported(f"no {name}")
            settings["codec_pipeline.path"] = pipeline
        self._zarr.config.set({name.replace("__", "."): value for name, value in settings.items()})

    def version(self) -> str:
        return version("zarr") + f" with {self._through} {version(self._through)}"

    def _store(self, name: str, *, read_only: bool = False) -> Any:
        storage = import_module("zarr.storage")
        if self._through == "obstore":
            store = storage.ObjectStore(_obstore(self.place), read_only=read_only or not self.place.is_s3)
            return storage.StorePath(store, name)
        options: dict[str, Any] = {}
        if self.place.is_s3:
            options = {
                "key": self.place.options["access_key_id"], "secret": self.place.options["secret_access_key"],
                "client_kwargs": {
                    "endpoint_url": self.place.options["endpoint"], "region_name": self.place.options["region"],
                },
                "config_kwargs": {} if self._connections is None else {"max_pool_connections": self._connections},
            }  # fmt: skip
        return storage.FsspecStore.from_url(
            f"{self.place.url}/{name}", storage_options=options, read_only=read_only or not self.place.is_s3
        )

    def open(self, name: str) -> Any:
        mode = "r+" if self.place.is_s3 else "r"
        return self._zarr.open_array(self._store(name), mode=mode, zarr_format=3)

    def read(self, array: Any, window: Window) -> AnyArray:
        result: AnyArray = array[window]
        return result

    def write(self, array: Any, values: AnyArray) -> None:
        array[...] = values

    def _group(self, name: str, *, is_consolidated: bool) -> Shapes:
        store = self._store(name, read_only=True)
        group = self._zarr.open_group(store, mode="r", zarr_format=3, use_consolidated=is_consolidated)
        return {name: array.shape for name, array in group.arrays()}

    def consolidated(self, name: str) -> Shapes:
        return self._group(name, is_consolidated=True)

    def members(self, name: str) -> Shapes:
        return self._group(name, is_consolidated=False)


class Zarrista(Remote):
    """zarrs by its bindings for asyncio; `settings` go to each call."""

    def __init__(self, place: Place, **settings: Any) -> None:
        super().__init__(place, **settings)
        self._zarrista = import_module("zarrista")
        self._loop = asyncio.new_event_loop()
        self._store = _obstore(place)

    def version(self) -> str:
        return version("zarrista")

    def _do(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        # What it returns is awaited where a loop runs, and made there too.
        async def do() -> Any:
            return await function(*args, **kwargs)

        return self._loop.run_until_complete(do())

    def open(self, name: str) -> Any:
        return self._do(self._zarrista.AsyncArray.open, self._store, f"/{name}")

    def read(self, array: Any, window: Window) -> AnyArray:
        return np.asarray(self._do(array.retrieve_array_subset, window, **self.settings))

    def write(self, array: Any, values: AnyArray) -> None:
        self._do(array.store_array_subset, ..., values, **self.settings)

    def members(self, name: str) -> Shapes:
        group = self._do(self._zarrista.AsyncGroup.open, self._store, f"/{name}")
        return {array.path.rpartition("/")[2]: tuple(array.shape) for array in self._do(group.child_arrays)}


@dataclass(frozen=True)
class Entry:
    """A library with settings; `of` is the class."""

    label: str
    of: type[Remote]
    settings: Mapping[str, Any] = field(default_factory=dict)
    how: str = ""  # nothing: as it comes
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_ours(self) -> bool:
        return self.of is Omnizarr


_FUSED = "zarr.core.codec_pipeline.FusedCodecPipeline"
_ZARRS = "zarrs.ZarrsCodecPipeline"
_WIDE = {"async__concurrency": 128, "threading__max_workers": 8}
PEERS = {
    "omnizarr": Entry("omnizarr", Omnizarr, environment={"OMNIZARR_ENGINE": "native"}),
    "omnizarr-reference": Entry("omnizarr (Python)", Omnizarr, environment={"OMNIZARR_ENGINE": "reference"}),
    "tensorstore": Entry("TensorStore", TensorStore),
    **{
        f"tensorstore-{limit}": Entry("TensorStore", TensorStore, {"concurrency": limit}, f"{limit} requests")
        for limit in (64, 128, 256, 512)
    },
    "zarr-obstore": Entry("zarr-python, obstore", ZarrPython, {"through": "obstore"}),
    "zarr-obstore-128": Entry("zarr-python, obstore", ZarrPython, {"through": "obstore", **_WIDE}, "128 requests"),
    "zarr-obstore-fused": Entry(
        "zarr-python, obstore", ZarrPython, {"through": "obstore", "pipeline": _FUSED, **_WIDE}, "fused, 128 requests"
    ),
    "zarr-fsspec": Entry("zarr-python, fsspec", ZarrPython, {"through": "fsspec"}),
    "zarr-fsspec-128": Entry("zarr-python, fsspec", ZarrPython, {"through": "fsspec", **_WIDE}, "128 requests"),
    "zarrs-python": Entry("zarrs-python", ZarrPython, {"through": "obstore", "pipeline": _ZARRS}),
    "zarrs-python-128": Entry(
        "zarrs-python", ZarrPython,
        {
            "through": "obstore", "pipeline": _ZARRS, "threading__max_workers": 128,
            "codec_pipeline__chunk_concurrent_minimum": 128, "codec_pipeline__chunk_concurrent_maximum": 128,
        },
        "128 threads",
    ),
    "zarrista": Entry("zarrista", Zarrista),
    "zarrista-128": Entry(
        "zarrista", Zarrista, {"concurrent_target": 128, "chunk_concurrent_minimum": 128}, "128 requests"
    ),
}  # fmt: skip
