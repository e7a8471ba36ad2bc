"""`kavka console`: which clusters it shows, and which options go together."""

from argparse import ArgumentParser
from pathlib import Path

import pytest

from kavka_cli.commands import console
from kavka_cli.console_process import PORT, console_address
from kavka_cli.output import CommandError
from tests.unit.operator.person import run


def targets(*words: str) -> list[tuple[str, str]]:
    """Name and address of each cluster that these words ask for."""
    parser = ArgumentParser()
    console.add_options(parser)
    return [(found.name, found.bootstrap) for found in console.targets_of(parser.parse_args(words))]


def test_each_bootstrap_is_a_cluster() -> None:
    assert targets("--bootstrap", "one:1,two:1", "--bootstrap", "other:2") == [
        ("one:1,two:1", "one:1,two:1"),
        ("other:2", "other:2"),
    ]


def test_the_file_of_properties_may_name_the_cluster(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=one:1\n")
    assert targets("--command-config", str(file)) == [("one:1", "one:1")]
    assert targets("--command-config", str(file), "--bootstrap", "two:2") == [("two:2", "two:2")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--every", "0.1"), "--every is from 0.5 to 3600 seconds"),
        (("--port", "70000"), "--port: 70000 is not from 0 to 65535"),
        (("--bootstrap", "a:1", "--bootstrap", "b:1", "--metrics", "a:2"), "--metrics is for one cluster"),
        (("--bootstrap", "a:1", "--metrics", "ftp://a"), "--metrics: "),
        ([word for number in range(21) for word in ("--bootstrap", f"a:{number}")], "at most 20 clusters"),
        (("--bootstrap", ""), "--bootstrap is empty; "),
        (("--bootstrap", "a:1", "--bootstrap", " "), "--bootstrap is empty; "),
        (("",), "CLUSTER is empty; "),
        (("--profile", ""), "--profile is empty; "),
        (("none",), 'there is no KafkaCluster "none" in namespace "default"'),
        ((), 'no cluster runs in namespace "default"; start one with `kavka up`'),
    ],
)
def test_options_that_say_nothing_are_refused(tmp_path: Path, words: list[str], said: str) -> None:
    where = () if "--bootstrap" in words else ("--state-dir", str(tmp_path))
    code, answer = run("console", *words, *where)
    assert code == 1
    assert answer.startswith(f"error: {said}"), answer


@pytest.mark.parametrize(("asked", "is_taken", "port"), [(None, False, None), (0, False, PORT), (8123, False, 8123)])
def test_the_port_beside_kavka_up(asked: int | None, is_taken: bool, port: int | None) -> None:
    parser = ArgumentParser()
    parser.set_defaults(console=asked)
    found = console_address(parser.parse_args([]), lambda *_: is_taken)
    assert (None if found is None else found.port) == port


def test_a_port_that_is_taken_is_refused_where_it_was_named() -> None:
    parser = ArgumentParser()
    parser.set_defaults(console=8123)
    with pytest.raises(CommandError, match=r"port 8123 of 127\.0\.0\.1 is in use"):
        console_address(parser.parse_args([]), lambda *_: True)
    parser.set_defaults(console=0)
    found = console_address(parser.parse_args([]), lambda *_: True)
    assert found is not None
    assert found.port not in {0, PORT}
    assert len(found.key) > 20


def test_profiles_are_clusters_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAVKA_CONFIG_DIR", str(tmp_path))
    for name in ("dev", "prod"):
        assert (
            run("profile", "create", name, "--bootstrap", f"{name}:1", "--registry", f"http://a:hunter2@{name}")[0] == 0
        )
    assert targets("--profile", "dev", "--profile", "prod", "--bootstrap", "x:1") == [
        ("dev", "dev:1"), ("prod", "prod:1"), ("x:1", "x:1"),
    ]  # fmt: skip
    code, said = run("console", "--profile", "dev", "--profile", "prod")
    assert (code, "several schema registries: http://***@dev, http://***@prod" in said) == (1, True), said
    monkeypatch.setenv("KAVKA_PROFILE", "prod")
    assert targets() == [("prod", "prod:1")]
    code, said = run("console", "--profile", "dev", "--write")
    assert (code, "--write edits the quotas of clusters of `kavka up`" in said) == (1, True), said
