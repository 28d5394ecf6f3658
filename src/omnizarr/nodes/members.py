"""What a group lists: the nodes directly below it, and all nodes below, as a mapping of their names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from weakref import ReferenceType, ref

from omnizarr.errors import OmnizarrError
from omnizarr.nodes.array import Array
from omnizarr.nodes.late import info_tree
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.node import Node
from omnizarr.support.text import visible

if TYPE_CHECKING:
    from omnizarr.nodes.group import Group

T = TypeVar("T")

# Type of what a group lists, for type checkers.
Member: TypeAlias = "Array | Group | UnreadableNode"


class UnreadableNode:
    """A member of a group whose metadata cannot be read, listed with its error.

    Attributes
    ----------
    store_path : StorePath
    error : OmnizarrError
        The error that opening the node raises.
    """

    def __init__(self, store_path: StorePath, error: OmnizarrError) -> None:
        self.store_path = store_path
        self.error = error

    @property
    def path(self) -> str:
        """Path within the store, without a leading slash."""
        return self.store_path.path

    @property
    def name(self) -> str:
        """Path with a leading slash."""
        return f"/{self.store_path.path}"

    @property
    def basename(self) -> str:
        """Last part of the path."""
        return self.store_path.name

    def __repr__(self) -> str:
        return f"<Unreadable {visible(self.name)}: {visible(self.error.message)}>"


class Names(Iterator[str]):
    """The names of members. They are looked up when they are counted, or when the first is requested."""

    __slots__ = ("__weakref__", "_members", "_names")

    def __init__(self, members: Callable[[], Iterable[tuple[str, object]]]) -> None:
        self._members = members
        self._names: Iterator[str] | None = None

    def __next__(self) -> str:
        if self._names is None:
            self._names = (name for name, _ in self._members())
        return next(self._names)

    def count(self) -> int | None:
        """Return the number of names; None if they have been looked up already."""
        if self._names is not None:
            return None
        names = [name for name, _ in self._members()]
        self._names = iter(names)
        return len(names)


class Members(Node):
    """A node with nodes below it: the methods of a group that list them, or call a function for each."""

    __slots__ = ("_asked",)

    _asked: ReferenceType[Names] | None
    """The names that were requested last, if their number is not known yet."""

    @abstractmethod
    def _children(self) -> Iterator[tuple[str, Member]]:
        """Yield name and node of each direct member."""

    @abstractmethod
    def _walk(
        self, max_depth: int | None, *, use_consolidated_for_children: bool = True
    ) -> Iterator[tuple[str, Member]]:
        """Yield path and node of each node below, as `members` returns them."""

    def members(
        self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True
    ) -> tuple[tuple[str, Member], ...]:
        """Return (path relative to this group, node) for each node below. A group comes before its members.

        A node that cannot be read is returned as `UnreadableNode`.

        Parameters
        ----------
        max_depth : int, optional
            0: only direct members; None: all depths.
        use_consolidated_for_children : bool
            Whether to use consolidated metadata, if the group was opened from it.

        Raises
        ------
        ValueError
            If `max_depth` is negative.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.members(max_depth=None)
        (('ocean', <Group /ocean memory>), ('ocean/temp', <Array /ocean/temp (3,) int64 memory>))
        """
        return tuple(self._walk(max_depth, use_consolidated_for_children=use_consolidated_for_children))

    def nmembers(self, max_depth: int | None = 0) -> int:
        """Return the number of nodes below. `max_depth` is that of `members`.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.nmembers(), root.nmembers(max_depth=None)
        (1, 2)
        """
        return sum(1 for _ in self._walk(max_depth))

    def __len__(self) -> int:
        # `list(group)` asks for an iterator, then for the length, then for the names. One lookup answers all
        # three.
        asked, self._asked = self._asked, None
        names = None if asked is None else asked()
        count = None if names is None else names.count()
        return self.nmembers() if count is None else count

    def __bool__(self) -> bool:
        return True  # an empty group is not false

    def __iter__(self) -> Iterator[str]:
        names = Names(self._children)
        self._asked = ref(names)
        return names

    def keys(self) -> Iterator[str]:
        """Yield the names of the direct members.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> list(root.keys())
        ['ocean']
        """
        return iter(self)

    def values(self) -> Iterator[Member]:
        """Yield the direct members.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> list(root.values())
        [<Group /ocean memory>]
        """
        return map(itemgetter(1), self._children())

    def items(self) -> Iterator[tuple[str, Member]]:
        """Yield name and node of each direct member.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> dict(root.items())
        {'ocean': <Group /ocean memory>}
        """
        return self._children()

    def groups(self) -> Iterator[tuple[str, Group]]:
        """Yield name and group of each direct member that is a group.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> dict(root.groups())
        {'ocean': <Group /ocean memory>}
        """
        for name, node in self._children():
            if not isinstance(node, Array | UnreadableNode):
                yield name, node

    def group_keys(self) -> Iterator[str]:
        """Yield the names of the direct members that are groups.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> list(root.group_keys())
        ['ocean']
        """
        return map(itemgetter(0), self.groups())

    def group_values(self) -> Iterator[Group]:
        """Yield the direct members that are groups.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> list(root.group_values())
        [<Group /ocean memory>]
        """
        return map(itemgetter(1), self.groups())

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Yield name and array of each direct member that is an array.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> dict(root["ocean"].arrays())
        {'temp': <Array /ocean/temp (3,) int64 memory>}
        """
        for name, node in self._children():
            if isinstance(node, Array):
                yield name, node

    def array_keys(self) -> Iterator[str]:
        """Yield the names of the direct members that are arrays.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> list(root["ocean"].array_keys())
        ['temp']
        """
        return map(itemgetter(0), self.arrays())

    def array_values(self) -> Iterator[Array]:
        """Yield the direct members that are arrays.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> list(root["ocean"].array_values())
        [<Array /ocean/temp (3,) int64 memory>]
        """
        return map(itemgetter(1), self.arrays())

    def visit(self, function: Callable[[str], T | None]) -> T | None:
        """Call `function` with the path of each node below.

        Stop at the first result that is not None, and return it.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.visit(print)
        ocean
        ocean/temp
        """
        return self.visititems(lambda path, _: function(path))

    def visititems(self, function: Callable[[str, Member], T | None]) -> T | None:
        """Call `function` with path and node of each node below.

        Stop at the first result that is not None, and return it.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.visititems(lambda path, node: path if isinstance(node, omnizarr.Array) else None)
        'ocean/temp'
        """
        for path, node in self._walk(None):
            result = function(path, node)
            if result is not None:
                return result
        return None

    def visitkeys(self, function: Callable[[str], T | None]) -> T | None:
        """Call `function` with the path of each node below, as `visit` does.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.visitkeys(print)
        ocean
        ocean/temp
        """
        return self.visit(function)

    def visitvalues(self, function: Callable[[Member], T | None]) -> T | None:
        """Call `function` with each node below.

        Stop at the first result that is not None, and return it.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["a/t"] = [1, 2]
        >>> root.visitvalues(print)
        <Group /a memory>
        <Array /a/t (2,) int64 memory>
        """
        return self.visititems(lambda _, node: function(node))

    def tree(
        self,
        expand: bool | None = None,  # noqa: FBT001 - zarr's signature
        level: int | None = None,
        *,
        max_nodes: int = 500,
        plain: bool = False,
    ) -> info_tree.Tree:
        """Return a drawing of the nodes below.

        Parameters
        ----------
        expand : bool
            Has no effect. It is accepted because zarr-python has it.
        level : int, optional
            How deep to go. 0: only direct members; None: all depths.
        max_nodes : int
            Maximum number of nodes to draw.
        plain : bool
            Has no effect. The text is always plain.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.tree()
        /
        └── ocean
            └── temp (3,) int64
        """
        return info_tree.draw(self.name, self._walk(level), max_nodes)
