"""What netCDF-C does wrong is still as listed: when a release does better, the list becomes shorter."""

import pytest

from tests.netcdf import peers
from tests.netcdf.deviations import KNOWN_DEVIATIONS, NEWEST, OLD, allowed

CASES = [(each, release) for each in KNOWN_DEVIATIONS for release in each.releases]
LEFT_OUT = [case for case in CASES if case[0].side != "neither"]


def names_of(cases):
    return [f"{each.what} ({release})" for each, release in cases]


def outcome(peer, deviation, folder):
    """Return what becomes of the one attribute, or the variable ``v``, that a release writes and reads."""
    url = f"file://{folder}#mode=nczarr,file"
    try:
        if deviation.stored is None:
            peer.write(url, deviation.example)
        else:
            for name, text in deviation.stored.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text)
        found = peer.read(url)
    except peers.PeerError as error:
        return str(error)
    if "/v" in found.data:
        variable = found.root.variables["v"]
        return f"{variable.type} {found.data['/v']}"
    attribute = found.root.attributes.get("a")
    if attribute is None:
        return "nothing"
    return (
        f"{attribute.type} {attribute.value!r}"
        if isinstance(attribute.value, str)
        else f"{attribute.type} {attribute.value}"
    )


@pytest.mark.parametrize(("deviation", "release"), CASES, ids=names_of(CASES))
def test_netcdf_c_still_deviates(deviation, release, request, tmp_path):
    peer = request.getfixturevalue("newest" if release == NEWEST else "old")
    assert outcome(peer, deviation, tmp_path / "x").startswith(deviation.outcome)


@pytest.mark.parametrize(("deviation", "release"), LEFT_OUT, ids=names_of(LEFT_OUT))
def test_no_dataset_that_is_made_has_a_deviation(deviation, release):
    may = allowed(release, "reading" if deviation.side == "reading" else "writing")
    root, data, _ = deviation.example
    sizes = root.sizes()
    kept = all(may.attribute(each) for each in root.attributes.values())
    for name, variable in root.variables.items():
        kept &= may.variable(variable, sizes) and may.adapted(variable, data[f"/{name}"]) is variable
    kept &= may.unlimited or not any(each.unlimited for each in sizes.values())
    assert not kept


def test_the_peers_are_the_releases_they_are_treated_as(newest, old):
    assert (newest.version.rpartition(".")[0], old.version) == (NEWEST.rpartition(".")[0], OLD)
