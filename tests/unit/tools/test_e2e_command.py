"""`python -m e2e`: which tests it asks pytest for, and what it says of itself."""

from pathlib import Path

import pytest

from e2e.__main__ import main, pytest_words, wanted_images
from e2e.clusters.given_cluster import OURS, GivenCluster
from e2e.clusters.kubernetes import BUILT, Kubernetes
from tools.kube.programs import VARIABLE

ALWAYS = ["-q", "-p", "no:randomly"]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ([], ["e2e"]),
        (["--keep", "-k", "broker"], ["e2e", "-k", "broker"]),
        (["--images", "broker,operator", "-x"], ["e2e", "-x"]),
        (["e2e/test_broker_image.py"], ["e2e/test_broker_image.py"]),
        (["-x", "e2e/test_broker_image.py::test_it"], ["-x", "e2e/test_broker_image.py::test_it"]),
    ],
)
def test_a_file_that_is_named_is_run_alone(words: list[str], asked: list[str]) -> None:
    assert pytest_words(words) == [*ALWAYS, *asked]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["-x"], ["broker", "operator", "audit", "audit-spark", "former"]),
        (["--images", "operator,former"], ["operator", "former"]),
    ],
)
def test_images_that_are_named_are_built_alone(words: list[str], wanted: list[str]) -> None:
    assert wanted_images(words) == wanted


@pytest.mark.parametrize("words", [["--images"], ["--images", "brokr"]])
def test_an_image_of_no_such_name_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit, match="write some of broker,operator,audit,audit-spark,former"):
        wanted_images(words)


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_builds_nothing_and_starts_no_node(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    def called(*_: object) -> None:
        pytest.fail("help does nothing")

    assert main([word], Kubernetes(Path("kubeconfig"), called, called), called) == 0
    assert "--keep" in capsys.readouterr().out


class Kubectl:
    """A cluster that has what is named; `asked` are the commands."""

    def __init__(self, *has: str) -> None:
        self.has = has
        self.asked: list[tuple[str, ...]] = []

    def run(self, *line: str | Path) -> str:
        self.asked.append(tuple(str(word) for word in line[3:]))
        return "\n".join(self.has) if "get" in line else ""


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kubectl").touch(0o755)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    path = tmp_path / "kubeconfig"
    path.touch()
    return path


def test_a_cluster_that_has_a_kavka_is_refused_and_keeps_it(kubeconfig: Path) -> None:
    kubectl = Kubectl("namespace/kavka")
    given = GivenCluster(kubeconfig, BUILT, kubectl.run)
    with pytest.raises(SystemExit, match="namespace/kavka, which the tests would replace and delete"):
        given.up()
    given.down()
    assert [asked[0] for asked in kubectl.asked] == ["get"]


def test_what_a_given_cluster_did_not_have_is_deleted_at_the_end(kubeconfig: Path) -> None:
    kubectl = Kubectl()
    given = GivenCluster(kubeconfig, BUILT, kubectl.run)
    given.down()
    assert kubectl.asked == []
    given.up()
    given.down()
    assert kubectl.asked[-1] == ("delete", *OURS, "--ignore-not-found")
