"""Requests with many elements, in parts: a part is a request of its own, and their answers are joined to one.

    Each("topics.partitions", "responses.partitions", per_turn=100)

says that a request's elements are the `partitions` of its `topics`, and where its answer has theirs. What is asked of
each element is independent of the others, so a client sees no difference, except for one: an element that is named
twice in different parts is looked at twice, where a small request would be refused for it.

Elements whose answer may be much longer than they are, such as groups that are described, are looked at `once` where
they are named again: an answer would otherwise take a thousand times the memory of its request.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import is_
from typing import Any, Final, TypeVar

from kavka_broker.protocol.message import ZERO, Message, Struct

S = TypeVar("S", bound=Struct)
Path = tuple[str, ...]  # names of array attributes, the outermost first

NAMING: Final = frozenset({
    "group_id", "resource_type", "resource_name", "configuration_keys", "name", "topic_name", "topic", "partition",
    "partition_index",
})  # fmt: skip
"""Attributes that say which element one is; others say what its sender knows of it, and may differ at will."""


@dataclass(frozen=True, slots=True)
class Each:
    """The place of a request's elements and of its answer's; `per_turn` are handled in one turn of the loop.

    Elements that are handled `once` are dropped where they are named again (`NAMING`).

    Decided parts go `together` where none needs the commit of the one before, because the sender may ask for all parts
    again without harm: they share the wait for the disks of a majority.
    """

    asked: str
    answered: str
    per_turn: int
    together: bool = False
    once: bool = False

    @property
    def path(self) -> Path:
        return tuple(self.asked.split("."))

    def parts(self, request: Message) -> Iterator[Message]:
        """Requests of at most `per_turn` elements, made one by one; the request itself if it has no more."""
        for part, _ in _cut(request, self.path, self.per_turn):
            yield part

    @property
    def answered_path(self) -> Path:
        return tuple(self.answered.split("."))

    def has_elements(self, request: Message) -> bool:
        return bool(getattr(request, self.path[0]))

    def joined(self, answers: Iterable[Message]) -> Message:
        """The joined answer; the answer of a wholly refused part is the answer to all."""
        whole: Message | None = None
        for answer in answers:
            if getattr(answer, "error_code", 0):
                return answer
            if whole is None:
                whole = answer
            else:
                self.join(whole, answer)
        assert whole is not None, "a request has at least one part"
        return whole

    def join(self, whole: Message, more: Message) -> None:
        """Add the elements of another part to an answer."""
        _join(whole, more, self.answered_path)


def _cut(owner: S, path: Path, count: int) -> Iterator[tuple[S, int]]:
    """Parts of `owner` with at most `count` elements, and their numbers; an owner without elements counts 1, and one
    that asks for all that there are fills a part.
    """
    name, inner = path[0], path[1:]
    items = getattr(owner, name)
    if not items:
        yield owner, count if items is None else 1
    elif inner:
        yield from _cut_within(owner, name, inner, count)
    elif len(items) <= count:
        yield owner, len(items)
    else:
        for start in range(0, len(items), count):
            some = items[start : start + count]
            yield with_items(owner, name, some), len(some)


def _cut_within(owner: S, name: str, inner: Path, count: int) -> Iterator[tuple[S, int]]:
    chosen: list[Any] = []
    taken, is_whole = 0, True
    for item in getattr(owner, name):
        for piece, size in _cut(item, inner, count):
            if taken + size > count and chosen:
                yield with_items(owner, name, chosen), taken
                chosen, taken, is_whole = [], 0, False
            chosen.append(piece)
            taken += size
    yield (owner if is_whole else with_items(owner, name, chosen)), taken


def once_each(owner: S, paths: Iterable[Path]) -> S:
    """Return an owner with the elements of each path once, in their order; itself where none is named twice. What is
    named twice on the way to them is joined.
    """
    for path in paths:
        owner = _once_each(owner, path)
    return owner


def _once_each(owner: S, path: Path) -> S:
    name, inner = path[0], path[1:]
    items = getattr(owner, name)
    if not items:
        return owner
    named: dict[Hashable, list[Any]] = {}
    for item in items:
        named.setdefault(_name_of(item), []).append(item)
    distinct = [_once_each(_one_of(same, inner[0]), inner) if inner else same[0] for same in named.values()]
    is_same = len(distinct) == len(items) and all(map(is_, distinct, items))
    return owner if is_same else with_items(owner, name, distinct)


def _one_of(same: list[Any], name: str) -> Any:
    """Return one item with all elements of items that are named the same; null means all that there are."""
    if len(same) == 1:
        return same[0]
    elements = [getattr(item, name) for item in same]
    is_of_all = any(some is None for some in elements)
    return with_items(same[0], name, None if is_of_all else list(chain.from_iterable(elements)))


def _name_of(element: Any) -> Hashable:
    """Return what an element is, as far as its handler looks: a topic with an id is known by that alone, and a group by
    its own id, whatever members are named with it: the first that is named is answered.
    """
    if not isinstance(element, Struct):
        name: Hashable = element
        return name
    topic_id = getattr(element, "topic_id", ZERO)
    if topic_id != ZERO:
        return bytes(topic_id)
    parts = [getattr(element, slot) for slot in element.__match_args__ if slot in NAMING]
    assert parts, f"nothing says which {type(element).__qualname__} one is"
    return tuple(tuple(part) if isinstance(part, list) else part for part in parts)


def with_items(owner: S, name: str, items: list[Any] | None) -> S:
    """A copy of `owner` with other items."""
    part = object.__new__(type(owner))
    for slot in owner.__match_args__:
        setattr(part, slot, getattr(owner, slot))
    setattr(part, name, items)
    return part


def _join(whole: Struct, more: Struct, path: Path) -> None:
    name, inner = path[0], path[1:]
    ours, theirs = getattr(whole, name), getattr(more, name)
    if inner and ours and theirs and _is_one(ours[-1], theirs[0], inner[0]):
        _join(ours[-1], theirs[0], inner)
        theirs = theirs[1:]
    ours += theirs


def _is_one(first: Struct, other: Struct, name: str) -> bool:
    """Whether two parts of an answer are about the same topic, or other owner of elements."""
    return all(getattr(first, slot) == getattr(other, slot) for slot in first.__match_args__ if slot != name)
