"""A walk through a made-up house of three rooms, and one through a real node."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from tests.support.in_process import running
from tests.walks import HOUSE, REPETITIONS, walk_of, walked

CALLS_MAX = 1_000

ROOMS = {
    "/house/hall.py": "def enter(rooms):\n    rooms['look'](rooms)\n    rooms['cook'](rooms)",
    "/house/net/window.py": "def look(rooms):\n    shut()\ndef shut():\n    pass",
    "/house/kitchen.py": "def cook(rooms):\n    rooms['shut']()\n    len(rooms)",
}


def built() -> dict[str, Callable[..., Any]]:
    rooms: dict[str, Any] = {}
    for path, source in ROOMS.items():
        exec(compile(source, path, "exec"), rooms)
    return rooms


def test_a_move_is_a_next_call_in_another_file() -> None:
    rooms = built()
    with walked("/house/") as walk:
        rooms["enter"](rooms)
    assert walk.calls == 5
    assert walk.files == set(ROOMS)
    assert walk.packages == {"hall.py", "net", "kitchen.py"}
    # hall > window, (back to the hall) > kitchen, kitchen > window
    assert (walk.moves, walk.returns) == (3, 1)


def test_nothing_outside_of_the_house_counts() -> None:
    with walked("/elsewhere/") as walk:
        built()["shut"]()
    assert (walk.calls, walk.files, walk.moves) == (0, set(), 0)


async def walk_twice(directory: Path) -> None:
    async with running(directory) as inside:
        walks = [await walk_of(inside, ApiVersionsRequest("walks", "1"), 4) for _ in range(2)]
        while min(walk.calls for walk in walks) >= CALLS_MAX and len(walks) < REPETITIONS:  # timers walk along
            walks.append(await walk_of(inside, ApiVersionsRequest("walks", "1"), 4))
        for walk in walks:
            assert f"{HOUSE}api/a18_api_versions.py" in walk.files
            assert {"net", "api", "protocol"} <= walk.packages
        assert 10 < min(walk.calls for walk in walks) < CALLS_MAX


def test_a_request_of_a_node_is_followed_to_its_handler(tmp_path: Path) -> None:
    asyncio.run(walk_twice(tmp_path))
