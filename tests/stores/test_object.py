"""Object stores by way of obstore."""

import obstore.store
import pytest

from omnizarr.stores.object import ObjectStore
from tests.stores.contract import VALID_KEYS, StoreContract

CONTROL = [key for key in VALID_KEYS if "\n" in key]


class ObjectStoreContract(StoreContract):
    """The contract, but for keys that object stores cannot have."""

    @pytest.mark.parametrize("key", [key for key in VALID_KEYS if key not in CONTROL])
    def test_unusual_key_is_a_key(self, store, key):
        super().test_unusual_key_is_a_key(store, key)


class TestInMemory(ObjectStoreContract):
    picklable = False

    @pytest.fixture
    def store(self):
        return ObjectStore(obstore.store.MemoryStore())


class TestOnS3(ObjectStoreContract):
    @pytest.fixture
    def store(self, s3_server):
        place = s3_server.fresh()
        return ObjectStore.from_url(place.url, place.options)
