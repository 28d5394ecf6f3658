"""GRIB files, opened in place: the rules of WMO, and ecCodes, say what is in them."""

import itertools
import pickle
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.codecs import grib as codec
from omnizarr.codecs.contract import BytesSpec
from omnizarr.errors import ChunkError, CodecError, ReadOnlyError
from omnizarr.readers import grib
from omnizarr.stores import MemoryStore
from omnizarr.stores.manifests.file import File
from omnizarr.stores.wrap.metrics import MetricsStore
from tests.readers.grib_files import complex2, field2, level2, message1, message2, sample, with_packing

VALUES = np.arange(20).reshape(4, 5)


def opened(folder, *messages):
    path = folder / "x.grib2"
    path.write_bytes(b"".join(messages))
    return omnizarr.open(path)


# -- arrays -------------------------------------------------------------------------------


def test_messages_of_one_quantity_are_an_array(tmp_path):
    messages = [
        message2(field2(VALUES + 100 * day + level, level=(100, level * 100)), time=(2024, 1, day, 6))
        for day, level in itertools.product((2, 1), (850, 500, 1000))
    ]
    root = opened(tmp_path, *messages)
    assert sorted(root) == ["isobaricInhPa", "latitude", "longitude", "step", "t", "time"]
    array = root["t"]
    assert array.dimension_names == ("time", "isobaricInhPa", "latitude", "longitude")
    assert (array.dtype, array.shape, array.chunks) == ("f8", (2, 3, 4, 5), (1, 1, 4, 5))
    for (at, day), (number, level) in itertools.product(enumerate((1, 2)), enumerate((500, 850, 1000))):
        assert np.array_equal(array[at, number], VALUES + 100 * day + level)
    assert root["isobaricInhPa"][...].tolist() == [500, 850, 1000]
    assert root["time"][...].astype("M8[s]").astype(str).tolist() == ["2024-01-01T06:00:00", "2024-01-02T06:00:00"]
    assert root["latitude"][...].tolist() == [50, 49, 48, 47]
    assert root["longitude"][...].tolist() == [1, 2, 3, 4, 5]
    assert (array.attrs["long_name"], array.attrs["units"]) == ("Temperature", "K")
    assert not root.store.notes


def test_xarray_sees_times_and_coordinates(tmp_path):
    xarray = pytest.importorskip("xarray", reason="xarray decodes the attributes of CF")
    opened(tmp_path, *(message2(field2(VALUES, step=step)) for step in (0, 6)))
    found = xarray.open_dataset(tmp_path / "x.grib2", engine="omnizarr", decode_timedelta=True)
    assert found["t"].dims == ("step", "latitude", "longitude")
    assert (found["step"].values / np.timedelta64(1, "h")).tolist() == [0, 6]
    assert found["time"].values == np.datetime64("2024-01-01")
    assert set(found["t"].coords) == {"step", "latitude", "longitude", "time", "isobaricInhPa"}


def test_missing_messages_are_nan(tmp_path):
    places = [(1, 500), (1, 850), (2, 500)]
    root = opened(
        tmp_path, *(message2(field2(VALUES, level=(100, 100 * at)), time=(2024, 1, day, 0)) for day, at in places)
    )
    assert np.isnan(root["t"][1, 1]).all()
    assert np.array_equal(root["t"][1, 0], VALUES)


def test_messages_of_one_place_are_in_the_order_of_the_file(tmp_path):
    root = opened(tmp_path, *(message2(field2(VALUES + at)) for at in range(3)))
    assert root["t"].dimension_names == ("message", "latitude", "longitude")
    assert root["t"][:, 0, 0].tolist() == [0, 1, 2]
    assert root["isobaricInhPa_of_message"][...].tolist() == [500] * 3


def test_places_that_most_messages_do_not_have_are_no_dimensions(tmp_path):
    root = opened(tmp_path, *(message2(field2(VALUES, level=(100, 100 * at), step=at)) for at in range(1, 20)))
    assert root["t"].shape == (19, 4, 5)
    assert root["step_of_message"][...].tolist() == [3600 * at for at in range(1, 20)]


def test_fields_of_one_message_are_arrays(tmp_path):
    root = opened(tmp_path, message2(field2(VALUES, (2, 2), (103, 10)), field2(VALUES + 7, (2, 3), (103, 10))))
    assert np.array_equal(root["u10"][...], VALUES)
    assert np.array_equal(root["v10"][...], VALUES + 7)


