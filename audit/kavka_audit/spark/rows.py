"""Records of the audit topic as rows, by Spark.

`lake.rows.row_of` says what the row of any record is. Python would take most of the time for that, so what a broker has
written in its usual form becomes a row by expressions of Spark, and everything else goes to `row_of` itself. The usual
form is judged strictly: the headers are those of a broker, in its order, and the event as it was read, written again,
is the text that stands in the record, to the byte. So a value of another type, a field that is not known, or a text
with odd characters is never taken for something that it is not; it only takes longer.
"""

from functools import reduce
from operator import and_
from typing import Any, Final, NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - so do Spark's own documents

from kavka_audit.lake.columns import ENTRIES
from kavka_audit.lake.rows import (
    AHEAD_MS_MAX,
    CLASS_MAX,
    LIFECYCLES,
    LIMIT_MAX,
    LOGINS,
    OUTCOMES,
    VALUE_BYTES_MAX,
    row_of,
)
from kavka_audit.spark.columns import schema, values
from kavka_broker.core.audit.chain import Kind
from kavka_broker.core.audit.cloud_events import SOURCE_PREFIX, TYPE_PREFIX

Column = Any
Frame = Any
HEADERS: Final = (
    "ce_specversion",
    "ce_id",
    "ce_source",
    "ce_type",
    "ce_sequence",
    "ce_chaintime",
    "ce_chainlost",
    "ce_chainprevious",
    "ce_chainhash",
    "content-type",
)
SIGNATURE: Final = "ce_chainsignature"
"""The header that signed entries have besides."""
SOURCE: Final = rf"\A{SOURCE_PREFIX}[0-9]{{1,9}}-[0-9]{{1,20}}\z"
NUMBER: Final = r"\A[0-9]{1,18}\z"
DIGEST: Final = r"\A[0-9a-f]{64}\z"
PLAIN: Final = r"\A[ !#-\[\]-~]*\z"
"""Text that stands in JSON as it is."""
LISTENER: Final = "kafka listener "
EVENT: Final = """
    category_uid bigint, class_uid bigint, activity_id bigint, type_uid bigint, severity_id bigint, status_id bigint,
    auth_protocol string, auth_protocol_id bigint, user struct<name: string, type_id: bigint>,
    service struct<name: string>,
    actor struct<user: struct<name: string, type: string, type_id: bigint>, app_name: string>,
    api struct<operation: string, service: struct<name: string>>, src_endpoint struct<ip: string, name: string>,
    status_detail string, action_id bigint, disposition_id bigint,
    resources array<struct<type: string, name: string, data: struct<key: string, value: string, previous: string>>>,
    unmapped struct<kafka: struct<
        bytes: bigint, records: bigint, quota_type: string, quota_entity: struct<user: string, `client-id`: string>,
        quota_limit: double, throttle_time_ms: bigint, throttle_time_ms_max: bigint>>,
    count bigint, time bigint, start_time bigint, end_time bigint,
    metadata struct<
        version: string, uid: string, product: struct<name: string, vendor_name: string>, profiles: array<string>>
"""
"""Fields of an event in the order in which a broker writes them."""
JSON: Final = {"mode": "PERMISSIVE"}
"""Said although it is what holds: without any option Spark takes reading and writing again for doing nothing."""
IS_USUAL: Final = "is_usual"
UNUSUAL: Final = "unusual"


class _Record(NamedTuple):
    partition: int
    offset: int
    headers: list[tuple[str, bytes | None]]
    value: bytes | None


def rows_of(records: Frame) -> Frame:
    """Return the rows of records, which have the columns partition, offset, headers and value of the Kafka source."""
    read = records.select("partition", "offset", "headers", "value", *_header_texts(), _event().alias("event"))
    judged = read.select("*", F.coalesce(_is_usual(), F.lit(False)).alias(IS_USUAL))
    # Only what Python is asked for goes to its process; of all others a row of nothing does.
    asked = [F.when(~F.col(IS_USUAL), F.col(name)).alias(f"{UNUSUAL}_{name}") for name in _Record._fields]
    parted = judged.select(IS_USUAL, *_usual_columns(), *asked)
    told = parted.select("*", _in_python()(*(f"{UNUSUAL}_{name}" for name in _Record._fields)).alias(UNUSUAL))
    return told.select(*(_chosen(name).alias(name) for name in ENTRIES))


