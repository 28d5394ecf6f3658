"""An HDF5 file: its objects by path, through links of all kinds, within bounds.

Each object has one own path: the first that a walk over the whole file finds, groups first. An object may have other
names, which are found too, but are not walked, so that groups that contain themselves end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Final

from omnizarr.errors import MetadataError, NodeNotFoundError
from omnizarr.readers.hdf5 import attributes, datasets, groups, messages, superblock
from omnizarr.readers.hdf5.attributes import Attribute
from omnizarr.readers.hdf5.datasets import Dataset
from omnizarr.readers.hdf5.groups import Link
from omnizarr.readers.hdf5.messages import Header
from omnizarr.readers.hdf5.source import Source
from omnizarr.stores.base import Store
from omnizarr.stores.manifests import file as files

_SOFT_LINKS: Final = 64  # soft links that one path may follow
_OBJECTS: Final = 1 << 22  # objects of one file


class File:
    """An HDF5 file in a store.

    Parameters
    ----------
    store, key : Store, str
        Where it is.
    file : File, optional
        What reads it, if a certain version of it is wanted.

    Raises
    ------
    NodeNotFoundError
        If there is no file.
    MetadataError
        If it is not HDF5, is broken, or is shorter than it says.
    """

    def __init__(self, store: Store, key: str, file: files.File | None = None) -> None:
        file = file or files.File.found(store, key)
        if file is None:
            raise NodeNotFoundError("there is no such file", store=repr(store), key=key)
        self.source = Source(file)
        self._root, extension = superblock.read(self.source)
        if extension is not None:
            messages.read_extension(self.source, extension)

    @property
    def root(self) -> Header:
        """The root group."""
        return messages.read(self.source, self._root)

    def header(self, address: int) -> Header:
        """Return the object at an address."""
        return messages.read(self.source, address)

    def links(self, group: Header) -> dict[str, Link]:
        """Return the links of a group, by name."""
        memo = self.source.memo
        found: dict[str, Link] | None = memo.get(("links", group.address))
        if found is None:
            found = memo["links", group.address] = groups.read(group)
        return found

    def attributes(self, header: Header) -> list[Attribute]:
        """Return the attributes of an object. Raises MetadataError if one is broken."""
        return attributes.read(header)

    def sound_attributes(self, header: Header) -> tuple[list[Attribute], list[tuple[str, MetadataError]]]:
        """Return the attributes of an object that are not broken, and the errors of the others, by name.

        The name is "" if that is broken, too, or if the place of several attributes is.
        """
        broken: list[tuple[str, MetadataError]] = []
        return attributes.read(header, broken), broken

    def dataset(self, header: Header) -> Dataset:
        """Return the dataset that an object is."""
        return datasets.read(header)

    def find(self, path: str) -> Header | None:
        """Return the object at a path; None if there is none, or if an external link is in between."""
        return self.follow(self.root, path)

    def follow(self, group: Header, path: str) -> Header | None:
        """Return the object at a path from a group, or from the root if it begins with a slash."""
        found = self.trace(group, path)
        return found if isinstance(found, Header) else None

    def trace(self, group: Header, path: str) -> Header | tuple[Link, str] | None:
        """Return the object at a path, as `follow` does, or the external link that is met, and the path behind it."""
        left = _SOFT_LINKS
        above = [group]
        names = _names(path)
        if path.startswith("/"):
            above = [self.root]
        while names:
            name = names.pop()
            if name == ".":
                continue
            here = above[-1]
            link = self.links(here).get(name) if groups.is_group(here) else None
            if link is None:
                return None
            if link.kind == "hard" and link.address is not None:
                above.append(messages.read(self.source, link.address))
            elif link.kind == "soft" and left:
                left -= 1
                if link.target.startswith("/"):
                    above = [self.root]
                names += _names(link.target)
            elif link.kind == "external":
                return link, "/".join(reversed(names))
            else:
                return None
        return above[-1]

    def paths(self) -> dict[int, str]:
        """Return the own path of each object, by the address of its header; that of the root is "".

        Objects whose header is broken are left out, and what is in groups whose links are: links to them cannot be
        followed. Raises MetadataError if those of the root are broken.
        """
        memo = self.source.memo
        found: dict[int, str] | None = memo.get("paths")
        if found is None:
            found = memo["paths"] = dict(self._walk())
        return found

    def _sound_links(self, group: Header, path: str) -> list[Link]:
        try:
            return list(self.links(group).values())
        except MetadataError:
            if not path:
                raise
            return []

    def _sound_header(self, address: int) -> Header | None:
        try:
            return messages.read(self.source, address)
        except MetadataError:
            return None

    def _walk(self) -> Iterator[tuple[int, str]]:
        seen = {self.root.address}
        level = [(self.root, "")]
        yield self.root.address, ""
        while level:
            below = []
            linked = [*self.source.together([partial(self._sound_links, group, path) for group, path in level])]
            links = (link for each in linked for link in each)
            ahead = (link.address for link in links if link.address is not None and link.address not in seen)
            deque(self.source.together([partial(self._sound_header, at) for at in ahead]), maxlen=0)
            for group, path in level:
                for link in self._sound_links(group, path):
                    if link.kind != "hard" or link.address is None or link.address in seen:
                        continue
                    seen.add(link.address)
                    if len(seen) > _OBJECTS:
                        raise self.source.broken(group.address, "the file has too many objects", found=len(seen))
                    header = self._sound_header(link.address)
                    if header is None:
                        continue
                    own = f"{path}/{link.name}" if path else link.name
                    yield header.address, own
                    if groups.is_group(header):
                        below.append((header, own))
            level = below


def _names(path: str) -> list[str]:
    """Return the names of a path, the last first."""
    return [each for each in reversed(path.split("/")) if each]
