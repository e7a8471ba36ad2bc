"""Anomalies of records: lost, double, at two places, aborted, not committed yet."""

from collections.abc import Iterator

from tests.histories.anomalies import Anomaly
from tests.histories.operations import Key, Outcome, key_text
from tests.histories.versions import FINAL, Sighting, Versions, is_transaction


def inconsistent_offsets(versions: Versions) -> Iterator[Anomaly]:
    """Two values at one offset, said by an acknowledgement or by a reader."""
    known: dict[tuple[Key, int], Sighting] = {}
    for sighting in versions.sightings:
        first = known.setdefault((sighting.key, sighting.offset), sighting)
        if first.value != sighting.value:
            where = f"{key_text(sighting.key)}@{sighting.offset}"
            yield Anomaly("inconsistent-offsets", f"{where} is {_said(first)}, and {_said(sighting)}")


def duplicates(versions: Versions) -> Iterator[Anomaly]:
    """One value at two offsets."""
    told: dict[tuple[str, int], None] = {}
    for sighting in versions.sightings:
        first = versions.places[sighting.value]
        if sighting.offset != first and (sighting.value, sighting.offset) not in told:
            told[sighting.value, sighting.offset] = None
            yield Anomaly("duplicate", f"{sighting.value} is at {first}, and {_said(sighting)}, at {_at(sighting)}")


def phantoms(versions: Versions) -> Iterator[Anomaly]:
    """A value that nobody has sent, or that was sent to another partition."""
    for sighting in versions.sightings:
        if sighting.by and versions.keys.get(sighting.value) != sighting.key:
            sent = versions.keys.get(sighting.value)
            to = "which nobody has sent" if sent is None else f"which was sent to {key_text(sent)}"
            yield Anomaly("phantom", f"{sighting.by} read {sighting.value} at {_at(sighting)}, {to}")


def lost_writes(versions: Versions) -> Iterator[Anomaly]:
    """A value that was acknowledged, or visible once, and that readers have passed over.

    With final reads, those decide. Otherwise a value is lost once any reader has got further and nobody has read it.
    """
    finals = versions.finals
    ends = _ends(versions)
    for value, key in versions.keys.items():
        writer = versions.writers[value]
        is_known = writer.outcome is Outcome.OK or (value in versions.read and writer.outcome is Outcome.INFO)
        there = versions.is_final(value) if key in finals else value in versions.read
        if not is_known or there:
            continue
        place, end = versions.places.get(value), ends.get(key, -1)
        is_behind = place is not None and place > end and value not in versions.read
        where = "an unknown offset" if place is None else f"{place}"
        text = f"{value} is at {where} of {key_text(key)}; readers came to {end} and have not got it; wrote: {writer}"
        if is_behind or (place is None and key not in finals):
            yield Anomaly("unseen" if key in finals else "unseen before the end", text)
        else:
            yield Anomaly("lost-write", text)


def aborted_reads(versions: Versions) -> Iterator[Anomaly]:
    """A value of an operation that has failed (G1a)."""
    for value, reader in versions.read.items():
        writer = versions.writers.get(value)
        if writer is not None and writer.outcome is Outcome.FAIL:
            yield Anomaly("aborted-read", f"{reader} read {value}; wrote: {writer}")


def dirty_reads(versions: Versions) -> Iterator[Anomaly]:
    """A value that was read before its client asked for the commit."""
    for operation in versions.history.operations:
        for key, offset, value in operation.readings():
            writer = versions.writers.get(value)
            if writer is None or not is_transaction(writer) or operation.completed is None:
                continue
            if writer.commit_asked is not None and operation.completed < writer.commit_asked:
                when = f"at {operation.completed:g}, and its commit was asked for at {writer.commit_asked:g}"
                where = f"{key_text(key)}@{offset}"
                yield Anomaly("dirty-read", f"{operation.process} read {value} at {where} {when}; wrote: {writer}")


def precommitted_reads(versions: Versions) -> Iterator[Anomaly]:
    """A transaction that reads its own value."""
    for operation in versions.history.operations:
        if is_transaction(operation):
            for _, _, value in operation.readings():
                if versions.writers.get(value) is operation:
                    yield Anomaly(
                        "precommitted-read", f"{value} was read by the transaction that wrote it: {operation}"
                    )


def _ends(versions: Versions) -> dict[Key, int]:
    """How far any reader has come, or the final read where there is one."""
    finals = versions.history.finals
    ends = {key: max(records, default=-1) for key, records in finals.items()}
    for sighting in versions.sightings:
        if sighting.by and sighting.key not in finals:
            ends[sighting.key] = max(sighting.offset, ends.get(sighting.key, -1))
    return ends


def _said(sighting: Sighting) -> str:
    if sighting.by == FINAL:
        return f"{sighting.value} in {FINAL}"
    return f"{sighting.value}, read by {sighting.by}" if sighting.by else f"{sighting.value}, acknowledged"


def _at(sighting: Sighting) -> str:
    return f"{key_text(sighting.key)}@{sighting.offset}"
