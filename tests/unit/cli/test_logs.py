"""`kavka logs`: the last lines of a node's log, or of all, marked by where they come from."""

from pathlib import Path

import pytest

from kavka_cli.commands.logs import TAIL_BYTES, last_lines, logs_of
from kavka_cli.output import CommandError
from kavka_operator.platform.local.layout import Layout
from tests.unit.operator.person import run


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout.of(tmp_path / "state", "default", "main")
    layout.make()
    return layout


def say(layout: Layout, node: int, *lines: str) -> None:
    with layout.log(node).open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def test_one_log_is_printed_as_it_is_and_several_are_marked(layout: Layout) -> None:
    say(layout, 0, "first", "second", "third")
    words = ("logs", "main", "--state-dir", str(layout.root.parents[1]), "--tail", "2")
    assert run(*words) == (0, "second\nthird\n")
    say(layout, 1, "other")
    assert run(*words) == (0, "node-0: second\nnode-0: third\nnode-1: other\n")
    assert run(*words, "--node", "1") == (0, "other\n")
    assert run(*words, "--node", "7") == (1, 'error: KafkaCluster "main" has no log of node-7\n')


def test_a_cluster_that_has_not_run_has_no_logs(layout: Layout) -> None:
    with pytest.raises(CommandError, match="no logs yet"):
        logs_of(layout, [])


def test_the_tail_of_a_large_log_begins_with_a_whole_line(layout: Layout) -> None:
    say(layout, 0, *(f"{number:09}" for number in range(TAIL_BYTES // 5)))
    lines, end = last_lines(layout.log(0), 1_000_000)
    assert end == layout.log(0).stat().st_size
    assert lines[-1] == f"{TAIL_BYTES // 5 - 1:09}\n".encode()
    assert {len(line) for line in lines} == {10}


def test_the_version_is_told() -> None:
    code, said = run("version")
    assert (code, said.startswith("kavka 0.")) == (0, True)
    assert run("version", "-o", "json")[1].startswith('{"kavka": "0.')
