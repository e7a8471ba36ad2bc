"""Tamperings with a whole trail, by somebody without the key who can write all of the topic: each one shows.

The trail is what real journals write. Each tampering names the chains that are told, and what is told of them; every
other chain stays sound, so that no damage hides another and none is told where nothing was done.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from kavka_broker.core.audit.chain import HEAD_MS, SIGNED, Chain, Entry, Kind
from kavka_broker.core.audit.keys import HmacKey
from kavka_broker.core.audit.trail_check import CHAINS_MAX, TooManyChainsError, TrailCheck
from kavka_broker.core.audit.verification import Fault, State
from tests.unit.audit.trails import BEGIN_MS, CLUSTER, KEY, OTHER_CLUSTER, SECOND_MS, Node, Trail, long_trail

UNSIGNED: Final = "unsigned"
Told = dict[str, str]  # by chain: a fault, or UNSIGNED
Tampering = Callable[[Trail], Told]
TAMPERINGS: Final[list[Tampering]] = []


def tampering(function: Tampering) -> Tampering:
    TAMPERINGS.append(function)
    return function


def told(trail: Trail) -> Told:
    """The chains that are not sound, each with its first damage."""
    found = {}
    for source, verdict in trail.verdicts(cluster=CLUSTER).items():
        if verdict.state is not State.SOUND:
            assert verdict.state is (State.UNSIGNED if verdict.damage is None else State.DAMAGED)
            found[source] = UNSIGNED if verdict.damage is None else verdict.damage.fault.value
    return found


def hashed(trail: Trail, source: str, first: int = 0) -> None:
    """Number the entries of a chain, and compute hashes again, from the place of the `first` of them on."""
    previous: Entry | None = None
    for count, place in enumerate(trail.of(source)):
        entry = trail.entries[place]
        if count >= first:
            joined = replace(entry, sequence=count, previous=previous.hash if previous else bytes(32))
            trail.entries[place] = entry = replace(joined, hash=joined.expected_hash())
        previous = entry


def take_out(trail: Trail, places: list[int]) -> None:
    for place in sorted(places, reverse=True):
        del trail.entries[place]


def forged(source: str, count: int, time_ms: int = BEGIN_MS) -> list[Entry]:
    """A chain that nobody has signed: hashes take no key."""
    chain = Chain(source)
    return [chain.event(b'{"class_uid":6003}', time_ms) for _ in range(count)]


def behind(last: Entry, count: int, time_ms: int | None = None) -> list[Entry]:
    """Entries that go on with a chain, made by somebody without its key."""
    entries = []
    for _ in range(count):
        entry = Entry(last.source, last.sequence + 1, Kind.EVENT, time_ms or last.time_ms, b"{}", 0, last.hash)
        last = replace(entry, hash=entry.expected_hash())
        entries.append(last)
    return entries


def of_another_cluster(source: str, minutes: int, time_ms: int = BEGIN_MS, cluster: str = OTHER_CLUSTER) -> list[Entry]:
    """A chain of a node of another cluster, which signs with the same key: a head a minute, and events between."""
    chain, entries = Chain(source, KEY, (), cluster), list[Entry]()
    for second in range(60 * minutes):
        moment = time_ms + SECOND_MS * second
        entries.append(chain.event(b"{}", moment) if second % 60 else chain.head(moment))
    return [*entries, chain.head(time_ms + HEAD_MS * minutes)]


def long_killed(trail: Trail) -> None:
    """Make it the trail of three nodes of which the third was killed, and others went on for a quarter of an hour."""
    other = Trail()
    other.run(3 * HEAD_MS // 1000 + 20)
    other.run(15 * HEAD_MS // 1000, (0, 1))
    trail.entries = other.entries


# --- of the reviews ---------------------------------------------------------------------------------------------------


@tampering
def entries_off_the_end_of_a_chain_that_another_follows(trail: Trail) -> Told:
    take_out(trail, trail.of("2-1")[-10:])
    return {"2-1": "truncated"}


@tampering
def a_whole_start_dropped(trail: Trail) -> Told:
    take_out(trail, trail.of("1-1"))
    return {"1-2": "missing"}


@tampering
def old_entries_appended_again(trail: Trail) -> Told:
    trail.entries += [trail.entries[place] for place in trail.of("3-1")[10:30]]
    return {"3-1": "added"}


@tampering
def entries_renamed_into_the_chain_of_another(trail: Trail) -> Told:
    places = trail.of("2-2")[20:25]
    for place in places:
        trail.entries[place] = replace(trail.entries[place], source="1-2")
    return {"2-2": "dropped", "1-2": "flipped"}


@tampering
def two_minutes_exchanged(trail: Trail) -> Told:
    first, second = trail.of("3-1")[10:70], trail.of("3-1")[70:130]
    for one, other in zip(first, second, strict=True):
        trail.entries[one], trail.entries[other] = trail.entries[other], trail.entries[one]
    return {"3-1": "swapped"}


@tampering
def the_head_of_each_chain_cut_and_the_log_start_moved_by_one(trail: Trail) -> Told:
    take_out(trail, [place for source in ("1-1", "2-1", "3-1") for place in trail.of(source)[:40]])
    trail.log_start = 1
    return dict.fromkeys(("1-1", "2-1", "3-1"), "late")


@tampering
def all_signed_off(trail: Trail) -> Told:
    trail.entries = [replace(entry, signature=b"", key_id="") for entry in trail.entries]
    return dict.fromkeys(("1-1", "2-1", "3-1", "1-2", "2-2"), "unsigned")


@tampering
def a_chain_of_a_node_that_is_not_there(trail: Trail) -> Told:
    trail.entries += forged("9-1", 3)
    return {"9-1": UNSIGNED}


@tampering
def a_start_of_a_node_made_up(trail: Trail) -> Told:
    trail.entries += forged("1-777777", 3)
    return {"1-777777": UNSIGNED}


@tampering
def entries_behind_the_last_head_of_a_killed_node(trail: Trail) -> Told:
    place = trail.of("2-1")[-1]
    trail.entries[place + 1 : place + 1] = behind(trail.entries[place], 50)
    return {"2-1": "added"}


@tampering
def everything_rewritten_without_the_key(trail: Trail) -> Told:
    """Heads out, numbers and hashes new."""
    trail.entries = [entry for entry in trail.entries if entry.kind not in SIGNED]
    sources = ("1-1", "2-1", "3-1", "1-2", "2-2")
    for source in sources:
        hashed(trail, source)
    assert all(verdict.damage is None for verdict in trail.verdicts(()).values()), "without the key all hashes are good"
    return dict.fromkeys(sources, UNSIGNED)


@tampering
def one_record_in_the_name_of_a_living_chain_hides_no_other_damage(trail: Trail) -> Told:
    chain = Chain("3-1")
    trail.entries[200:200] = [chain.event(b"{}", BEGIN_MS)]
    place = trail.of("3-1")[300]
    trail.entries[place] = replace(trail.entries[place], value=b"{}")
    faults = [damage.fault for damage in trail.verdicts()["3-1"].damages]
    assert faults == [Fault.ADDED, Fault.FLIPPED]
    return {"3-1": "added"}


@tampering
def a_value_changed(trail: Trail) -> Told:
    place = trail.of("3-1")[100]
    trail.entries[place] = replace(trail.entries[place], value=b"{}")
    return {"3-1": "flipped"}


@tampering
def a_value_and_its_own_hash_changed(trail: Trail) -> Told:
    place = trail.of("3-1")[100]
    entry = replace(trail.entries[place], value=b"{}")
    trail.entries[place] = replace(entry, hash=entry.expected_hash())
    return {"3-1": "rewritten"}


@tampering
def an_entry_dropped(trail: Trail) -> Told:
    take_out(trail, [trail.of("3-1")[100]])
    return {"3-1": "dropped"}


@tampering
def all_hashes_from_a_place_on_computed_again(trail: Trail) -> Told:
    place = trail.of("3-1")[100]
    trail.entries[place] = replace(trail.entries[place], value=b"{}")
    hashed(trail, "3-1", 100)
    return {"3-1": "unsigned"}


@tampering
def the_last_head_of_a_killed_node_moved_to_the_end(trail: Trail) -> Told:
    """No hash covers the order of records: as if the node had just added that head, with entries behind it."""
    long_killed(trail)
    head = trail.entries[trail.heads_of("3-1")[-1]]
    take_out(trail, trail.of("3-1")[head.sequence :])
    trail.entries += [head, *behind(head, 50)]
    return {"3-1": UNSIGNED}


@tampering
def all_of_the_chain_of_a_killed_node_moved_to_the_end(trail: Trail) -> Told:
    """As if its clock was behind."""
    long_killed(trail)
    chain = [trail.entries[place] for place in trail.of("3-1")]
    take_out(trail, trail.of("3-1"))
    for count, entry in enumerate(reversed(chain), 1):
        trail.entries.insert(len(trail.entries) - 2 * count, entry)
    trail.entries += behind(trail.entries[trail.of("3-1")[-1]], 5)
    return {"3-1": UNSIGNED}


@tampering
def the_beginning_of_one_chain_cut_and_the_log_start_moved_by_as_much(trail: Trail) -> Told:
    """By records of the forger's, which are deleted then; the other chains are whole."""
    take_out(trail, trail.of("3-1")[:100])
    trail.log_start = 100
    return {"3-1": "late"}


