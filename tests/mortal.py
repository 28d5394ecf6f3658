"""Programs that are killed, or fail, at any of their steps."""

import itertools
import math

from omnizarr import errors
from tests.fakes import FaultyStore


class Killed(BaseException):
    """What ends a program: nothing is cleaned up after it."""


class Mortal(FaultyStore):
    """A store whose user is killed at the nth request that changes something, or (`fails`) fails at it."""

    def __init__(self, store):
        super().__init__(store)
        self.left = math.inf
        self.fails = False

    def _begin(self, verb, key, span=None):
        if verb in {"set", "delete", "set_if_absent", "delete_prefix", "set_partial"}:
            self.left -= 1
            if self.left < 0 and not self.fails:
                raise Killed
            if self.left == -1:
                raise errors.StoreError("injected", store=repr(self), key=key)
        return super()._begin(verb, key, span)


def attempts(build, change, *, fails):
    """Let `change` of a store be killed, or fail, at its first step, its second, and so on; yield what is stored."""
    for nth in itertools.count():
        inner = build()
        store = Mortal(inner)
        store.left, store.fails = nth, fails
        try:
            change(store)
        except (Killed, errors.StoreError):
            yield inner
        else:
            assert nth
            return