def _usual_columns() -> list[Column]:
    usual, kinds = _usual_row(), schema(ENTRIES)
    return [usual.get(name, F.lit(None)).cast(kinds[name].dataType).alias(name) for name in ENTRIES]


def _chosen(name: str) -> Column:
    return F.when(F.col(IS_USUAL), F.col(name)).otherwise(F.col(f"{UNUSUAL}.{name}"))


def _in_python() -> Any:
    # Without Arrow: what goes to Python is little, and neither pyarrow nor pandas has to be there.
    return F.udf(_row, schema(ENTRIES), useArrow=False)


def _row(partition: int | None, offset: int, headers: Any, value: Any) -> tuple[object, ...] | None:
    """The row of an unusual record; None for those that are not asked for."""
    if partition is None:
        return None
    pairs = [(header[0], None if header[1] is None else bytes(header[1])) for header in headers or ()]
    record = _Record(partition, offset, pairs, None if value is None else bytes(value))
    return values(row_of(record), ENTRIES)


def _header(index: int) -> Column:
    return F.get(F.col("headers"), F.lit(index))


def _header_texts() -> list[Column]:
    return [_header(index)["value"].cast("string").alias(name) for index, name in enumerate(HEADERS)]


def _event() -> Column:
    is_event = F.col("ce_type") == f"{TYPE_PREFIX}{Kind.EVENT.value}"
    return F.when(is_event, F.from_json(F.col("value").cast("string"), EVENT, JSON))


def _is_usual() -> Column:
    kind = F.col("ce_type")
    others = [f"{TYPE_PREFIX}{kind.value}" for kind in Kind if kind is not Kind.EVENT]
    is_event = (kind == f"{TYPE_PREFIX}{Kind.EVENT.value}") & _is_usual_event()
    return _are_usual_headers() & (kind.isin(others) | is_event)


def _are_usual_headers() -> Column:
    names = [_header(index)["key"] == name for index, name in enumerate(HEADERS)]
    size, last = F.size("headers"), _header(len(HEADERS))
    is_signed = (size == len(HEADERS) + 1) & (last["key"] == SIGNATURE) & last["value"].cast("string").rlike(DIGEST)
    numbers = [F.col(name).rlike(NUMBER) for name in ("ce_sequence", "ce_chaintime", "ce_chainlost")]
    digests = [F.col(name).rlike(DIGEST) for name in ("ce_chainprevious", "ce_chainhash")]
    ends = (size == len(HEADERS)) | is_signed
    return reduce(and_, [*names, ends, F.col("ce_source").rlike(SOURCE), *numbers, *digests])


def _is_usual_event() -> Column:
    event, value = F.col("event"), F.col("value").cast("string")
    start, end, written = event["start_time"], event["end_time"], F.col("ce_chaintime").try_cast("bigint")
    is_login = event["class_uid"] == LOGINS
    return reduce(
        and_,
        [
            F.octet_length("value") <= VALUE_BYTES_MAX,
            F.to_json(event, JSON) == value,
            event["class_uid"].between(0, CLASS_MAX) & (event["class_uid"] != LIFECYCLES),
            event["count"] >= 0,
            (start >= 0) & (start <= end) & (F.try_subtract(end, F.lit(AHEAD_MS_MAX)) <= written),
            event["src_endpoint"].isNotNull(),
            (is_login & _is_usual_login(event)) | (~is_login & _is_usual_request(event)),
        ],
    )


def _is_usual_login(event: Column) -> Column:
    return (event["status_id"] >= 0) & event["user"]["name"].isNotNull() & event["service"]["name"].isNotNull()