@tampering
def the_beginning_of_one_chain_cut_and_what_follows_moved_to_the_log_start(trail: Trail) -> Told:
    places = trail.of("3-1")
    moved = [trail.entries[place] for place in places[100:150]]
    take_out(trail, places[:150])
    trail.entries[:0] = moved
    trail.log_start = 100
    return {"3-1": "late"}


# --- of another cluster -----------------------------------------------------------------------------------------------


@tampering
def a_chain_of_another_cluster_with_the_same_key_put_in(trail: Trail) -> Told:
    trail.entries[100:100] = of_another_cluster("9-1", 3)
    return {"9-1": "foreign"}


@tampering
def a_chain_of_the_node_with_the_same_id_of_another_cluster_put_in(trail: Trail) -> Told:
    """Between two starts of that node. The one behind names the one before, and both stay sound."""
    begin = trail.of("1-2")[0]
    trail.entries[begin:begin] = of_another_cluster("1-15", 2, trail.entries[begin].time_ms)
    return {"1-15": "foreign"}


@tampering
def a_chain_of_another_cluster_that_goes_on_for_long(trail: Trail) -> Told:
    """Its heads, an hour after those of this cluster, make no node of this one late."""
    trail.entries += of_another_cluster("9-1", 60, trail.entries[-1].time_ms)
    return {"9-1": "foreign"}


