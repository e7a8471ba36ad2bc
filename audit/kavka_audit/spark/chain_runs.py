"""Entries of chains, their hashes checked and their links followed, by expressions of Spark: no record goes to Python.

The hash of each entry is computed as docs/reference/audit-chain.md says. Links are followed within blocks of offsets,
so that a window has few rows whatever the length of the trail. Most of a trail are runs: events with their hashes, each
of which joins the one before. Of a run only the first and the last entry are kept, and of all else every entry, so that
who judges the chains looks at few. Signatures are left to the driver: what is signed is the hash of a head, one a
minute, and Spark has neither HMAC nor Ed25519 among its functions.
"""

from typing import Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - so do Spark's own documents

from kavka_audit.spark.entry_headers import Column, Frame, entries_of
from kavka_broker.core.audit.chain import SIGNED, Kind

BLOCK_OFFSETS: Final = 1 << 16
"""Offsets of a partition among which links are followed. A run ends with its block."""
KIND_BYTES: Final = 8
SHA_BITS: Final = 256


def hashed(records: Frame) -> Frame:
    """Return the entries of records, with `has_its_hash`. Where a record is none, that is NULL, and its headers are
    there; of a record without any, Spark has none to give.
    """
    is_entry = F.col("header_problem").isNull()
    fields = ("source", "sequence", "written_ms", "lost")
    return entries_of(records).select(
        "partition",
        "offset",
        *(F.when(is_entry, F.col(name)).alias(name) for name in fields),
        *link_columns(),
        F.when(~is_entry, F.col("headers")).alias("headers"),
    )


def link_columns() -> list[Column]:
    """What of an entry tells whether it joins the one before, by columns of `entries_of`; NULL of what is none."""
    is_entry = F.col("header_problem").isNull()
    is_head = F.col("entry_kind").isin(*SIGNED)
    return [
        F.when(is_entry, F.col("entry_kind")).alias("entry_kind"),
        F.when(is_entry, F.unhex("ce_chainprevious")).alias("previous"),
        F.when(is_entry, F.unhex("ce_chainhash")).alias("hash"),
        F.when(is_entry, F.unhex("ce_chainsignature")).alias("signature"),
        F.when(is_entry, F.col("ce_chainkeyid")).alias("key_id"),
        F.when(is_entry, _hash() == F.col("ce_chainhash")).alias("has_its_hash"),
        F.when(is_entry & is_head, F.col("value")).alias("value"),
    ]


def steps_of(entries: Frame, block_offsets: int = BLOCK_OFFSETS) -> Frame:
    """Return the entries without those within a run; `is_run` says of the last one of a run that it is that."""
    block = F.floor(F.col("offset") / block_offsets)
    chain = Window.partitionBy("source", "partition", block).orderBy("offset")
    is_event = (F.col("entry_kind") == Kind.EVENT.value) & (F.col("lost") == 0) & F.col("signature").isNull()
    plain = entries.withColumn("is_plain", is_event & F.col("has_its_hash"))
    joins = (
        F.col("is_plain")
        & F.lag("is_plain").over(chain)
        & (F.col("sequence") - 1 == F.lag("sequence").over(chain))
        & (F.col("previous") == F.lag("hash").over(chain))
        & (F.col("written_ms") >= F.lag("written_ms").over(chain))
    )
    joined = plain.withColumn("is_run", F.coalesce(joins, F.lit(False)))
    is_last = ~F.coalesce(F.lead("is_run").over(chain), F.lit(False))
    return joined.withColumn("is_last", is_last).filter(~F.col("is_run") | F.col("is_last")).drop("is_plain", "is_last")


def _hash() -> Column:
    """The hash that the fields of an entry have, in hexadecimal digits."""
    source = F.col("source").cast("binary")
    numbers = (_digits(F.col(name), 16) for name in ("sequence", "written_ms", "lost"))
    fixed = F.unhex(F.concat(F.col("ce_chainprevious"), *numbers, _digits(F.octet_length(source), 8)))
    kind = F.rpad(F.col("entry_kind"), KIND_BYTES, " ").cast("binary")
    return F.sha2(F.concat(fixed, source, kind, F.coalesce(F.col("value"), F.lit(b""))), SHA_BITS)


def _digits(number: Column, digits: int) -> Column:
    return F.lpad(F.hex(number), digits, "0")
