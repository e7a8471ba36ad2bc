"""Records of the audit topic as rows, by expressions of Spark alone: no record goes to Python.

The rows are those of `lake.rows.row_of`. The value is read by Spark's parser of JSON, by the schema of
`lake.event_schema`. A record that does not fit is a row with the reason, and holds the record as it stood. So nothing
is left for another parser.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

from pyspark.sql import functions as F  # noqa: N812 - so do Spark's own documents

from kavka_audit.lake.columns import ENTRIES
from kavka_audit.lake.event_schema import VERSION, UnfitError, ddl
from kavka_audit.lake.rows import (
    AHEAD_MS_MAX,
    CLASS_MAX,
    DEAD_BYTES_MAX,
    ENTITY_WORDS,
    LIFECYCLES,
    LIMIT_MAX,
    LIMIT_WORDS,
    LISTENER,
    LOGINS,
    LONG_WORDS,
    NODE,
    NUMBER_MAX,
    OUTCOMES,
    STARTS,
    SUMS,
    TEXT_WORDS,
    TIME_WORDS,
    VALUE_BYTES_MAX,
    number_words,
)
from kavka_audit.spark.columns import schema
from kavka_audit.spark.entry_headers import NUMBERS, Column, Found, Frame, entries_of, first_of
from kavka_broker.core.audit.chain import Kind

CORRUPT: Final = "corrupt"
"""The field in which Spark's parser puts a value that does not fit the schema."""
JSON: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "allowSingleQuotes": "false"}
EVENT_TYPE: Final = f"{ddl().removesuffix('>')}, `{CORRUPT}`: STRING>"


def rows_of(records: Frame, more: Sequence[Column] = ()) -> Frame:
    """Return the rows of records, which have the columns partition, offset, headers and value of the Kafka source.
    `more` are columns beside those of a row, made of those of `entries_of`.
    """
    events = entries_of(records).select("*", _event().alias("event"))
    judged = events.select("*", _problem().alias("problem"))
    # Nothing of an event that does not fit gets into a row.
    sound = judged.withColumn("event", F.when(F.col("problem").isNull(), F.col("event")))
    return sound.select(*_columns(), *more)


def _event() -> Column:
    """The event, where the record has one that can be looked at."""
    value = F.col("value").cast("string")
    is_read = F.col("header_problem").isNull() & (F.col("entry_kind") == Kind.EVENT.value)
    is_read &= (F.octet_length("value") <= VALUE_BYTES_MAX) & F.is_valid_utf8(value)
    return F.when(is_read, F.from_json(value, EVENT_TYPE, JSON))


def _problem() -> Column:
    """Why a record is dead, in the order in which `row_of` looks; NULL for one that is not."""
    is_event = F.col("entry_kind") == Kind.EVENT.value
    is_long = F.coalesce(F.octet_length("value") > VALUE_BYTES_MAX, F.lit(False))
    return (
        F.when(F.col("header_problem").isNotNull(), F.col("header_problem"))
        .when(is_long, F.lit(LONG_WORDS))
        .when(is_event, _event_problem())
    )


def _event_problem() -> Column:
    is_unfit = F.col("event").isNull() | F.col(f"event.{CORRUPT}").isNotNull()
    start_ms, end_ms = F.col("event.start_time"), F.col("event.end_time")
    is_in_time = (start_ms <= end_ms) & (end_ms - AHEAD_MS_MAX <= F.col("written_ms"))
    common = [
        (is_unfit, F.lit(str(UnfitError()))),
        _no_number("start_time"),
        _no_number("end_time"),
        (~is_in_time, F.lit(TIME_WORDS)),
        _no_number("class_uid", CLASS_MAX),
        _no_number("count"),
    ]
    by_class = F.when(_is_of(LIFECYCLES), first_of([_no_text("app.name"), _no_number("activity_id")])).when(
        _is_of(LOGINS), first_of(_login_problems())
    )
    return F.coalesce(first_of(common), by_class.otherwise(first_of(_request_problems())))


def _login_problems() -> list[Found]:
    is_proved = F.col("event.status_id") == 1
    shown, words = _no_text("user.name")
    return [_no_number("status_id"), (is_proved & shown, words), _no_text("service.name")]


def _request_problems() -> list[Found]:
    texts = ("api.operation", "actor.user.type", "actor.user.name", "resources.type", "resources.name")
    sums = [(F.col(_path(name)) < 0, F.lit(number_words(name))) for name in SUMS]
    limit, entity = F.col(_path("quota_limit")), F.col(_path("quota_entity"))
    return [
        _no_number("disposition_id"),
        *map(_no_text, texts),
        *sums,
        (~((limit >= 0) & (limit <= LIMIT_MAX)), F.lit(LIMIT_WORDS)),
        (~entity.startswith("{"), F.lit(ENTITY_WORDS)),
    ]


