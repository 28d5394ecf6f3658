"""The codecs of numcodecs, for Zarr v3: ``Shuffle(elementsize=4)``."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from omnizarr.codecs.values import Codec
from omnizarr_as_zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec
from omnizarr_as_zarr.errors import ZarrUserWarning, warn

NOT_IN_SPECIFICATION: Final = (
    "Numcodecs codecs are not in the Zarr version 3 specification and may not be supported by other zarr "
    "implementations."
)


class _NumcodecsCodec(Codec):
    """A codec of numcodecs: its keywords are those that it has there."""

    codec_name: ClassVar[str]

    def __init__(self, **codec_config: Any) -> None:
        warn(NOT_IN_SPECIFICATION, ZarrUserWarning)
        codec_config.pop("id", None)
        super().__init__(self.codec_name, codec_config)

    @property
    def codec_config(self) -> dict[str, Any]:
        """The configuration, as in numcodecs."""
        return {"id": self.codec_name.removeprefix("numcodecs."), **self.configuration}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> _NumcodecsCodec:
        """Return the codec that a document names."""
        return cls(**data.get("configuration", {}))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(codec_name={self.codec_name!r}, codec_config={dict(self.configuration)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)


class _NumcodecsBytesBytesCodec(_NumcodecsCodec):
    """Bytes to bytes."""


class _NumcodecsArrayArrayCodec(_NumcodecsCodec):
    """Array to array."""


class _NumcodecsArrayBytesCodec(_NumcodecsCodec):
    """Array to bytes."""


BytesBytesCodec.register(_NumcodecsBytesBytesCodec)
ArrayArrayCodec.register(_NumcodecsArrayArrayCodec)
ArrayBytesCodec.register(_NumcodecsArrayBytesCodec)


class Adler32(_NumcodecsBytesBytesCodec):
    """A checksum. See [numcodecs.checksum32.Adler32][] for its keywords."""

    codec_name = "numcodecs.adler32"


class Blosc(_NumcodecsBytesBytesCodec):
    """Blosc. See [numcodecs.blosc.Blosc][] for its keywords."""

    codec_name = "numcodecs.blosc"


class BZ2(_NumcodecsBytesBytesCodec):
    """bzip2. See [numcodecs.bz2.BZ2][] for its keywords."""

    codec_name = "numcodecs.bz2"


class CRC32(_NumcodecsBytesBytesCodec):
    """A checksum. See [numcodecs.checksum32.CRC32][] for its keywords."""

    codec_name = "numcodecs.crc32"


class CRC32C(_NumcodecsBytesBytesCodec):
    """A checksum. See [numcodecs.checksum32.CRC32C][] for its keywords."""

    codec_name = "numcodecs.crc32c"


class Fletcher32(_NumcodecsBytesBytesCodec):
    """A checksum. See [numcodecs.fletcher32.Fletcher32][] for its keywords."""

    codec_name = "numcodecs.fletcher32"


class GZip(_NumcodecsBytesBytesCodec):
    """gzip. See [numcodecs.gzip.GZip][] for its keywords."""

    codec_name = "numcodecs.gzip"


class JenkinsLookup3(_NumcodecsBytesBytesCodec):
    """A checksum. See [numcodecs.checksum32.JenkinsLookup3][] for its keywords."""

    codec_name = "numcodecs.jenkins_lookup3"


class LZ4(_NumcodecsBytesBytesCodec):
    """LZ4. See [numcodecs.lz4.LZ4][] for its keywords."""

    codec_name = "numcodecs.lz4"


class LZMA(_NumcodecsBytesBytesCodec):
    """LZMA. See [numcodecs.lzma.LZMA][] for its keywords."""

    codec_name = "numcodecs.lzma"


class Shuffle(_NumcodecsBytesBytesCodec):
    """The bytes of elements, all first ones first. See [numcodecs.shuffle.Shuffle][] for its keywords."""

    codec_name = "numcodecs.shuffle"


class Zlib(_NumcodecsBytesBytesCodec):
    """zlib. See [numcodecs.zlib.Zlib][] for its keywords."""

    codec_name = "numcodecs.zlib"


class Zstd(_NumcodecsBytesBytesCodec):
    """Zstandard. See [numcodecs.zstd.Zstd][] for its keywords."""

    codec_name = "numcodecs.zstd"


class AsType(_NumcodecsArrayArrayCodec):
    """Elements in another data type. See [numcodecs.astype.AsType][] for its keywords."""

    codec_name = "numcodecs.astype"


class BitRound(_NumcodecsArrayArrayCodec):
    """Floating-point numbers with fewer bits. See [numcodecs.bitround.BitRound][] for its keywords."""

    codec_name = "numcodecs.bitround"


class Delta(_NumcodecsArrayArrayCodec):
    """Differences. See [numcodecs.delta.Delta][] for its keywords."""

    codec_name = "numcodecs.delta"


class FixedScaleOffset(_NumcodecsArrayArrayCodec):
    """Elements scaled and shifted. See [numcodecs.fixedscaleoffset.FixedScaleOffset][] for its keywords."""

    codec_name = "numcodecs.fixedscaleoffset"


class PackBits(_NumcodecsArrayArrayCodec):
    """Eight booleans in a byte. See [numcodecs.packbits.PackBits][] for its keywords."""

    codec_name = "numcodecs.packbits"


class Quantize(_NumcodecsArrayArrayCodec):
    """Elements with fewer digits. See [numcodecs.quantize.Quantize][] for its keywords."""

    codec_name = "numcodecs.quantize"


class PCodec(_NumcodecsArrayBytesCodec):
    """pcodec. See [numcodecs.pcodec.PCodec][] for its keywords."""

    codec_name = "numcodecs.pcodec"


class ZFPY(_NumcodecsArrayBytesCodec):
    """zfp. See [numcodecs.zfpy.ZFPY][] for its keywords."""

    codec_name = "numcodecs.zfpy"


__all__ = [
    "BZ2",
    "CRC32",
    "CRC32C",
    "LZ4",
    "LZMA",
    "ZFPY",
    "Adler32",
    "AsType",
    "BitRound",
    "Blosc",
    "Delta",
    "FixedScaleOffset",
    "Fletcher32",
    "GZip",
    "JenkinsLookup3",
    "PCodec",
    "PackBits",
    "Quantize",
    "Shuffle",
    "Zlib",
    "Zstd",
]
