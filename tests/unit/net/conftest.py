"""What is said of connections holds on both loops that a broker may run on."""

from functools import partial

import pytest

from kavka_broker.runtime.event_loop import new_event_loop


@pytest.fixture(params=["asyncio", "uvloop"], autouse=True)
def event_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `asyncio.run` make this loop."""
    if request.param != "asyncio":
        monkeypatch.setattr("asyncio.events.new_event_loop", partial(new_event_loop, request.param))
