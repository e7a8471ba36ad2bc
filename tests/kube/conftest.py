"""A real API server for these tests: started once, with the resource definitions in it; a namespace for each test."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from kavka_operator.api.kinds import KINDS
from tests.kube import forks
from tests.kube.cluster import Kubernetes, install, verdict
from tests.support.control_plane import ControlPlane, Json
from tools.kube.programs import FOR_TESTS, NoModulesError, program

HERE = Path(__file__).parent
_numbers = count(1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of this directory, and build what they run before the first of them is timed."""
    own = [item for item in items if HERE in item.path.parents]
    for item in own:
        item.add_marker(pytest.mark.kube)
    if own and not config.option.collectonly:
        for item in own if (lack := _lack()) else ():
            item.add_marker(pytest.mark.skip(reason=lack))


def _lack() -> str:
    """Why the programs cannot be had, in words. With CI=true that is a failure."""
    try:
        for name in FOR_TESTS:
            program(name)
    except NoModulesError as error:
        if os.environ.get("CI") == "true":
            raise
        return str(error)
    return ""


@pytest.fixture(scope="session", autouse=True)
def _operators() -> Iterator[None]:
    """End what forks operators, if a test has started one."""
    yield
    forks.end()


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The processes of a Kubernetes without nodes, with the resource definitions of this project."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as plane:
        install(plane)
        yield plane


@pytest.fixture
def kubernetes(plane: ControlPlane) -> Iterator[Kubernetes]:
    """A connection and a namespace of its own."""
    with closing(plane.api()) as api:
        kubernetes = Kubernetes(plane, api, f"test-{next(_numbers)}")
        kubernetes.begin()
        yield kubernetes
        kubernetes.end()


@pytest.fixture(scope="session")
def _shared(plane: ControlPlane) -> Iterator[Kubernetes]:
    with closing(plane.api()) as api:
        kubernetes = Kubernetes(plane, api, "shared")
        kubernetes.begin()
        yield kubernetes


@pytest.fixture
def shared(_shared: Kubernetes) -> Iterator[Kubernetes]:
    """A namespace of all tests that ask the API server alone, in which no resource of ours is. One of its own would
    cost each a quarter of a second of a processor when it goes.
    """
    yield _shared
    for kind in KINDS:
        assert _shared.api.call("DELETE", _shared.path(kind)).is_well


@pytest.fixture
def kstatus() -> Callable[[Json], str]:
    """What Flux and other tools that use kstatus take an object for: Current, InProgress, Failed, ..."""
    return verdict