@tampering
def a_chain_of_another_cluster_before_the_first_one_that_retention_has_left_of_a_node(trail: Trail) -> Told:
    """That names one which is deleted; it stays the node's first."""
    trail.forget(trail.of("1-2")[0])
    trail.entries[:0] = of_another_cluster("1-15", 2, trail.entries[0].time_ms)
    return {"1-15": "foreign"}


@tampering
def a_chain_of_another_cluster_renamed_to_this_one(trail: Trail) -> Told:
    chain = of_another_cluster("9-1", 1)
    chain[0] = replace(chain[0], value=chain[0].value.replace(OTHER_CLUSTER.encode(), CLUSTER.encode()))
    trail.entries += chain
    return {"9-1": "flipped"}


@tampering
def a_chain_of_another_cluster_renamed_to_this_one_with_good_hashes(trail: Trail) -> Told:
    chain = of_another_cluster("9-1", 1)
    renamed = [replace(entry, value=entry.value.replace(OTHER_CLUSTER.encode(), CLUSTER.encode())) for entry in chain]
    trail.entries += renamed
    hashed(trail, "9-1")
    return {"9-1": "unsigned"}


@tampering
def the_name_of_the_cluster_taken_off_the_heads_of_another(trail: Trail) -> Told:
    """As if an older node had written them."""
    chain = of_another_cluster("9-1", 1)
    trail.entries += [replace(entry, value=b"" if entry.signature else entry.value) for entry in chain]
    hashed(trail, "9-1")
    return {"9-1": "unsigned"}


# --- others -----------------------------------------------------------------------------------------------------------


@tampering
def a_tail_rewritten_that_is_older_than_two_intervals(trail: Trail) -> Told:
    """The last three heads of a running node are turned into losses of nothing, with good hashes."""
    first = trail.of("3-1").index(trail.heads_of("3-1")[-3])
    for place in trail.heads_of("3-1")[-3:]:
        trail.entries[place] = replace(trail.entries[place], kind=Kind.EVENT, value=b"{}", signature=b"", key_id="")
    hashed(trail, "3-1", first)
    return {"3-1": UNSIGNED}


