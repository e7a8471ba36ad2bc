"""A verification that takes runs of events together says the same as one that looks at each entry."""

from dataclasses import replace
from random import Random

import pytest

from kavka_broker.core.audit.chain import Chain, Entry
from kavka_broker.core.audit.keys import VerifyingKey
from kavka_broker.core.audit.trail_check import TrailCheck
from kavka_broker.core.audit.verification import Verdict
from tests.unit.audit.runs import steps, verdicts_by_runs
from tests.unit.audit.test_tampered_trails import TAMPERINGS, Tampering
from tests.unit.audit.trails import KEY, long_trail

BLOCKS = (7, 100, 10_000)


def entry_by_entry(entries: list[Entry], keys: tuple[VerifyingKey, ...], log_start: int = 0) -> dict[str, Verdict]:
    check = TrailCheck(keys)
    for entry in entries:
        check.add(0, log_start, entry)
    return check.verdicts()


@pytest.mark.parametrize("tamper", TAMPERINGS, ids=lambda tamper: tamper.__name__)
def test_each_tampering_is_told_in_the_same_words(tamper: Tampering) -> None:
    trail = long_trail()
    tamper(trail)
    for keys in ((KEY,), ()):
        expected = entry_by_entry(trail.entries, keys, trail.log_start)
        for block in BLOCKS:
            assert verdicts_by_runs(trail.entries, keys, trail.log_start, block) == expected, block


def test_a_sound_trail_takes_few_steps() -> None:
    trail = long_trail()
    heads = sum(len(trail.heads_of(source)) for source in ("1-1", "2-1", "3-1", "1-2", "2-2"))
    assert len(steps(trail.entries, 0, 10_000)) <= 3 * heads < len(trail.entries) / 5


def drawn(chance: Random) -> list[Entry]:
    """Chains in which nearly everything has been moved about, some of it with good hashes."""
    chains = [Chain(f"{node}-1", KEY) for node in (1, 2)]
    entries = [
        chain.head(time_ms) if chance.random() < 0.1 else chain.event(b"%d" % time_ms, time_ms)
        for time_ms in range(40)
        for chain in chains
    ]
    entries += [chain.end(99) for chain in chains if chance.random() < 0.5]
    for _ in range(chance.randrange(1, 6)):
        first = chance.randrange(len(entries))
        size, to = chance.randrange(1, 25), chance.randrange(len(entries))
        some = entries[first : first + size]
        match chance.randrange(5):
            case 0:  # a second time
                entries[to:to] = some
            case 1:  # elsewhere
                del entries[first : first + size]
                entries[to:to] = some
            case 2:
                del entries[first : first + min(size, 5)]
            case 3:
                entries[first] = replace(entries[first], sequence=chance.randrange(60))
            case _:  # another chain of the same name and numbers, which goes on from a place of the first
                forged = replace(entries[first], value=b"forged")
                for place in range(first, len(entries)):
                    if entries[place].source == forged.source:
                        joined = replace(entries[place], previous=forged.previous if place == first else forged.hash)
                        forged = entries[place] = replace(joined, hash=joined.expected_hash())
    return entries


@pytest.mark.parametrize("seed", range(300))
def test_what_is_moved_about_is_told_in_the_same_words(seed: int) -> None:
    chance = Random(seed)
    entries, log_start = drawn(chance), chance.choice((0, 0, 50))
    for keys in ((KEY,), ()):
        expected = entry_by_entry(entries, keys, log_start)
        for block in BLOCKS:
            assert verdicts_by_runs(entries, keys, log_start, block) == expected, (block, keys)


def test_a_run_that_is_late_at_its_beginning_alone_is_read_one_by_one() -> None:
    chain = Chain("1-1", KEY)
    entries = [chain.head(0), *(chain.event(b"", 1) for _ in range(9))]
    check = TrailCheck((KEY,))
    for entry in entries[:5]:
        check.add(0, 0, entry)
    check.add_hashed(0, 0, entries[2], has_its_hash=True)
    assert not check.extend(entries[8])
    assert check.extend(entries[4]), "all of it is late"
    (verdict,) = check.verdicts().values()
    assert (verdict.entries, verdict.damages_total) == (5, 3)
