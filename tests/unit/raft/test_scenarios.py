"""Every scenario of tests/scripts/raft: what is done to a quorum, and below each line what the nodes make of it.

`pytest tests/unit/raft --rewrite` writes what happened into the files; read the diff before you commit it.

    nodes 1 2 3                      voters; they start when time first runs. `kraft 0` before it: by configuration
    autojoin                         nodes that start from here on ask for a vote by themselves
    observer 4 [port=9104]           a controller without a vote, which knows where the others are
    bootstrap 1 2                    nodes that start from here on know where these are now, whatever their logs say
    run 100ms                        let time pass, and show what the nodes note
    quiet 100ms                      the same, showing nothing
    append 1 a b                     the controller of a leader writes one batch; `leader`: of whoever leads
    crash 1 [keeps=5]                kill -9; of the tail that was not synced stays what is below an offset
    forget 1 3                       while it is down: its disk loses what it had synced from an offset on
    start 1 [port=9104] [disk=empty] start it again, perhaps elsewhere or with nothing
    isolate 1 | heal                 cut it off without a word, and join all again
    pause 1 | resume 1               SIGSTOP and SIGCONT
    piecemeal                        nodes that start from here on fetch a batch at a time
    disk 20ms                        how long a sync takes from here on
    lost 3                           its connection to the leader dies
    resign 1                         a clean stop begins
    snapshot 1 | trim 1 3            write one at the high watermark; drop the log below an offset
    add 4 via=1 | remove 3 via=1     ask a node to change the voters
    vote on=1 from=2 epoch=5 ...     a request by hand: cluster= epoch= last=EPOCH/OFFSET pre directory= voter=
    fetch on=1 from=2 at=3/1 epoch=2 likewise: offset/epoch of its log's end, cluster= watermark=
    status                           role, epoch, log end and high watermark of each
    describe 1                       what a leader says in DescribeQuorum, with times as milliseconds ago
    log 1                            offset/epoch/what of each record
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.core.raft.settings import Settings
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_raft_voter_request import AddRaftVoterRequest, Listener
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kavka_broker.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kavka_broker.protocol.messages.vote_request import PartitionData, TopicData, VoteRequest
from kavka_broker.protocol.uuids import ONE, ZERO
from tests.unit.raft.world import CLUSTER, World, directory_of, voter

SCRIPTS = Path(__file__).parents[2] / "scripts" / "raft"


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_scenario_of_the_quorum_goes_as_it_is_written(path: Path, request: pytest.FixtureRequest) -> None:
    written = path.read_text()
    happened = play(written)
    if request.config.getoption("--rewrite"):
        path.write_text(happened)
    assert happened == written


def play(script: str) -> str:
    """The script with what happened below each line."""
    stage, shown = Stage(), []
    for line in script.splitlines():
        if line.startswith("    "):
            continue
        shown.append(line)
        if line and line[0] != "#":
            shown += ["    " + outcome for outcome in stage.play(line)]
    return "\n".join(shown) + "\n"


class Stage:
    """A world, and the verbs that move it."""

    def __init__(self) -> None:
        self.world = World(settings=Settings())
        self.voters: list[int] = []
        self.answers: list[str] = []

    def play(self, line: str) -> list[str]:
        verb, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        seen = len(self.world.trace)
        play: Callable[[list[str], dict[str, str]], list[str] | None] = getattr(self, f"play_{verb}")
        outcomes = play(names, options) or []
        traced = [] if verb == "quiet" else self.world.trace[seen:]
        return traced + outcomes

    # --- nodes -------------------------------------------------------------------------------------------------------

    def play_kraft(self, names: list[str], options: dict[str, str]) -> None:
        self.world.kraft_version = int(names[0])

    def play_autojoin(self, names: list[str], options: dict[str, str]) -> None:
        self.world.settings = replace(self.world.settings, auto_join=True)

    def play_nodes(self, names: list[str], options: dict[str, str]) -> None:
        self.voters = [int(name) for name in names]
        for node_id in self.voters:
            self.world.add(node_id, [voter(one) for one in self.voters])
        for process in [*self.world.processes.values()]:
            process.start()

    def play_observer(self, names: list[str], options: dict[str, str]) -> None:
        self.world.add(int(names[0]), [], port=port_of(options)).start()

    def play_bootstrap(self, names: list[str], options: dict[str, str]) -> None:
        endpoints = [self.world.processes[int(name)].identity.endpoints[0] for name in names]
        servers = tuple((host, port) for _, host, port in endpoints)
        self.world.settings = replace(self.world.settings, bootstrap_servers=servers)

    def play_crash(self, names: list[str], options: dict[str, str]) -> None:
        self.world.crash(int(names[0]), int(options["keeps"]) if "keeps" in options else None)

    def play_forget(self, names: list[str], options: dict[str, str]) -> None:
        log = self.world.processes[int(names[0])].log
        log.promised_offset = log.synced_offset
        log.truncate(int(names[1]))

    def play_start(self, names: list[str], options: dict[str, str]) -> None:
        process = self.world.processes[int(names[0])]
        if options:
            here = voter(process.node_id, port_of(options))
            fresh = self.world.add(process.node_id, process.genesis.voters)
            fresh.identity = type(fresh.identity)(
                process.node_id,
                b"\xee" * 16 if options.get("disk") == "empty" else here.directory_id,
                CLUSTER,
                endpoints=here.endpoints,
            )
            if "disk" not in options:
                fresh.log, fresh.state = process.log, process.state
            process = fresh
        process.start()

    def play_isolate(self, names: list[str], options: dict[str, str]) -> None:
        for name in names:
            self.world.isolate(int(name))

    def play_heal(self, names: list[str], options: dict[str, str]) -> None:
        self.world.cut.clear()

    def play_pause(self, names: list[str], options: dict[str, str]) -> None:
        self.world.processes[int(names[0])].is_paused = True

    def play_resume(self, names: list[str], options: dict[str, str]) -> None:
        self.world.processes[int(names[0])].resume()

    def play_piecemeal(self, names: list[str], options: dict[str, str]) -> None:
        self.world.settings = replace(self.world.settings, fetch_bytes_max=1)

    def play_disk(self, names: list[str], options: dict[str, str]) -> None:
        self.world.sync_ms = int(names[0].removesuffix("ms"))

    # --- what happens ------------------------------------------------------------------------------------------------

    def play_run(self, names: list[str], options: dict[str, str]) -> list[str]:
        self.world.run(int(names[0].removesuffix("ms")))
        answers, self.answers = self.answers, []
        return answers

    play_quiet = play_run

    def play_append(self, names: list[str], options: dict[str, str]) -> None:
        leader = self.world.leader()
        process = leader if names[0] == "leader" else self.world.processes[int(names[0])]
        assert process is not None, "nobody leads"
        process.append(*names[1:])

    def play_lost(self, names: list[str], options: dict[str, str]) -> None:
        self.world.processes[int(names[0])].handle(lambda node: node.leader_lost(self.world.now_ms))

    def play_resign(self, names: list[str], options: dict[str, str]) -> None:
        self.world.processes[int(names[0])].handle(lambda node: node.resign(self.world.now_ms))

    def play_snapshot(self, names: list[str], options: dict[str, str]) -> list[str]:
        snapshot = self.world.processes[int(names[0])].snapshot()
        return [f"{names[0]} has {snapshot.end_offset}-{snapshot.epoch}"]

    def play_trim(self, names: list[str], options: dict[str, str]) -> None:
        self.world.processes[int(names[0])].log.trim(int(names[1]))

    # --- requests by hand --------------------------------------------------------------------------------------------

    def play_add(self, names: list[str], options: dict[str, str]) -> None:
        process = self.world.processes[int(names[0])]
        identity = process.identity
        listeners = [Listener(*endpoint) for endpoint in identity.endpoints]
        request = AddRaftVoterRequest(CLUSTER, 5_000, identity.node_id, identity.directory_id, listeners)
        self._ask(options, "add_voter", request, lambda answer: f"add {names[0]}: {refusal(answer)}")

    def play_remove(self, names: list[str], options: dict[str, str]) -> None:
        directory_id = directory_of(int(options.get("directory", names[0])))
        request = RemoveRaftVoterRequest(CLUSTER, int(names[0]), directory_id)
        self._ask(options, "remove_voter", request, lambda answer: f"remove {names[0]}: {refusal(answer)}")

    def play_vote(self, names: list[str], options: dict[str, str]) -> list[str]:
        last_epoch, _, last_offset = options.get("last", "0/0").partition("/")
        partition = PartitionData(
            replica_epoch=int(options["epoch"]),
            replica_id=int(options["from"]),
            replica_directory_id=directory_of(int(options["from"])),
            voter_directory_id=directory_of(int(options["directory"])) if "directory" in options else ZERO,
            last_offset_epoch=int(last_epoch),
            last_offset=int(last_offset),
            pre_vote="pre" in names,
        )
        topics = [TopicData("__cluster_metadata", [partition])]
        request = VoteRequest(options.get("cluster", CLUSTER), int(options.get("voter", options["on"])), topics)

        def words(answer: Any) -> str:
            if answer.error_code:
                return error_name(answer.error_code)
            told = answer.topics[0].partitions[0]
            granted = "granted" if told.vote_granted else "refused"
            return f"{granted} epoch={told.leader_epoch} leader={told.leader_id} {error_name(told.error_code)}"

        self._ask({"via": options["on"]}, "vote", request, words)
        return self.play_run(["0ms"], {})

    def play_fetch(self, names: list[str], options: dict[str, str]) -> list[str]:
        offset, _, epoch = options["at"].partition("/")
        partition = FetchPartition(
            current_leader_epoch=int(options["epoch"]),
            fetch_offset=int(offset),
            last_fetched_epoch=int(epoch),
            replica_directory_id=directory_of(int(options["from"])),
            high_watermark=int(options.get("watermark", 1 << 62)),
        )
        request = FetchRequest(
            options.get("cluster", CLUSTER),
            replica_state=ReplicaState(int(options["from"])),
            max_wait_ms=int(options.get("wait", "0ms").removesuffix("ms")),
            topics=[FetchTopic(topic_id=ONE, partitions=[partition])],
        )
        self._ask({"via": options["on"]}, "fetch", request, fetched_words)
        return self.play_run(["0ms"], {})

    def _ask(self, options: dict[str, str], method: str, request: Any, words: Callable[[Any], str]) -> None:
        process = self.world.processes[int(options["via"])]
        node = process.node
        assert node is not None, f"{process.node_id} is down"
        response, effects = getattr(node, method)(request, self.world.now_ms)

        def reply(answer: Message) -> None:
            self.answers.append(words(answer))

        process.take(response, effects, reply)

    # --- what is there -----------------------------------------------------------------------------------------------

    def play_status(self, names: list[str], options: dict[str, str]) -> list[str]:
        lines = []
        for node_id, process in sorted(self.world.processes.items()):
            node = process.node
            if node is None:
                lines.append(f"{node_id} down")
                continue
            voters = ",".join(str(one.node_id) for one in node.voters)
            lines.append(
                f"{node_id} {node.role:<11} epoch={node.epoch} leader={node.leader_id} "
                f"end={process.log.end_offset} committed={node.high_watermark} voters={voters}"
            )
        return lines

    def play_describe(self, names: list[str], options: dict[str, str]) -> list[str]:
        node, now_ms = self.world.processes[int(names[0])].node, self.world.now_ms
        assert node is not None, f"{names[0]} is down"

        def ago(time_ms: int) -> str:
            return "never" if time_ms < 0 else f"{now_ms - time_ms}ms"

        return [f"high watermark {node.told_high_watermark}"] + [
            f"{kind} {replica.node_id} end={replica.end_offset} "
            f"fetched={ago(replica.fetched_ms)} caught_up={ago(replica.caught_up_ms)}"
            for kind, replicas in zip(("voter", "observer"), node.replicas(now_ms), strict=True)
            for replica in replicas
        ]

    def play_log(self, names: list[str], options: dict[str, str]) -> list[str]:
        log = self.world.processes[int(names[0])].log
        records = [f"{offset}/{epoch}/{name}" for offset, epoch, name in log.records()]
        snapshots = [f"snapshot {snapshot.end_offset}-{snapshot.epoch}" for snapshot in log.snapshots]
        return [" ".join([*snapshots, f"from {log.start_offset}:", *records])]


def port_of(options: dict[str, str]) -> int | None:
    return int(options["port"]) if "port" in options else None


def error_name(code: int) -> str:
    return "" if code == 0 else ErrorCode(code).name


def refusal(answer: Any) -> str:
    return f"{ErrorCode(answer.error_code).name} {answer.error_message or ''}".strip()


def fetched_words(answer: Any) -> str:
    if answer.error_code:
        return error_name(answer.error_code)
    told = answer.responses[0].partitions[0]
    words = [error_name(told.error_code)] if told.error_code else []
    if told.diverging_epoch.epoch >= 0:
        words.append(f"diverges: epoch {told.diverging_epoch.epoch} ends at {told.diverging_epoch.end_offset}")
    if told.snapshot_id.epoch >= 0:
        words.append(f"take snapshot {told.snapshot_id.end_offset}-{told.snapshot_id.epoch}")
    words.append(f"{len(told.records)} bytes" if len(told.records) else "nothing")
    leader = told.current_leader
    return f"{' '.join(words)} watermark={told.high_watermark} leader={leader.leader_id} epoch={leader.leader_epoch}"
