"""Records of the audit topic as entries of chains: their headers as columns, and why a record is none.

The columns are those of `cloud_events.entry_of`. Headers are read by their places where they stand as a broker writes
them, and by their names otherwise.
"""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any, Final

from pyspark.sql import functions as F  # noqa: N812 - so do Spark's own documents

from kavka_audit.lake.rows import NUMBER_MAX, header_words
from kavka_broker.core.audit.chain import Kind
from kavka_broker.core.audit.cloud_events import SOURCE_PREFIX, TYPE_PREFIX

Column = Any
Frame = Any
Found = tuple[Column, Column]
"""Whether a problem shows, and what is said of it then."""
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
    "ce_chainsignature",
    "ce_chainkeyid",
)
"""The headers of an entry in a broker's order. Only heads have the last two; older nodes left out the second."""
LEAST_HEADERS: Final = 10
READ: Final = tuple(name for name in HEADERS if name not in {"ce_specversion", "ce_id", "content-type"})
NUMBERS: Final = {"ce_sequence": "sequence", "ce_chaintime": "written_ms", "ce_chainlost": "lost"}
DIGITS_MAX: Final = len(str(NUMBER_MAX))
NODE_DIGITS: Final = 9
HASHES: Final = ("ce_chainprevious", "ce_chainhash")
HEAD_DIGITS: Final = {
    "ce_chainsignature": "[0-9a-f]{64}([0-9a-f]{64})?",
    "ce_chainkeyid": "([0-9a-f]{16})?",
}


def entries_of(records: Frame) -> Frame:
    """Return records with the headers of entries as columns, and `header_problem` where a record is none. They have the
    columns partition, offset, headers and value of the Kafka source.
    """
    named = records.select("partition", "offset", "headers", "value", _named().alias("named"))
    read = named.select("partition", "offset", "headers", "value", *(_text(name).alias(name) for name in READ))
    return read.select("*", *_of_entry(), _header_problem().alias("header_problem"))


def _named() -> Column:
    """The headers by name, where they do not stand as a broker writes them; NULL where they do."""
    keys = F.col("headers")["key"]
    orders = [F.array(*map(F.lit, HEADERS[:size])) for size in range(LEAST_HEADERS, len(HEADERS) + 1)]
    in_order = reduce(or_, (keys == order for order in orders))
    # The session's maps keep the last of equal keys, as a dictionary does.
    return F.when(~in_order, F.map_from_arrays(keys, F.col("headers")["value"]))


def _text(name: str) -> Column:
    """The text of a header; NULL where it is not there. One without a value is an empty text."""
    place, named = HEADERS.index(name), F.col("named")
    by_place = F.when(F.size("headers") > place, F.coalesce(F.get(F.col("headers"), F.lit(place))["value"], F.lit(b"")))
    by_name = F.when(F.map_contains_key(named, name), F.coalesce(named[name], F.lit(b"")))
    return F.when(named.isNull(), by_place).otherwise(by_name).cast("string")


def _of_entry() -> list[Column]:
    source = F.make_valid_utf8(_after("ce_source", SOURCE_PREFIX))
    node = F.substring_index(source, "-", 1)
    return [
        source.alias("source"),
        _number_in(node, "int", NODE_DIGITS).alias("node"),
        _after("ce_type", TYPE_PREFIX).alias("entry_kind"),
        *(_number_in(F.col(name), "bigint", DIGITS_MAX).alias(column) for name, column in NUMBERS.items()),
    ]


def _after(name: str, prefix: str) -> Column:
    """What stands in a header behind a prefix; NULL where it does not begin so."""
    return F.when(F.col(name).startswith(prefix), F.substr(F.col(name), F.lit(len(prefix) + 1)))


def _number_in(text: Column, kind: str, digits: int) -> Column:
    """The number that a text of at most so many digits is; NULL where it is none."""
    # Nearly every number reads as it is written. The expression for others takes longer than the cast.
    number = text.try_cast(kind)
    is_plain = (number >= 0) & (F.octet_length(text) <= digits) & (number.cast("string") == text)
    return F.when(is_plain, number).when(text.rlike(rf"\A[0-9]{{1,{digits}}}\z"), number)


def _header_problem() -> Column:
    """Why a record is no entry: by the first header that shows it."""
    shows = {
        "ce_type": ~F.coalesce(F.col("entry_kind").isin(*Kind), F.lit(False)),
        "ce_source": F.col("source").isNull(),
        **{name: F.col(column).isNull() for name, column in NUMBERS.items()},
        **{name: ~F.coalesce(_is_hash(F.col(name)), F.lit(False)) for name in HASHES},
        **{name: ~F.col(name).rlike(rf"\A{form}\z") for name, form in HEAD_DIGITS.items()},
    }
    return first_of((shown, F.lit(header_words(name))) for name, shown in shows.items())


def _is_hash(text: Column) -> Column:
    # Without a regular expression, which would take longer than the rest of the headers.
    return (F.octet_length(text) == 64) & (F.lower(text) == text) & F.unhex(text).isNotNull()


def first_of(found: Iterable[Found]) -> Column:
    """The words of the first that shows a problem; NULL where none does."""
    pairs = list(found)
    return reduce(lambda so_far, pair: so_far.when(*pair), pairs[1:], F.when(*pairs[0]))