@tampering
def a_tail_whose_times_are_those_of_its_last_head(trail: Trail) -> Told:
    """Times are what the forger likes: the heads of the other nodes show how long the tail waits."""
    head = trail.heads_of("3-1")[-4]
    take_out(trail, [place for place in trail.of("3-1") if place > head])
    trail.entries += behind(trail.entries[head], 5)
    return {"3-1": UNSIGNED}


@tampering
def a_chain_that_ends_before_it_was_stopped(trail: Trail) -> Told:
    """Cut right behind a head, so that nothing of the chain itself is left unproved."""
    take_out(trail, [place for place in trail.of("1-1") if place > trail.heads_of("1-1")[-2]])
    return {"1-1": "truncated"}


@tampering
def the_first_head_made_to_name_nothing(trail: Trail) -> Told:
    """So that the start before could be dropped."""
    take_out(trail, trail.of("1-1"))
    place = trail.of("1-2")[0]
    trail.entries[place] = replace(trail.entries[place], value=b"")
    return {"1-2": "flipped"}


@tampering
def the_first_head_made_to_name_nothing_with_good_hashes(trail: Trail) -> Told:
    take_out(trail, trail.of("1-1"))
    place = trail.of("1-2")[0]
    trail.entries[place] = replace(trail.entries[place], value=b"")
    hashed(trail, "1-2")
    return {"1-2": "unsigned"}


@tampering
def the_first_minute_of_a_start_cut(trail: Trail) -> Told:
    """Its first head with the name of the start before is gone too."""
    take_out(trail, trail.of("1-2")[:62])
    return {"1-2": "dropped"}


@tampering
def heads_of_one_chain_given_to_another(trail: Trail) -> Told:
    """Good signatures, of good hashes of something else."""
    for one, other in zip(trail.heads_of("3-1")[1:3], trail.heads_of("2-1")[1:3], strict=True):
        there = trail.entries[other]
        trail.entries[one] = replace(trail.entries[one], signature=there.signature)
    return {"3-1": "unsigned"}


@tampering
def an_older_head_signed_by_a_key_of_the_forger_under_its_own_id(trail: Trail) -> Told:
    mine = HmacKey(b"m" * 32)
    for place in trail.heads_of("3-1"):
        entry = trail.entries[place]
        trail.entries[place] = replace(entry, signature=mine.sign(entry.hash), key_id=mine.id)
    return {"3-1": UNSIGNED}


@tampering
def a_head_signed_by_a_key_of_the_forger_under_the_id_of_the_node(trail: Trail) -> Told:
    place = trail.heads_of("3-1")[2]
    entry = trail.entries[place]
    trail.entries[place] = replace(entry, signature=HmacKey(b"m" * 32).sign(entry.hash))
    return {"3-1": "unsigned"}


@tampering
def entries_behind_the_end_of_a_stopped_node(trail: Trail) -> Told:
    place = trail.of("1-1")[-1]
    trail.entries[place + 1 : place + 1] = behind(trail.entries[place], 1)
    return {"1-1": "added"}


@tampering
def an_event_made_a_loss(trail: Trail) -> Told:
    place = trail.of("3-1")[100]
    trail.entries[place] = replace(trail.entries[place], kind=Kind.LOSS, value=b"", lost=1)
    return {"3-1": "flipped"}


@tampering
def a_topic_made_again_and_gone_on_with(trail: Trail) -> Told:
    """All that was there is gone; the offsets begin at 0."""
    trail.entries = trail.entries[400:]
    return {"1-1": "dropped", "2-1": "dropped", "3-1": "dropped"}


@tampering
def a_topic_made_again_while_a_node_was_down(trail: Trail) -> Told:
    """Nothing is missing in the chain that begins then, except for the one that it names."""
    begin = trail.of("1-2")[0]
    trail.entries = [entry for entry in trail.entries[begin:] if entry.source == "1-2"]
    return {"1-2": "missing"}


@tampering
def a_chain_cut_at_its_head_long_behind_the_log_start(trail: Trail) -> Told:
    """As many records as that are before the log start; but chains of that time have gone on for minutes without it."""
    trail.forget(30)
    places = trail.of("3-1")
    take_out(trail, [place for place in places if place < places[-100]])
    trail.log_start = 10_000
    return {"3-1": "late"}