def test_names_tell_levels_apart(tmp_path):
    root = opened(tmp_path, message2(field2(VALUES)), message2(field2(VALUES, level=(1, 0))),
                  message2(field2(VALUES, (19, 7), (1, 0))), message2(field2(VALUES, level=(103, 2))),
                  message2(field2(VALUES, (1, 0), (106, 0), bottom=level2(106, 1))))  # fmt: skip
    assert {"t_isobaricInhPa", "t_surface", "param_0_19_7", "t2m", "q"} <= set(root)
    assert "t" in opened(tmp_path, message2(field2(VALUES)), message2(field2(VALUES[:2], level=(100, 70000))))
    assert root["q"].attrs["GRIB_typeOfLevel"] == "depthBelowLandLayer"


def test_members_of_ensembles_are_a_dimension(tmp_path):
    root = opened(tmp_path, *(message2(field2(VALUES + at, member=at)) for at in (2, 1)))
    assert root["t"].dimension_names[0] == "number"
    assert root["number"][...].tolist() == [1, 2]
    assert root["t"][:, 0, 0].tolist() == [1, 2]


def test_points_that_bitmaps_leave_out_are_nan(tmp_path):
    bitmap = VALUES % 3 > 0
    found = opened(tmp_path, message2(field2(VALUES, bitmap=bitmap)))["t"][...]
    assert np.array_equal(found, np.where(bitmap, VALUES, np.nan), equal_nan=True)


def test_edition_1(tmp_path):
    bitmap = VALUES % 3 < 2
    root = opened(tmp_path, *(message1(VALUES, level=(100, at), day=day) for day in (1, 2) for at in (500, 850)),
                  message1(VALUES, 61, (1, 0), step=6, bitmap=bitmap))  # fmt: skip
    assert root["t"].shape == (2, 2, 4, 5)
    assert np.array_equal(root["t"][1, 1], VALUES)
    assert np.array_equal(root["tp"][...], np.where(bitmap, VALUES, np.nan), equal_nan=True)
    assert root["longitude"][...].tolist() == [-5, -4, -3, -2, -1]


@pytest.mark.parametrize("bits", [1, 5, 8, 13, 24, 31])
def test_elements_of_all_widths(bits, tmp_path):
    values = np.random.default_rng(bits).integers(0, 1 << bits, (4, 5))
    values[0, 0] = 0
    assert np.array_equal(opened(tmp_path, message2(field2(values, bits=bits)))["t"][...], values)


@pytest.mark.parametrize("scan", [0x20, 0x10, 0x30, 0x80, 0x40])
def test_scanning_gives_rows(scan, tmp_path):
    expected = VALUES.astype("f8")
    lines = (VALUES.T if scan & 0x20 else VALUES).copy()
    if scan & 0x10:
        lines[1::2] = lines[1::2, ::-1]
    raw = field2(VALUES, scan=scan)
    stored = field2(lines.reshape(4, 5), scan=scan)
    assert len(raw) == len(stored)
    assert np.array_equal(opened(tmp_path, message2(stored))["t"][...], expected)


def test_complex_packing(tmp_path):
    groups = [(10, 3, [1, 2, 7]), (50, 0, [0, 0]), (0, 8, [200])]
    field = with_packing(np.zeros((2, 3), int), *complex2(groups, count=6))
    assert opened(tmp_path, message2(field))["t"][...].ravel().tolist() == [11, 12, 17, 50, 50, 200]
    field = with_packing(np.zeros((2, 3), int), *complex2(groups, count=6, missing=1))
    found = opened(tmp_path, message2(field))["t"][...].ravel()
    assert np.array_equal(found, [11, 12, np.nan, 50, 50, 200], equal_nan=True)


def test_spatial_differences(tmp_path):
    wanted = np.array([5, 7, 12, 12, 9, 20])
    for order, steps in ((1, np.diff(wanted)), (2, np.diff(wanted, 2))):
        least = int(steps.min())
        whole = [*[0] * order, *(steps - least)]
        groups = [(0, 5, [int(each) for each in whole])]
        field = with_packing(
            np.zeros((2, 3), int), *complex2(groups, order=order, firsts=wanted[:order].tolist(), least=least, count=6)
        )
        assert opened(tmp_path, message2(field))["t"][...].ravel().tolist() == wanted.tolist()


