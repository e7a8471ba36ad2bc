"""An answer with an error to any request of any version, made from the definitions of Kafka's messages.

The definitions say where an answer has an `error_code`: at its top, in each group, in each partition. An array on the
way there mirrors an array of the request: it gets one element for each of the request's, with the fields that name it
(topic, partition index, group id ...) copied. So no API needs a case of its own.

The counterpart of an array is the array of the request whose elements share most of the naming fields with it, the
outermost first. Names differ a little between requests and answers: `partition`, `partition_index` and `index` are one
field, and so are `topic`, `topic_name` and `name`.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from kavka_broker.protocol.catalog import response_class
from kavka_broker.protocol.message import Message, Row, Struct
from kavka_pytest.fault_plan import Place

ERROR_NAMES: Final = ("error_code", "partition_error_code")
MESSAGE_NAMES: Final = ("error_message",)
ONE_NAME: Final = {
    **dict.fromkeys(("partition_index", "partition_id", "index"), "partition"),
    **dict.fromkeys(("topic", "topic_name", "user"), "name"),
}
UNKNOWN_ENDS: Final = ("offset", "watermark", "node_id", "leader_id", "port")
"""Fields by the end of their name that Kafka sets to -1 beside an error."""
PRODUCE: Final = 0

Way = tuple[str, ...]
"""The arrays on the way to an error code, from the top."""


class Elements(NamedTuple):
    """The elements of a request that an array of the answer mirrors; `kind` is None for plain values."""

    kind: type[Struct] | None
    values: Sequence[Any]


def places_defined(api_key: int, version: int) -> frozenset[Place]:
    """The places in which answers of this version carry an error at all."""
    ways = list(ways_of(response_class(api_key), version))
    return frozenset({Place.TOP, Place.PARTS} if len({len(way) for way in ways}) > 1 else {Place.TOP} if ways else ())


def answer_to(request: Message, version: int, code: int, place: Place, message: str = "") -> Message | None:
    """The answer that carries an error at a place; None where the request has no room for it: it names no part, or
    wants no answer.
    """
    assert request.API_KEY is not None
    if not wants_answer(request):
        return None
    kind = response_class(request.API_KEY)
    way = way_to(kind, request, version, place)
    if way is None:
        return None
    answer = kind()
    marked = fill(answer, way, request, version, (code, message))
    return answer if marked else None


def places(request: Message, version: int) -> frozenset[Place]:
    """The places in which the answer to a request has room for an error."""
    assert request.API_KEY is not None
    defined = places_defined(request.API_KEY, version)
    return frozenset(place for place in defined if answer_to(request, version, -1, place) is not None)


def wants_answer(request: Message) -> bool:
    """Whether there is an answer at all: there is none to a Produce with acks=0."""
    return request.API_KEY != PRODUCE or request.acks != 0  # type: ignore[attr-defined]


def way_to(kind: type[Message], request: Message, version: int, place: Place) -> Way | None:
    """The way to the error codes of a place. In `PARTS` it is the longest whose arrays mirror the request."""
    ways = sorted(ways_of(kind, version), key=len)
    if not ways or place is Place.TOP:
        return ways[0] if ways else None
    mirrored = [way for way in ways if mirrors(kind, way, request, version)]
    return mirrored[-1] if mirrored else ways[0]


def mirrors(kind: type[Struct], way: Way, request: Struct, version: int) -> bool:
    """Whether each array on a way has a counterpart in the request."""
    scope: type[Struct] | None = type(request)
    for name in way:
        kind = struct_of(kind, row_of(kind, name))
        if scope is None:
            return False
        found = counterparts(kind, scope, version)
        if not found:
            return False
        last = found[0][-1]
        scope = struct_of(last[0], last[1]) if is_struct(last[1]) else None
    return True


def ways_of(kind: type[Struct], version: int, way: Way = ()) -> Iterator[Way]:
    """The ways to all error codes that a version has."""
    for row in rows_of(kind, version):
        if row[1] in ERROR_NAMES and row[2] == "int16":
            yield way
        elif row[2].startswith("[]") and is_struct(row):
            yield from ways_of(struct_of(kind, row), version, (*way, row[1]))


def fill(answer: Struct, way: Way, request: Any, version: int, error: tuple[int, str]) -> bool:
    """Put an error at the end of a way, and make the elements on it. Whether there was one to put it into."""
    blank(answer, version)
    if not way:
        mark(answer, version, error)
        return True
    row = row_of(type(answer), way[0])
    kind = struct_of(type(answer), row)
    made = [mirrored(kind, value, version) for value in values_of(kind, request, version)]
    setattr(answer, way[0], [element for element, _ in made])
    marked = [fill(element, way[1:], value, version, error) for element, value in made]
    return any(marked)


def blank(answer: Struct, version: int) -> None:
    """Set what is not known beside an error to -1, as Kafka does."""
    for row in rows_of(type(answer), version):
        if row[2] in ("int32", "int64") and row[1].endswith(UNKNOWN_ENDS) and getattr(answer, row[1]) == 0:
            setattr(answer, row[1], -1)
        elif row[2] == "records":
            setattr(answer, row[1], b"")


def mark(answer: Struct, version: int, error: tuple[int, str]) -> None:
    for row in rows_of(type(answer), version):
        if row[1] in ERROR_NAMES:
            setattr(answer, row[1], error[0])
        elif row[1] in MESSAGE_NAMES and error[1]:
            setattr(answer, row[1], error[1])


def mirrored(kind: type[Struct], value: Any, version: int) -> tuple[Struct, Any]:
    """An element of the answer that is named as one of the request, and that one."""
    element = kind()
    if not isinstance(value, Struct):
        if value is not None:
            setattr(element, naming_field(kind, value), value)
        return element, value
    given = {one_name(row): row for row in rows_of(type(value), version)}
    for row in rows_of(kind, version):
        other = given.get(one_name(row))
        if other is None or row[2] != other[2]:
            continue
        given_value = getattr(value, other[1])
        if is_naming(row):
            setattr(element, row[1], given_value)
        elif row[2] == "[]EntityData":
            inner = struct_of(kind, row)
            setattr(element, row[1], [mirrored(inner, part, version)[0] for part in given_value])
    return element, value


def values_of(kind: type[Struct], request: Any, version: int) -> list[Any]:
    """The parts of a request that elements of this kind mirror; one None where none is a counterpart, so that the error
    has a place.
    """
    if not isinstance(request, Struct):
        return [None]
    found = counterparts(kind, type(request), version)
    if not found:
        return [None]
    return [value for way in found for value in along(request, way)]


def along(value: Struct, way: Sequence[tuple[type[Struct], Row]]) -> Iterator[Any]:
    """The values at the end of a way through a request."""
    (_, row), *rest = way
    for part in getattr(value, row[1]) or ():
        if rest:
            yield from along(part, rest)
        else:
            yield part


Steps = tuple[tuple[type[Struct], Row], ...]
"""A way through a request: structs, and the array of each."""


def counterparts(kind: type[Struct], request: type[Struct], version: int) -> list[Steps]:
    """The ways to the arrays of a request that elements of this kind mirror: several only where they are as like, as
    users to delete and users to change are.
    """
    ranked = [(likeness(kind, way, version), -len(way), way) for way in arrays_of(request, version)]
    best = max((rank for rank in ranked), key=lambda rank: rank[:2], default=None)
    if best is None or best[0] == 0:
        return []
    return [way for score, depth, way in ranked if (score, depth) == best[:2]]


def likeness(kind: type[Struct], way: Steps, version: int) -> int:
    """The likeness of an element of an answer to those of an array of the request: the number of naming fields and of
    arrays that they share. An element without such fields (of CreateAcls) is like any struct.
    """
    owner, row = way[-1]
    own = naming(kind, version)
    if not is_struct(row):
        return int(any(of_type == row[2][2:] for _, of_type in own))
    other = struct_of(owner, row)
    if not own:
        return int(len(way) == 1)
    return len(own & naming(other, version)) and len(own & naming(other, version)) + len(
        nested(kind, version) & nested(other, version)
    )


def naming(kind: type[Struct], version: int) -> frozenset[tuple[str, str]]:
    """The fields that may name an element, with their types, and the parts of a quota's entity."""
    rows = (row for row in rows_of(kind, version) if is_naming(row) or row[2] == "[]EntityData")
    return frozenset((one_name(row), row[2]) for row in rows)