@tampering
def a_start_made_up_between_two(trail: Trail) -> Told:
    begin = trail.of("1-2")[0]
    trail.entries[begin:begin] = forged("1-15", 4, trail.entries[begin].time_ms)
    return {"1-15": "unnamed"}


@tampering
def the_kinds_of_two_chains_interleaved_in_one_name(trail: Trail) -> Told:
    """The second start of a node written under the name of the first."""
    for place in trail.of("1-2"):
        trail.entries[place] = replace(trail.entries[place], source="1-1")
    return {"1-1": "flipped"}


@pytest.mark.parametrize("tamper", TAMPERINGS, ids=lambda tamper: tamper.__name__)
def test_a_tampering_shows_in_the_chain_it_was_done_to_and_in_no_other(tamper: Tampering) -> None:
    trail = long_trail()
    assert told(trail) == {}
    expected = tamper(trail)
    assert told(trail) == expected


# --- what is no tampering ---------------------------------------------------------------------------------------------


def test_what_lacks_on_both_sides_of_a_late_entry_may_come_late_too() -> None:
    trail = Trail()
    trail.run(70)
    third, *between, _ = trail.of("3-1")[2:7]
    moved = [trail.entries[place] for place in (between[1], between[0], between[2])]
    take_out(trail, between)
    rest = next(
        place for place in trail.of("3-1") if trail.entries[place].sequence == trail.entries[third].sequence + 6
    )
    trail.entries[rest:rest] = moved
    (verdict,) = (found for source, found in trail.verdicts().items() if source == "3-1")
    assert {damage.fault.value for damage in verdict.damages} == {"swapped"}


def test_a_trail_is_sound_at_any_moment() -> None:
    """Also between two heads, while a node is down, and where its batch was not the last word."""
    trail = long_trail()
    whole = trail.entries
    for count in range(1, len(whole), 37):
        trail.entries = whole[:count]
        states = {source: verdict.state for source, verdict in trail.verdicts().items()}
        # A killed node's tail is proved by its next start; until then nothing vouches for it.
        assert set(states) - {"2-1"} == {source for source, state in states.items() if state is State.SOUND} - {"2-1"}
        assert states.get("2-1") is not State.DAMAGED