def _no_number(name: str, greatest: int = NUMBER_MAX) -> Found:
    number = F.col(f"event.{name}")
    is_none = number.isNull() | (number < 0)
    return is_none if greatest == NUMBER_MAX else is_none | (number > greatest), F.lit(number_words(name, greatest))


def _no_text(path: str) -> Found:
    return _field(path).isNull(), F.lit(f"{path}: {TEXT_WORDS}")


def _is_of(class_uid: int) -> Column:
    return F.col("event.class_uid") == class_uid


def _path(name: str) -> str:
    return f"event.unmapped.kafka.{name}"


def _field(path: str) -> Column:
    """What stands at a path of the event; of resources, in the first."""
    first, _, rest = path.partition(".")
    if first == "resources":
        resource = F.get(F.col("event.resources"), F.lit(0))
        return reduce(lambda found, name: found[name], rest.split("."), resource)
    return F.col(f"event.{path}")


def _columns() -> list[Column]:
    """The row. A record that is dead keeps its place in a chain, if it has one."""
    is_dead, is_entry = F.col("problem").isNotNull(), F.col("header_problem").isNull()
    row = _of_event()
    row |= {name: F.when(is_entry, F.col(name)) for name in ("source", "node", *NUMBERS.values())}
    row |= {name: F.col(name) for name in ("partition", "offset", "problem")}
    row["kind"] = F.when(is_dead, "dead").otherwise(F.col("entry_kind"))
    headers = F.coalesce(F.to_json("headers"), F.lit("[]"))
    row["record_headers"] = F.when(is_dead & (F.octet_length(headers) <= DEAD_BYTES_MAX), headers)
    row["record_value"] = F.when(is_dead | _is_of_another_version(), F.substring("value", 1, DEAD_BYTES_MAX))
    kinds = schema(ENTRIES)
    return [row[name].cast(kinds[name].dataType).alias(name) for name in ENTRIES]


def _is_of_another_version() -> Column:
    return F.col("event").isNotNull() & ~F.col("event.metadata.version").eqNullSafe(VERSION)


def _of_event() -> dict[str, Column]:
    """The columns of an event, by name; NULL of another entry."""
    is_proved = F.col("event.status_id") == 1
    login = {
        "outcome": F.when(is_proved, "allowed").otherwise("denied"),
        "operation": F.lit("LOGIN"),
        "principal": F.when(is_proved, F.concat(F.lit("User:"), _field("user.name"))),
        "address": _field("src_endpoint.ip"),
        "resource_type": F.lit("listener"),
        "resource": _without(_field("service.name"), LISTENER),
    }
    lifecycle = {
        "operation": _chosen(_field("activity_id"), STARTS),
        "resource_type": F.lit("node"),
        "resource": _without(_field("app.name"), NODE),
    }
    request = {
        "outcome": _chosen(_field("disposition_id"), OUTCOMES),
        "operation": _field("api.operation"),
        "principal": F.concat(_field("actor.user.type"), F.lit(":"), _field("actor.user.name")),
        "address": _field("src_endpoint.ip"),
        "resource_type": _field("resources.type"),
        "resource": _field("resources.name"),
    }
    of_requests = {
        "client_id": _field("actor.app_name"),
        **{name: F.col(_path(name)) for name in (*SUMS, "quota_type", "quota_entity", "quota_limit")},
        **{f"config_{name}": _field(f"resources.data.{name}") for name in ("key", "value", "previous")},
    }
    is_request = ~_is_of(LOGINS) & ~_is_of(LIFECYCLES)
    return {
        "class_uid": F.col("event.class_uid"),
        "start_ms": F.col("event.start_time"),
        "end_ms": F.col("event.end_time"),
        "times": F.col("event.count"),
        **{
            name: F.when(_is_of(LOGINS), login[name])
            .when(_is_of(LIFECYCLES), lifecycle.get(name, F.lit(None)))
            .otherwise(request[name])
            for name in request
        },
        **{name: F.when(is_request, found) for name, found in of_requests.items()},
    }


def _chosen(number: Column, names: Mapping[int, str]) -> Column:
    return first_of((number == key, F.lit(name)) for key, name in names.items())


def _without(text: Column, prefix: str) -> Column:
    """The text without a prefix."""
    return F.when(text.startswith(prefix), F.substr(text, F.lit(len(prefix) + 1))).otherwise(text)
