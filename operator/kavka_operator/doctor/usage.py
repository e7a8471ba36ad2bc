"""Topics that nobody seems to use. Kafka keeps no date of the last read: the evidence is offsets, and it says so."""

from collections.abc import Iterator

from kavka_operator.doctor.evidence import Examined, Finding, Severity, listed


def judged(seen: Examined) -> Iterator[Finding]:
    """The findings about unused topics; none where the cluster does not tell its groups."""
    if seen.groups is None:
        return
    read = {topic for group in seen.groups for topic, _ in group.committed}
    empty: list[str] = []
    unread: list[str] = []
    for topic, parts in seen.by_topic().items():
        ends = [found.end for found in parts]
        if topic in seen.internal or topic in read or any(end is None for end in ends):
            continue
        (unread if any(ends) else empty).append(topic)
    fix = "ask their owners; kafka-topics.sh --delete takes their records with them"
    if empty:
        evidence = f"every end offset is 0 and no group has committed one: {listed(empty)}"
        yield Finding(Severity.NOTE, "never-used", f"{len(empty)} topics were never written", evidence, fix)
    if unread:
        evidence = f"no group has committed an offset (readers without a group are not told): {listed(unread)}"
        yield Finding(
            Severity.NOTE, "not-read", f"{len(unread)} topics are written and no group reads them", evidence, fix
        )
