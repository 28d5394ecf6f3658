"""H-compress: what cfitsio wrote, as astropy decodes it."""

import struct
import time

import numpy as np
import pytest

from omnizarr.codecs import hcompress

# fmt: off
WRITTEN = {
    "exact": (
        ("dd9900000005000000060000000000000000000016a00b0b0bf440e3001a023dc7940b111f4a41e103f567feffbe1af6"
        "404b203a923ecf3e9c04d047d3d02c40054447fdff0497aa072048f740241c41240a5ff7b40e5ee8383dd01506c07d02"
        "9014079000f03c5c08"),
        [
            574, 706, -68, 709, 374, 420, 533, 192, 879, -37, 185, 289, 475, 314, 39, -46, -89, -42, 57, 899,
            99, 555, 652, 142, 189, 340, 170, 874, 85, 798
        ],
    ),
    "in steps of 8": (
        ("dd9900000004000000090000000800000000000006a4080807f68802103d07b4c02481d6007c80eebd80c40b1095f721"
        "9c02419000301845eef102d505c9074d03217bb8a0a40a100e0e802f0070d50063cd5c5720"),
        [
            697, 745, 25, 297, 531, 399, 567, 579, 567, -31, 857, 461, 805, 179, 271, 779, 95, -25, 281, 585,
            31, 771, 247, 135, 449, 797, 785, 773, 213, -69, 679, 611, 675, -87, -51, 409
        ],
    ),
}
# fmt: on
"""Tiles that cfitsio (in astropy 8.0) wrote, and what it reads of them."""


@pytest.mark.parametrize("name", WRITTEN)
def test_tiles_are_decoded(name):
    data, expected = WRITTEN[name]
    assert hcompress.decode(bytes.fromhex(data), len(expected)).tolist() == expected


@pytest.mark.parametrize("shape", [(4, 4), (5, 7), (4, 33), (31, 6), (64, 65), (200, 131)])
@pytest.mark.parametrize("scale", [0, 5])
def test_astropy_decodes_the_same(shape, scale):
    codecs = pytest.importorskip("astropy.io.fits.hdu.compressed._codecs", reason="astropy writes the tiles")
    codec = codecs.HCompress1(scale=scale, smooth=False, bytepix=4, nx=shape[0], ny=shape[1])
    random = np.random.default_rng(0)
    for values in (random.integers(-9, 30_000, shape), np.where(random.random(shape) < 0.03, 1 << 20, -5)):
        data = bytes(codec.encode(values.astype("i4")))
        expected = np.asarray(codec.decode(np.frombuffer(data, np.uint8))).ravel()
        assert np.array_equal(hcompress.decode(data, values.size), expected)
        assert scale or np.array_equal(expected, values.ravel())


def test_broken_tiles_are_errors():
    data, expected = WRITTEN["exact"]
    whole, random = bytes.fromhex(data), np.random.default_rng(0)
    for broken in (b"", whole[:20], whole[:30], b"XX" + whole[2:], whole[:14] + whole[15:]):
        with pytest.raises(ValueError, match=r"ends too early|begins with|pixels|planes"):
            hcompress.decode(broken, len(expected))
    with pytest.raises(ValueError, match="pixels"):
        hcompress.decode(whole, 29)
    for _ in range(300):
        changed = bytearray(whole)
        changed[random.integers(len(whole))] = random.integers(256)
        try:
            assert hcompress.decode(bytes(changed), len(expected)).shape == (30,)
        except ValueError:
            continue


def test_bit_planes_without_bits_take_no_time_for_each_pixel():
    side, planes = 2048, 62
    bits = ("1111" + "111110") * (4 * planes) + "0000"  # trees whose only node has no bit
    body = np.packbits(np.array([*map(int, bits)], np.uint8)).tobytes()
    data = struct.pack(">2siiiq3B", b"\xdd\x99", side, side, 1, 0, planes, planes, planes) + body
    began = time.process_time()
    assert not hcompress.decode(data, side * side).any()
    assert time.process_time() - began < 2  # they took 4 seconds