def test_the_tail_of_a_killed_node_waits_for_its_next_start() -> None:
    trail = Trail()
    trail.run(90)
    trail.kill(1)
    tail = len(trail.of("2-1")) - 1 - trail.of("2-1").index(trail.heads_of("2-1")[-1])
    assert tail > 0
    assert trail.verdicts()["2-1"].tail == tail
    trail.run(5 * HEAD_MS // 1000, (0, 2))
    assert told(trail) == {"2-1": UNSIGNED}
    trail.run(1)
    assert told(trail) == {}
    assert trail.verdicts()["2-1"].tail == 0


@pytest.mark.parametrize("count", [1, 2, 3, 100, 500, 700, 900, 1300])
def test_retention_is_no_tampering(count: int) -> None:
    trail = long_trail()
    trail.forget(count)
    assert told(trail) == {}


@pytest.mark.parametrize("ahead_s", [-240, -30, 30, 240])
@pytest.mark.parametrize("count", [0, 100, 300, 900])
def test_a_clock_that_is_ahead_or_behind_is_no_tampering(ahead_s: int, count: int) -> None:
    """Nor is a node of which nothing but its heads is told; one is killed, and away for minutes."""
    trail = Trail()
    trail.nodes[1].ahead_ms = 1_000 * ahead_s
    trail.nodes[2].is_quiet = True
    trail.run(37, (0,))
    trail.run(90, (0, 1))
    trail.run(3 * HEAD_MS // 1000)
    trail.kill(1)
    trail.run(4 * HEAD_MS // 1000, (0, 2))
    trail.run(HEAD_MS // 1000 + 20)
    trail.forget(count)
    assert told(trail) == {}


def test_clocks_that_are_set_by_seconds_are_no_tampering() -> None:
    trail = Trail()
    for step in range(8):
        trail.nodes[step % 3].ahead_ms += (-9, 9, 5)[step // 3] * 1_000
        trail.run(47)
        before = trail.entries
        trail.entries, trail.log_start = before[100 * step :], 100 * step
        assert told(trail) == {}
        trail.entries, trail.log_start = before, 0


@pytest.mark.parametrize("was_taken", [False, True])
def test_a_batch_without_an_answer_is_neither_missing_nor_too_much(was_taken: bool) -> None:
    """A node that is killed does not know whether the topic took its last batch, and says so in its next chain."""
    trail = Trail()
    trail.run(5)
    node = trail.nodes[0]
    before = node.ends
    assert node.journal is not None
    node.journal.window.denied("User:eve", "::1", "READ", "topic", "last")
    entries = node.write(trail.now_ms)
    (taken,) = node.ends
    node.ends = (*before, taken._replace(is_certain=False))
    trail.entries += entries if was_taken else []
    trail.kill(0)
    trail.run(5)
    assert told(trail) == {}
    assert trail.verdicts()["1-1"].tail == 0, "the next chain vouches for it"


def test_starts_whose_first_batch_was_not_taken_break_nothing() -> None:
    trail = Trail()
    trail.run(5)
    for _ in range(20):
        trail.kill(0)
        node = trail.nodes[0]
        node.start(trail.now_ms)
        before = node.ends
        (sent,) = (node.write(trail.now_ms), node.ends)[1]
        node.ends = (*before[-8:], sent._replace(is_certain=False)) if len(before) < 9 else (
            before[0], *before[2:], sent._replace(is_certain=False)
        )  # fmt: skip
    trail.kill(0)
    trail.run(5)
    assert told(trail) == {}
    take_out(trail, trail.of("1-1"))
    assert told(trail) == {"1-22": "missing"}


def test_a_node_with_an_empty_disk_names_nothing_and_that_is_no_damage() -> None:
    trail = Trail()
    trail.run(70)
    trail.stop(0)
    trail.nodes[0] = Node(1, starts=10)
    trail.run(70)
    assert told(trail) == {}


def test_a_start_without_an_answer_behind_an_empty_disk_does_not_hide_what_was_lost() -> None:
    """As where a disk was full when an end was to be written down, and the node died twice then."""
    trail = Trail()
    trail.run(70)
    trail.kill(0)
    node = trail.nodes[0] = Node(1, starts=10)
    node.start(trail.now_ms)
    node.write(trail.now_ms)
    (sent,) = node.ends
    node.ends = (sent._replace(is_certain=False),)
    trail.kill(0)
    trail.run(70)
    assert told(trail) == {}


def test_keys_that_were_changed_are_given_together() -> None:
    trail = Trail()
    trail.run(70)
    newer = HmacKey(b"n" * 32)
    for place in range(3):
        trail.stop(place)
        trail.nodes[place].key = newer
    trail.run(70)
    assert {verdict.state for verdict in trail.verdicts((newer, KEY)).values()} == {State.SOUND}
    by_newer = trail.verdicts((newer,))
    # What ended before the change is named by what began behind it, and so proved by its key.
    assert {source: (found.state, found.tail) for source, found in by_newer.items() if source.endswith("-1")} == {
        f"{node}-1": (State.SOUND, 0) for node in (1, 2, 3)
    }
    by_older = trail.verdicts((KEY,))
    assert {found.state for source, found in by_older.items() if source.endswith("-2")} == {State.UNSIGNED}
    assert by_older["1-2"].unknown_keys == [newer.id]


def test_what_is_kept_of_a_chain_does_not_grow_with_it() -> None:
    """Nor with its damages: of those a bounded number is told one by one."""
    check, chain = TrailCheck((KEY,)), Chain("1-1", KEY)
    for count in range(3_000):
        entry = chain.event(b"{}", BEGIN_MS)
        check.add(0, 0, replace(entry, value=b"[]") if count % 2 else entry)
    verdict = check.verdicts()["1-1"]
    assert (len(verdict.damages), verdict.damages_total) == (50, 1_500)


def test_a_trail_of_too_many_chains_is_refused() -> None:
    check = TrailCheck()
    with pytest.raises(TooManyChainsError, match="more than 20000 chains"):
        for number in range(CHAINS_MAX + 1):
            check.add(0, 0, Chain(f"1-{number}").head(BEGIN_MS))
