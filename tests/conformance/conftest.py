"""One broker for all conformance tests, and names that no other test uses."""

import itertools
from collections.abc import Callable, Generator, Iterator

import pytest

from tests.support.servers import Server, start_server

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker that every test shares; it must serve the last as it served the first."""
    running = start_server(tmp_path_factory.mktemp("broker"))
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for the topic or group of one test."""
    function = request.function.__name__.removeprefix("test_").replace("_", "-")
    return f"{function[:60]}-{next(_numbers)}"


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Start brokers of a test's own, with settings; all are ended with it."""
    started: list[Server] = []

    def starter(**settings: str) -> Server:
        own = {key.replace("_", "."): value for key, value in settings.items()}
        started.append(start_server(tmp_path_factory.mktemp("broker"), own))
        return started[-1]

    yield starter
    for server in started:
        server.kill()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the broker's last lines with the failure."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        for value in item.funcargs.values():
            if isinstance(value, Server):
                report.sections.append((f"log of the broker in {value.directory}", value.last_lines()))
    return report