def _is_usual_request(event: Column) -> Column:
    user, resource, sums = event["actor"]["user"], _resource(event), event["unmapped"]["kafka"]
    limit, entity = sums["quota_limit"], sums["quota_entity"]
    texts = [user["name"], user["type"], event["api"]["operation"], resource["type"], resource["name"]]
    numbers = [sums[name] for name in ("bytes", "records", "throttle_time_ms", "throttle_time_ms_max")]
    return reduce(
        and_,
        [
            event["disposition_id"] >= 0,
            *(text.isNotNull() for text in texts),
            *(number.isNull() | (number >= 0) for number in numbers),
            limit.isNull() | ((limit >= 0) & (limit <= LIMIT_MAX)),
            *(entity[part].isNull() | entity[part].rlike(PLAIN) for part in ("user", "client-id")),
        ],
    )


def _resource(event: Column) -> Column:
    return F.get(event["resources"], F.lit(0))


def _usual_row() -> dict[str, Column]:
    """The columns of a usual record, by name; one that is not here is NULL."""
    kind = F.substring("ce_type", len(TYPE_PREFIX) + 1, len("event") + 1)
    source = F.substring_index("ce_source", SOURCE_PREFIX, -1)
    place = {
        "partition": F.col("partition"),
        "offset": F.col("offset"),
        "kind": kind,
        "source": source,
        "node": F.substring_index(source, "-", 1).try_cast("int"),
        "sequence": F.col("ce_sequence").try_cast("bigint"),
        "written_ms": F.col("ce_chaintime").try_cast("bigint"),
        "lost": F.col("ce_chainlost").try_cast("bigint"),
    }
    event = F.col("event")
    told = {
        "class_uid": event["class_uid"].try_cast("int"),
        "start_ms": event["start_time"],
        "end_ms": event["end_time"],
        "times": event["count"],
        "address": event["src_endpoint"]["ip"],
    }
    login, request = _login(event), _request(event)
    is_login = event["class_uid"] == LOGINS
    nothing = F.lit(None)
    either = {
        name: F.when(is_login, login.get(name, nothing)).otherwise(request.get(name, nothing))
        for name in {**login, **request}
    }
    return place | told | either


def _login(event: Column) -> dict[str, Column]:
    is_known = event["status_id"] == 1
    name, listener = event["user"]["name"], event["service"]["name"]
    return {
        "outcome": F.when(is_known, "allowed").otherwise("denied"),
        "operation": F.lit("LOGIN"),
        "principal": F.when(is_known, F.concat(F.lit("User:"), name)),
        "resource_type": F.lit("listener"),
        "resource": F.when(listener.startswith(LISTENER), F.substring(listener, len(LISTENER) + 1, 1 << 30)).otherwise(
            listener
        ),
    }


def _request(event: Column) -> dict[str, Column]:
    user, resource, sums = event["actor"]["user"], _resource(event), event["unmapped"]["kafka"]
    of_sums = ("bytes", "records", "quota_type", "quota_limit", "throttle_time_ms", "throttle_time_ms_max")
    outcome = reduce(lambda chosen, one: chosen.when(event["disposition_id"] == one, OUTCOMES[one]), OUTCOMES, F)
    return {
        "outcome": outcome,
        "operation": event["api"]["operation"],
        "principal": F.concat(user["type"], F.lit(":"), user["name"]),
        "client_id": event["actor"]["app_name"],
        "resource_type": resource["type"],
        "resource": resource["name"],
        "quota_entity": _entity(sums["quota_entity"]),
        "config_key": resource["data"]["key"],
        "config_value": resource["data"]["value"],
        "config_previous": resource["data"]["previous"],
        **{name: sums[name] for name in of_sums},
    }


def _entity(entity: Column) -> Column:
    """The entity as Python writes it, with its keys sorted; names are plain."""
    parts = [F.when(entity[part].isNotNull(), F.concat(F.lit(f'"{part}": "'), entity[part], F.lit('"'))) for part in
             ("client-id", "user")]  # fmt: skip
    return F.when(entity.isNotNull(), F.concat(F.lit("{"), F.concat_ws(", ", *parts), F.lit("}")))
