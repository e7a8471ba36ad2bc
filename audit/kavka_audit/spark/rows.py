"""Records of the audit topic as rows, by Spark.

`lake.rows.row_of` says what the row of any record is. Python would take most of the time for that, so an event in a
usual form becomes a row by one regular expression (`spark.forms`), and everything else goes to `row_of` itself. The
forms are strict: a record that has none of them is never taken for something that it is not; it only takes longer.
"""

from functools import reduce
from operator import and_
from typing import Any, Final, NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - so do Spark's own documents

from kavka_audit.lake.columns import ENTRIES
from kavka_audit.lake.rows import AHEAD_MS_MAX, LOGINS, OUTCOMES, REQUESTS, VALUE_BYTES_MAX, row_of
from kavka_audit.lake.usual import HEADER_FORMS
from kavka_audit.spark.columns import SQL_TYPES, schema, values
from kavka_audit.spark.forms import ABSENT, ENTITIES, FIELDS, REPLACEMENT, SEPARATOR, USUAL
from kavka_broker.core.audit.chain import Kind

Column = Any
Frame = Any
TEXTS: Final = ("client_id", "address", "quota_type", "config_key", "config_value", "config_previous")
"""Columns whose field is JSON: a text in quotation marks."""
NUMBERS: Final = {name: kind for name, kind in ENTRIES.items() if name in FIELDS and kind != "VARCHAR"}
IS_USUAL: Final = "is_usual"
UNUSUAL: Final = "unusual"


class _Record(NamedTuple):
    partition: int
    offset: int
    headers: list[tuple[str, bytes | None]]
    value: bytes | None


def rows_of(records: Frame) -> Frame:
    """Return the rows of records, which have the columns partition, offset, headers and value of the Kafka source."""
    # Only what Python is asked for goes to its process; of all others a row of nothing does.
    asked = F.when(~F.col(IS_USUAL), F.struct(*_Record._fields)).alias(UNUSUAL)
    parted = judged(records).select(IS_USUAL, *_usual_columns(), asked)
    told = parted.withColumn(UNUSUAL, _in_python()(UNUSUAL))
    return told.select(*(_chosen(name).alias(name) for name in ENTRIES))


def judged(records: Frame) -> Frame:
    """Return records with the fields of the usual ones, and whether each is one."""
    fields = F.split(F.regexp_replace(_joined(), F.lit(USUAL), F.lit(REPLACEMENT)), SEPARATOR)
    found = records.select("partition", "offset", "headers", "value", fields.alias("fields"))
    known = found.select("*", _entity().alias("entity"))
    return known.select("*", F.coalesce(_is_usual(), F.lit(False)).alias(IS_USUAL))


def _joined() -> Column:
    """The record as one text, if its headers are named as a broker names them; NULL otherwise."""
    headers, names = F.col("headers"), F.array(*map(F.lit, HEADER_FORMS))
    texts = F.array_join(headers["value"].cast("array<string>"), SEPARATOR, ABSENT)
    is_read = (headers["key"] == names) & (F.octet_length("value") <= VALUE_BYTES_MAX)
    return F.when(is_read, F.concat(texts, F.lit(SEPARATOR), F.col("value").cast("string")))


def _field(name: str) -> Column:
    return F.get(F.col("fields"), F.lit(FIELDS.index(name)))


def _number(name: str) -> Column:
    """The number of a field; NULL where there is none."""
    # Not `try_cast`: where there is no number it raises an error inside, which costs more than all the rest.
    kind = NUMBERS[name]
    return F.when(_field(name) != "", _field(name).cast(SQL_TYPES.get(kind, kind)))


def _text(name: str) -> Column:
    """The text of a field that is JSON; NULL where there is none."""
    field = _field(name)
    return F.when(field != "", F.substring(field, F.lit(2), F.length(field) - 2))


def _entity() -> Column:
    """The entity as Python writes it, with its keys sorted."""
    field = _field("quota_entity")
    chosen = reduce(lambda so_far, form: so_far.when(*_written(field, *form)), ENTITIES, F)
    return F.when(field != "", chosen)


def _written(field: Column, form: str, replacement: str) -> tuple[Column, Column]:
    return field.rlike(form), F.regexp_replace(field, form, replacement)


def _is_usual() -> Column:
    start_ms, end_ms = _number("start_ms"), _number("end_ms")
    is_known = (_field("quota_entity") == "") | F.col("entity").isNotNull()
    return reduce(and_, [start_ms <= end_ms, end_ms - AHEAD_MS_MAX <= _number("written_ms"), is_known])


def _usual_columns() -> list[Column]:
    usual, kinds = _usual_row(), schema(ENTRIES)
    return [usual.get(name, F.lit(None)).cast(kinds[name].dataType).alias(name) for name in ENTRIES]


def _usual_row() -> dict[str, Column]:
    """The columns of a usual record, by name; one that is not here is NULL."""
    status, user = _field("status"), _field("user")
    is_login, is_proved = status != "", status == "1"
    outcome = F.when(is_proved, "allowed").when(is_login, "denied")
    for disposition, name in OUTCOMES.items():
        outcome = outcome.when(_field("disposition") == str(disposition), name)
    login = {
        "class_uid": F.lit(LOGINS),
        "operation": F.lit("LOGIN"),
        "principal": F.when(is_proved, F.concat(F.lit("User:"), user)),
        "resource_type": F.lit("listener"),
        "resource": _field("listener"),
    }
    request = {
        "class_uid": F.lit(REQUESTS),
        "operation": _text("operation"),
        "principal": F.concat(_field("user_type"), F.lit(":"), user),
        "resource_type": _text("resource_type"),
        "resource": _text("resource"),
    }
    return {
        "partition": F.col("partition"),
        "offset": F.col("offset"),
        "kind": F.lit(Kind.EVENT.value),
        "source": _field("source"),
        "outcome": outcome,
        "quota_entity": F.col("entity"),
        **{name: F.when(is_login, login[name]).otherwise(request[name]) for name in login},
        **{name: _text(name) for name in TEXTS},
        **{name: _number(name) for name in NUMBERS},
    }


def _chosen(name: str) -> Column:
    return F.when(F.col(IS_USUAL), F.col(name)).otherwise(F.col(f"{UNUSUAL}.{name}"))


def _in_python() -> Any:
    # Without Arrow: what goes to Python is little, and neither pyarrow nor pandas has to be there.
    return F.udf(_row, schema(ENTRIES), useArrow=False)


def _row(asked: Any) -> tuple[object, ...] | None:
    """The row of an unusual record; None for those that are not asked for."""
    if asked is None:
        return None
    partition, offset, headers, value = asked
    pairs = [(header[0], None if header[1] is None else bytes(header[1])) for header in headers or ()]
    record = _Record(partition, offset, pairs, None if value is None else bytes(value))
    return values(row_of(record), ENTRIES)