# -- bad input ----------------------------------------------------------------------------


def test_what_is_not_shown_is_named(tmp_path):
    broken = bytearray(message2(field2(VALUES)))
    broken[16 + 21 : 16 + 25] = b"\xff\xff\xff\xff"
    messages = [message2(field2(VALUES, template=50)), message2(field2(VALUES, template=50)), bytes(broken),
                message2(field2(VALUES)), b"\0" * 20, b"rubbish"]  # fmt: skip
    root = opened(tmp_path, *messages)
    assert np.array_equal(root["t"][...], VALUES)
    notes = " ".join(root.store.notes)
    assert "2 fields are not shown: their packing has the number 50" in notes
    assert "is not shown: it is broken" in notes
    assert "there is no message" in notes


@pytest.mark.parametrize("cut", [8, 20, 100, 170])
def test_messages_that_are_cut_off_are_named(cut, tmp_path):
    root = opened(tmp_path, message2(field2(VALUES)), message2(field2(VALUES, (1, 0)))[:cut])
    assert "q" not in root
    assert any("is broken" in note for note in root.store.notes)


def test_broken_values_are_errors():
    bound = codec.bind({}, BytesSpec(160))
    whole = bytearray(message2(field2(VALUES)))
    assert np.array_equal(np.frombuffer(bound.decode(bytes(whole))), VALUES.ravel())
    for raw in (b"", b"GRIB", bytes(whole[:100]), bytes(whole[:-30])):
        with pytest.raises(ChunkError, match="cannot be decoded"):
            bound.decode(raw)
    with pytest.raises(ChunkError, match="20 points, expected 19"):
        codec.bind({}, BytesSpec(152)).decode(bytes(whole))
    with pytest.raises(CodecError, match="only read"):
        bound.encode(b"")


# -- doors --------------------------------------------------------------------------------


def test_commands_read_it(tmp_path, capsys):
    (tmp_path / "x.grib").write_bytes(sample())
    path = str(tmp_path / "x.grib")
    for command in (["info"], ["tree"], ["ls"], ["stat"], ["check"], ["digest"], ["du"], ["dump", "-h"]):
        assert main([*command, path]) == 0, (command, capsys.readouterr())
    assert "GRIB" in capsys.readouterr().out


def test_it_is_found_by_its_head(tmp_path):
    (tmp_path / "weather").write_bytes(sample())
    assert "u10" in omnizarr.open(tmp_path / "weather")


def test_it_can_only_be_read_and_pickled(tmp_path):
    root = pickle.loads(pickle.dumps(opened(tmp_path, sample())))
    assert np.array_equal(root["u10"][...], VALUES)
    with pytest.raises(ReadOnlyError, match="can only be read"):
        omnizarr.open(tmp_path / "x.grib2", mode="a")


