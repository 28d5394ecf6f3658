import pytest

from omnizarr.errors import InvalidKeyError, ReadOnlyError
from omnizarr.stores import LocalStore, MemoryStore, PrefixStore, ReadOnlyStore, WrapperStore
from tests.stores.contract import StoreContract


class TestWrapperStore(StoreContract):
    @pytest.fixture
    def store(self):
        return WrapperStore(MemoryStore())


class TestPrefixStore(StoreContract):
    @pytest.fixture
    def store(self):
        inner = MemoryStore({"outside": b"1", "a/bc": b"2", "a/b": b"3"})
        yield PrefixStore(inner, "a/b")
        assert (inner.get("outside"), inner.get("a/bc"), inner.get("a/b")) == (b"1", b"2", b"3")


class TestPrefixStoreOnFiles(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return PrefixStore(LocalStore(tmp_path), "a/b/")


def test_prefix_store_writes_below_the_prefix():
    inner = MemoryStore()
    PrefixStore(inner, "a").set("b/c", b"1")
    assert list(inner.list()) == ["a/b/c"]


def test_prefix_store_and_its_store_share_locks():
    inner = MemoryStore({"a/n": b"0"})
    with PrefixStore(inner, "a").lock("n"):
        PrefixStore(PrefixStore(inner, ""), "a").set("n", b"1")
    assert inner.get("a/n") == b"1"


@pytest.mark.parametrize("prefix", ["..", "/a", "a//b", "a/../.."])
def test_prefix_that_leads_out_is_refused(prefix):
    with pytest.raises(InvalidKeyError):
        PrefixStore(MemoryStore(), prefix)


def test_read_only_store_of_a_read_only_store_stays_read_only():
    store = ReadOnlyStore(MemoryStore(read_only=True))
    assert store.with_read_only() is store
    with pytest.raises(ReadOnlyError) as caught:
        store.set("a", b"")
    assert caught.value.remedy
    assert "ReadOnlyStore(MemoryStore(" in str(caught.value)


def test_wrapper_of_a_read_only_store_is_read_only():
    assert WrapperStore(MemoryStore(read_only=True)).read_only
    assert PrefixStore(MemoryStore(read_only=True), "a").read_only


def test_read_only_prefix_store_still_is_a_prefix_store():
    view = PrefixStore(MemoryStore({"a/b": b"1"}), "a").with_read_only()
    assert isinstance(view, PrefixStore)
    assert view.read_only
    assert view.get("b") == b"1"


def test_wrappers_are_equal_if_what_they_wrap_is():
    inner = MemoryStore()
    assert PrefixStore(inner, "a") == PrefixStore(inner, "a/")
    assert PrefixStore(inner, "a") != PrefixStore(inner, "b")
    assert WrapperStore(inner) != ReadOnlyStore(inner)
