"""The operator of the chart, and a namespace for each test with it."""

from collections.abc import Iterator

import pytest

from e2e.cluster_namespace import Scene, scene_in
from e2e.kubectl import tried
from e2e.release import OPERATOR, OPERATORS, installed


@pytest.fixture(scope="module")
def operator_of_the_chart() -> Iterator[None]:
    """An operator for every namespace, while the tests of a module run."""
    with installed():
        yield


@pytest.fixture
def scene(operator_of_the_chart: None, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """An empty namespace that the operator watches, named after the file of the test."""
    name = request.path.stem.removeprefix("test_").replace("_", "-")
    with scene_in(name) as made:
        yield made


@pytest.fixture
def loaded(scene: Scene) -> Scene:
    """Three brokers that are ready, and a client that produces."""
    scene.wants()
    scene.until_ready()
    scene.produces()
    return scene


def pytest_exception_interact(report: pytest.CollectReport | pytest.TestReport) -> None:
    """Show with a failure how the clusters stand, before what the test made is taken away."""
    everywhere = "--all-namespaces"
    for line in (
        ("get", "kafkaclusters,topics.kavka.dev,pods,pvc", everywhere),
        ("get", "kafkaclusters", everywhere, "--output", "jsonpath={.items[*].status}"),
        ("logs", OPERATOR, "--namespace", OPERATORS, "--tail", "60"),
    ):
        report.sections.append((f"kubectl {' '.join(line)}", tried(*line).stdout))