def nested(kind: type[Struct], version: int) -> frozenset[str]:
    """The arrays of structs in an element."""
    return frozenset(row[1] for row in rows_of(kind, version) if row[2].startswith("[]") and is_struct(row))


def is_naming(row: Row) -> bool:
    """Whether a field can name something: a text, an id, a kind, a partition."""
    if row[2] in ("string", "uuid"):
        return row[1] not in MESSAGE_NAMES
    return row[2].startswith("int") and (one_name(row) in ("partition", "producer_id") or row[1].endswith("_type"))


def naming_field(kind: type[Struct], value: Any) -> str:
    """The first field of an element that can hold a plain value of the request."""
    types = ("string",) if isinstance(value, str) else ("uuid",) if isinstance(value, bytes) else ("int32", "int64")
    names: Iterator[str] = (row[1] for row in kind.SCHEMA if row[2] in types and is_naming(row))
    return next(names)


def arrays_of(kind: type[Struct], version: int, way: Steps = ()) -> Iterator[Steps]:
    """The ways to all arrays of a request."""
    for row in rows_of(kind, version):
        if row[2].startswith("[]"):
            step = (*way, (kind, row))
            yield step
            if is_struct(row):
                yield from arrays_of(struct_of(kind, row), version, step)


def rows_of(kind: type[Struct], version: int) -> Iterator[Row]:
    """The fields of a version."""
    for row in kind.SCHEMA:
        low, high = row[3]
        if low <= version <= high:
            yield row


def row_of(kind: type[Struct], name: str) -> Row:
    return next(row for row in kind.SCHEMA if row[1] == name)


def one_name(row: Row) -> str:
    name: str = row[1]
    return ONE_NAME.get(name, name)


def is_struct(row: Row) -> bool:
    kind: str = row[2]
    return kind.removeprefix("[]")[0].isupper()


def struct_of(kind: type[Struct], row: Row) -> type[Struct]:
    """The struct of a field, which is in the module of the message."""
    found: type[Struct] = getattr(sys.modules[kind.__module__], row[2].removeprefix("[]"))
    return found
