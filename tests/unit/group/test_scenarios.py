"""Every scenario of tests/scripts/group: text that a person can read, with what came of each line beside it.

`pytest tests/unit/group --rewrite` writes what happened into the files; read the diff before you commit it.

    settings delay=3s max=2          the broker's settings
    join A v=4 instance=i protocols=range:m,sticky session=10s rebalance=60s fresh id=B
    sync A A=0,1 B=2                 a leader's assignments; a follower gives none
    heartbeat A | leave A | leave instance=i | commit A | commit nobody
    advance 3s
    disk works|fails|holds           what becomes of writes to the log
    restart                          the broker dies; the next one reads the log
    group                            what it is like
"""

from pathlib import Path
from typing import Any

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from tests.unit.group.world import Request, World, milliseconds

SCRIPTS = Path(__file__).parents[2] / "scripts" / "group"
COLUMN = 44

SETTINGS = {
    "delay": "initial_rebalance_delay_ms",
    "max": "members_max",
    "session_min": "session_timeout_min_ms",
    "session_max": "session_timeout_max_ms",
}


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_scenario_of_groups_goes_as_it_is_written(path: Path, request: pytest.FixtureRequest) -> None:
    written = path.read_text()
    happened = play(written)
    if request.config.getoption("--rewrite"):
        path.write_text(happened)
    assert happened == written


def play(script: str) -> str:
    """The script with what happened behind each line."""
    world = World()
    lines = [line if not line or line[0] == "#" else play_line(world, line) for line in script.splitlines()]
    return "\n".join(lines) + "\n"


def play_line(world: World, line: str) -> str:
    command = line.partition("->")[0].strip()
    verb, *words = command.split()
    seen = len(world.answers)
    outcomes = PLAYERS[verb](world, words)
    outcomes += [describe(world, *answer) for answer in world.answers[seen:]]
    return command if not outcomes else f"{command:{COLUMN - 1}} -> {'; '.join(outcomes)}"


def options_of(words: list[str]) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def settings(world: World, words: list[str]) -> list[str]:
    for name, value in options_of(words).items():
        world.change_settings(**{SETTINGS[name]: milliseconds(value) if value.endswith("s") else int(value)})
    return []


def join(world: World, words: list[str]) -> list[str]:
    world.join(words[0], **options_of(words[1:]))
    return waits(world, words[0])


def sync(world: World, words: list[str]) -> list[str]:
    options = options_of(words[1:])
    special = {name: options.pop(name) for name in ("generation", "type", "protocol") if name in options}
    world.sync(words[0], options, **special)
    return waits(world, words[0])


def waits(world: World, name: str) -> list[str]:
    return [f"{name} waits"] if any(request.client == name for request in world.waiting) else []


def heartbeat(world: World, words: list[str]) -> list[str]:
    return [world.heartbeat(words[0], **options_of(words[1:])).name]


def leave(world: World, words: list[str]) -> list[str]:
    options = options_of(words)
    if "instance" in options:
        return [world.leave("", options["instance"]).name]
    client = world.clients[words[0]]
    return [world.leave(client.member_id, client.options.get("instance")).name]


def commit(world: World, words: list[str]) -> list[str]:
    if words[0] == "nobody":
        return [world.commit("", -1).name]
    client = world.clients[words[0]]
    generation = int(options_of(words[1:]).get("generation", client.generation))
    return [world.commit(client.member_id, generation, client.options.get("instance")).name]


def advance(world: World, words: list[str]) -> list[str]:
    world.advance(milliseconds(words[0]))
    return []


def disk(world: World, words: list[str]) -> list[str]:
    world.set_disk(words[0])
    return []


def restart(world: World, _words: list[str]) -> list[str]:
    world.restart()
    return []


def bury(world: World, _words: list[str]) -> list[str]:
    world.bury()
    return []


def group(world: World, _words: list[str]) -> list[str]:
    group = world.group
    parts = [f"{group.state.value} generation {group.generation}"]
    if group.members:
        parts.append("members " + ",".join(world.name(member_id) for member_id in group.members))
        parts.append(f"leader {world.name(group.leader_id or '?')}")
    if group.protocol_name:
        parts.append(f"protocol {group.protocol_name}")
    return [" ".join(parts)]


def describe(world: World, request: Request, response: Any) -> str:
    if response.error_code:
        return f"{request.client} {request.kind}: {ErrorCode(response.error_code).name}"
    if not isinstance(response, JoinGroupResponse):
        return f"{request.client} has {response.assignment.decode() or 'nothing'}"
    words = [f"{request.client} joins {response.generation_id}"]
    if response.leader == response.member_id:
        words.append("as leader")
    if response.skip_assignment:
        words.append("skipping assignment")
    if response.members:
        members = [
            world.name(member.member_id) + (f"({member.metadata.decode()})" if member.metadata else "")
            for member in response.members
        ]
        words.append(f"of {','.join(members)}")
    words.append(f"by {response.protocol_name}")
    return " ".join(words)


PLAYERS = {
    "settings": settings,
    "join": join,
    "sync": sync,
    "heartbeat": heartbeat,
    "leave": leave,
    "commit": commit,
    "advance": advance,
    "disk": disk,
    "restart": restart,
    "bury": bury,
    "group": group,
}