def test_conversion_gives_what_all_read(tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3", reason="zarr-python reads the copy")
    opened(tmp_path, sample())
    done = omnizarr.convert(tmp_path / "x.grib2", tmp_path / "x.zarr")
    assert done.verified
    assert not done.losses
    assert np.array_equal(zarr.open(tmp_path / "x.zarr", mode="r")["u10"][...], VALUES)


def test_short_messages_are_read_many_at_once():
    raw = b"".join(message2(field2(VALUES, step=at)) for at in range(2000))
    store = MetricsStore(MemoryStore({"x": raw}))
    found = grib.read(File.of(store, "x"))
    assert len(found.manifests["t"]) == 2000
    assert store.report().total.requests < 20
    assert store.report().total.nbytes < 2 * len(raw)


# -- ecCodes ------------------------------------------------------------------------------


@pytest.fixture
def eccodes():
    return pytest.importorskip("eccodes", reason="ecCodes says what is in GRIB files")


def assert_same(path, eccodes):
    """Assert that the values of all fields are those of ecCodes. Return how many there are."""
    root, count = omnizarr.open(path), 0
    arrays = [each for _, each in root.members() if "GRIB_edition" in each.attrs]
    known = {}
    for array in arrays:
        extents = array.store.table_of(array.path.strip("/")).chunks
        fields = array[...].reshape(-1, int(np.prod(array.chunks)))
        for number in extents.stored():
            known.setdefault(extents.find(number).offset, []).append(fields[number])
    with path.open("rb") as file:
        while (handle := eccodes.codes_grib_new_from_file(file)) is not None:
            values = eccodes.codes_get_values(handle)
            missing = values == eccodes.codes_get(handle, "missingValue")
            if eccodes.codes_get(handle, "numberOfMissing"):
                values = np.where(missing, np.nan, values)
            start = eccodes.codes_get(handle, "offset", int)
            assert any(np.array_equal(values, each, equal_nan=True) for each in known[start]), (path, start)
            eccodes.codes_release(handle)
            count += 1
    return count


PACKINGS = ["grid_simple", "grid_ieee", "grid_jpeg", "grid_png", "grid_ccsds", "grid_complex",
            "grid_complex_spatial_differencing"]  # fmt: skip


@pytest.mark.parametrize(("edition", "packing"), [(1, "grid_simple"), *((2, each) for each in PACKINGS)])
def test_eccodes_packs_the_same(edition, packing, eccodes):
    pytest.importorskip("imagecodecs", reason="imagecodecs decodes JPEG 2000, PNG and CCSDS")
    rng, count = np.random.default_rng(0), 0
    for bits, decimal, has_missing in itertools.product((8, 12, 16, 24), (0, 2), (False, True)):
        handle = eccodes.codes_grib_new_from_samples(f"regular_ll_sfc_grib{edition}")
        points = eccodes.codes_get(handle, "numberOfPoints")
        values = np.cumsum(rng.normal(size=points)) + 280
        try:
            eccodes.codes_set(handle, "bitsPerValue", bits)
            if decimal and packing != "grid_ieee":
                eccodes.codes_set(handle, "decimalScaleFactor", decimal)
            if has_missing:
                eccodes.codes_set(handle, "bitmapPresent", 1)
                values[::7] = eccodes.codes_get(handle, "missingValue")
            eccodes.codes_set(handle, "packingType", packing)
            if packing.endswith("differencing"):
                eccodes.codes_set(handle, "orderOfSpatialDifferencing", 1 + has_missing)
            eccodes.codes_set_values(handle, values)
        except eccodes.CodesInternalError:
            continue  # of 12 and 24 bits, which its PNG does not write
        expected = eccodes.codes_get_values(handle)
        if eccodes.codes_get(handle, "numberOfMissing"):
            expected = np.where(expected == eccodes.codes_get(handle, "missingValue"), np.nan, expected)
        found = np.frombuffer(codec.bind({}, BytesSpec(8 * points)).decode(eccodes.codes_get_message(handle)))
        assert np.array_equal(found, expected, equal_nan=True), (bits, decimal, has_missing)
        count += 1
    assert count >= 4


SAMPLES = ["regular_ll_sfc", "regular_ll_pl", "regular_gg_sfc", "regular_gg_pl", "regular_gg_ml", "reduced_gg_pl_32",
           "reduced_gg_sfc", "reduced_ll_sfc", "rotated_ll_sfc", "polar_stereographic_sfc",
           "polar_stereographic_pl"]  # fmt: skip


@pytest.mark.parametrize("edition", [1, 2])
def test_samples_of_eccodes_are_the_same(edition, tmp_path, eccodes):
    count = 0
    for name in SAMPLES:
        try:
            handle = eccodes.codes_grib_new_from_samples(f"{name}_grib{edition}")
        except eccodes.CodesInternalError:
            continue
        path = tmp_path / f"{name}.grib"
        path.write_bytes(eccodes.codes_get_message(handle))
        assert assert_same(path, eccodes) == 1
        root = omnizarr.open(path)
        assert not root.store.notes
        if "latitude" in root:
            for ours, theirs in (("latitude", "distinctLatitudes"), ("longitude", "distinctLongitudes")):
                found, expected = root[ours][...], eccodes.codes_get_array(handle, theirs)
                assert np.allclose(sorted(found % 360), sorted(expected % 360), rtol=0, atol=2e-3)
        count += 1
    assert count >= 8


def test_a_file_of_xarray_is_the_same(eccodes):
    xarray = pytest.importorskip("xarray", reason="its tests have a file")
    path = Path(xarray.__file__).parent / "tests" / "data" / "example.grib"
    if not path.exists():
        pytest.skip("xarray was installed without its tests")
    assert assert_same(path, eccodes) > 1
