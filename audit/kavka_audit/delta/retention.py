"""How long the Delta tables keep rows: whole days are deleted, and files that no version needs any more are vacuumed.

A day goes by one commit without a file being read or written. Delta keeps the files of what was deleted for a week, for
readers of an older version. Only files that the table's own log names are vacuumed: what others have put beside them,
and what a run that died has left half written, stays.
"""

from collections import Counter
from pathlib import Path
from typing import Final

from kavka_audit.delta.chain_rows import known_chains, replace_chains
from kavka_audit.delta.chain_states import without_old
from kavka_audit.delta.columns import DAY, DAY_MS
from kavka_audit.delta.daily_tables import DailyTables
from kavka_audit.delta.tables import Table, Tables, relation
from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.retention import note_cuts

DAY_FILES_MAX: Final = 64
"""Files of a day that are made one, for which all of them are read and written: ten million events of a day make 50."""


def retain(lake: Lake, now_ms: int, keep_days: int) -> None:
    """Delete the days that are too old, make few files of many, and vacuum. Raises LakeError."""
    tables, limit_ms = Tables(lake), now_ms - keep_days * DAY_MS
    with connected() as connection:
        ((limit,),) = connection.execute("SELECT strftime(make_timestamp(? * 1000), '%Y-%m-%d')", [limit_ms]).fetchall()
        old = {table.name: table.files([(DAY, "<", limit)]) for table in (tables.events, tables.dead_letters)}
        found = [files for files in old.values() if files]
        note_cuts(lake, [relation(connection, files) for files in found])
    for table in (tables.events, tables.dead_letters):
        if old[table.name]:
            table.delete_before(limit)
        for day, count in _days(table).items():
            if count > DAY_FILES_MAX:
                table.compact(day)
    chains = known_chains(tables.chains)
    if len(kept := without_old(chains, limit_ms)) < len(chains):
        replace_chains(tables.chains, kept, {})
    daily = DailyTables(lake)
    for table in (tables.events, tables.dead_letters, tables.chains, *daily.tables.values(), daily.days):
        table.vacuum()


def _days(table: Table) -> dict[str, int]:
    """Return how many files each day has."""
    return Counter(Path(file).parent.name.partition("=")[2] for file in table.names())
