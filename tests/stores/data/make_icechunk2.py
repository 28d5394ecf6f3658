"""Write a repository of version 2 of the format of Icechunk, packed; to be run with icechunk 2.3.0 and zarr 3."""

import sys
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import icechunk
import numpy as np
import zarr

VALUES = np.arange(100.0).reshape(10, 10)


def main(folder: Path) -> None:
    """Write two commits to main, a tag of the first, a branch, and a tag that is deleted."""
    axis = icechunk.ManifestSplitDimCondition.Axis(0)
    split = {icechunk.ManifestSplitCondition.name_matches("split"): {axis: 3}}
    config = icechunk.RepositoryConfig.default()
    config.manifest = icechunk.ManifestConfig(
        splitting=icechunk.ManifestSplittingConfig.from_dict(split),
        virtual_chunk_location_compression=icechunk.ManifestVirtualChunkLocationCompressionConfig(20),
    )
    store = icechunk.s3_store(region="eu-west-1", anonymous=True, endpoint_url="http://127.0.0.1:9", allow_http=True)
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer("s3://omnizarr-test/", store, "data"))
    with tempfile.TemporaryDirectory() as place:
        made = icechunk.Repository.create(icechunk.local_filesystem_storage(place), config=config)
        made.save_config()
        for number, message in enumerate(("first", "second")):
            session = made.writable_session("main")
            root = zarr.group(session.store, overwrite=True, attributes={"title": message})
            ocean = root.create_group("ocean")
            ocean.create_array("temp", data=VALUES + number, chunks=(3, 4))
            ocean.create_array("scalar", shape=(), dtype="int32")[...] = 7
            split = root.create_array("split", shape=(10,), chunks=(1,), dtype="i4", fill_value=-1)
            split[...] = np.arange(10) * (number + 1)
            root.create_array("big", data=np.arange(4096, dtype="i4"), chunks=(1024,), compressors=None)
            root.create_array("few", shape=(8,), chunks=(16,), dtype="u1", compressors=None)
            root.create_array("many", shape=(40,), chunks=(1,), dtype="u1", compressors=None)
            few = [
                icechunk.VirtualChunkSpec([0], "vcc://data/a/x.bin", 8, 16, etag_checksum="abc"),
            ]
            session.store.set_virtual_refs("few", few)
            changed = datetime(2026, 1, 2, tzinfo=UTC)
            many = [
                icechunk.VirtualChunkSpec([n], f"s3://omnizarr-test/a/long/path/file-{n}.bin", n, 1, None, changed)
                for n in range(40)
            ]
            session.store.set_virtual_refs("many", many)
            session.commit(message)
            if not number:
                made.create_tag("v1", made.lookup_branch("main"))
                made.create_tag("gone", made.lookup_branch("main"))
        made.create_branch("dev", made.lookup_tag("v1"))
        made.delete_tag("gone")
        with zipfile.ZipFile(folder / "icechunk2.zip", "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(Path(place).rglob("*")):
                name = str(path.relative_to(place))
                if path.is_file() and not name.startswith(("overwritten", "transactions")):
                    packed.write(path, name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
