"""Ten thousand changes of chains, drawn at random: each is found, at its place and by its kind."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from kavka_broker.core.audit.chain import Chain, Entry, Kind
from kavka_broker.core.audit.keys import HmacKey
from kavka_broker.core.audit.verification import Damage, Fault, State, verify

pytestmark = pytest.mark.thorough

KEY = HmacKey(bytes(range(32)))
TAMPERINGS = 10_000
Tampered = tuple[list[Entry], int, set[Fault]]


def a_chain(random: Random, source: str = "1-7", is_ended: bool = True) -> list[Entry]:
    chain, entries = Chain(source, KEY), list[Entry]()
    for time_ms in range(random.randrange(3, 25)):
        roll = random.random()
        if roll < 0.15:
            entries.append(chain.head(time_ms))
        elif roll < 0.25:
            entries.append(chain.loss(random.randrange(1, 9), time_ms))
        else:
            entries.append(chain.event(random.randbytes(random.randrange(40)), time_ms))
    return [*entries, chain.end(99)] if is_ended else entries


def flipped_bit(data: bytes, random: Random) -> bytes:
    bit = random.randrange(len(data) * 8)
    return bytes(byte ^ (1 << bit % 8 if index == bit // 8 else 0) for index, byte in enumerate(data))


def flip(entries: list[Entry], random: Random) -> Tampered:
    """Change a field of an entry, and leave its hash."""
    index = random.randrange(len(entries))
    entry = entries[index]
    changes: list[dict[str, object]] = [
        {"value": entry.value + b" "},
        {"time_ms": entry.time_ms + 1},
        {"lost": entry.lost + 1},
        {"sequence": entry.sequence + random.choice((-1, 1))},
        {"kind": Kind.LOSS if entry.kind is Kind.EVENT else Kind.EVENT},
        {"previous": flipped_bit(entry.previous, random)},
        {"hash": flipped_bit(entry.hash, random)},
        {"signature": flipped_bit(entry.signature or bytes(32), random)},
    ]
    if entry.value:
        changes.append({"value": flipped_bit(entry.value, random)})
    entries[index] = replace(entry, **random.choice(changes))  # type: ignore[arg-type]
    return entries, index, {Fault.FLIPPED, Fault.UNSIGNED}


def drop(entries: list[Entry], random: Random) -> Tampered:
    """Take entries out of the middle or the beginning."""
    index = random.randrange(len(entries) - 1)
    count = random.randrange(1, len(entries) - index)
    return entries[:index] + entries[index + count :], index, {Fault.DROPPED}


def swap(entries: list[Entry], random: Random) -> Tampered:
    first, second = sorted(random.sample(range(len(entries)), 2))
    entries[first], entries[second] = entries[second], entries[first]
    return entries, first, {Fault.SWAPPED}


def repeat(entries: list[Entry], random: Random) -> Tampered:
    """Add an entry a second time."""
    copied, index = random.choice(entries), random.randrange(len(entries) + 1)
    place = index if index != copied.sequence else index + 1  # beside itself, the second of two is too much
    return [*entries[:index], copied, *entries[index:]], place, {Fault.ADDED}


def add_foreign(entries: list[Entry], random: Random) -> Tampered:
    """Add an entry of another start of the node, which has good hashes and signatures of its own."""
    index = random.randrange(1, len(entries) + 1)
    foreign = random.choice(a_chain(random, source="1-8"))
    return [*entries[:index], foreign, *entries[index:]], index, {Fault.ADDED}


def rewrite(entries: list[Entry], random: Random) -> Tampered:
    """Change an entry and compute the hashes of it and all later ones again, without the key."""
    index = random.randrange(len(entries))
    entries[index] = replace(entries[index], value=entries[index].value + b"!")
    for place in range(index, len(entries)):
        entry = replace(entries[place], previous=entries[place - 1].hash if place else entries[place].previous)
        entries[place] = replace(entry, hash=entry.expected_hash())
    head = next(place for place in range(index, len(entries)) if entries[place].kind in (Kind.HEAD, Kind.END))
    return entries, head, {Fault.UNSIGNED}


def replace_alone(entries: list[Entry], random: Random) -> Tampered:
    """Change an event and its own hash. The entry after it does not join, and that is where it shows."""
    events = [index for index, entry in enumerate(entries) if entry.kind is Kind.EVENT]
    if not events:
        return flip(entries, random)
    index = random.choice(events)
    entry = replace(entries[index], value=entries[index].value + b"!")
    entries[index] = replace(entry, hash=entry.expected_hash())
    return entries, index + 1, {Fault.REWRITTEN}


WAYS: tuple[Callable[[list[Entry], Random], Tampered], ...] = (
    flip, drop, swap, repeat, add_foreign, rewrite, replace_alone,
)  # fmt: skip


def test_ten_thousand_tamperings_are_found_at_their_place() -> None:
    random, kinds = Random(20261123), set[Fault]()
    for count in range(TAMPERINGS):
        way = WAYS[count % len(WAYS)]
        entries = a_chain(random)
        assert verify(entries, [KEY]).damage is None
        tampered, place, faults = way(list(entries), random)
        damage = verify(tampered, [KEY]).damage
        assert damage is not None, way.__name__
        assert damage.fault in faults, (way.__name__, damage)
        assert damage.index == place, (way.__name__, damage)
        kinds.add(damage.fault)
    of_many_chains = {Fault.TRUNCATED, Fault.LATE, Fault.MISSING, Fault.UNNAMED, Fault.FOREIGN}
    assert kinds == set(Fault) - of_many_chains


@pytest.mark.parametrize("seed", range(50))
def test_any_part_of_a_chain_from_the_middle_on_is_sound(seed: int) -> None:
    random = Random(seed)
    entries = a_chain(random)
    rest = entries[random.randrange(len(entries)) :]
    verdict = verify(rest, [KEY], is_whole=False)
    assert verdict.damage is None
    assert verdict.is_ended
    assert (verdict.entries, verdict.proved, verdict.state) == (len(rest), len(rest), State.SOUND)


def test_a_cut_tail_is_seen_by_a_known_sequence_alone() -> None:
    entries = a_chain(Random(3))
    cut = entries[:-2]
    verdict = verify(cut, [KEY])
    assert verdict.damage is None
    assert not verdict.is_ended
    place = len(cut)
    assert verify(cut, [KEY], sequence_min=entries[-1].sequence).damage == Damage(Fault.TRUNCATED, place, place)


def test_a_tail_written_again_after_the_last_head_is_not_seen() -> None:
    chain = Chain("1-7", KEY)
    head, event = chain.head(0), chain.event(b"deleted everything", 1)
    forged = replace(event, value=b"did nothing")
    forged = replace(forged, hash=forged.expected_hash())
    verdict = verify([head, forged], [KEY])
    assert verdict.damage is None
    assert (verdict.entries, verdict.proved, verdict.tail) == (2, 1, 1)  # and so it says how far the signatures reach


def test_another_key_signs_nothing() -> None:
    entries = a_chain(Random(4))
    verdict = verify(entries, [HmacKey(bytes(32))])
    assert (verdict.state, verdict.proved, verdict.unknown_keys) == (State.UNSIGNED, 0, [KEY.id])
    older = [replace(entry, key_id="") for entry in entries]
    damage = verify(older, [HmacKey(bytes(32))]).damage
    assert damage is not None
    assert damage.fault is Fault.UNSIGNED
    assert verify(older, [HmacKey(bytes(32)), KEY]).state is State.SOUND, "heads named no key once"


def test_losses_are_counted_and_no_damage() -> None:
    chain = Chain("1-7")
    verdict = verify([chain.event(b"a", 0), chain.loss(7, 1), chain.event(b"b", 2), chain.end(3)])
    assert (verdict.events, verdict.lost, verdict.is_ended, verdict.damage) == (2, 7, True, None)


def test_an_empty_chain_shows_nothing() -> None:
    assert verify([]).damage is None
    assert verify([], sequence_min=0).damage == Damage(Fault.TRUNCATED, 0, 0)
