"""A tool of Apache Kafka in the JVM that tests share does what it does in a JVM of its own."""

import subprocess

import pytest

from tests.support.programs import RUN_SECONDS_MAX, kafka_tool, run
from tests.support.servers import Server
from tests.support.tool_runner import tool_in_jvm
from tests.support.topics import create_topic
from tools.ktool import command

pytestmark = [pytest.mark.java, pytest.mark.slow]


def shared(name: str, *arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr in the JVM that is shared."""
    ended = tool_in_jvm(name, *arguments, stdin="", seconds_max=RUN_SECONDS_MAX)
    assert ended is not None
    return ended.status, ended.stdout, without_log(ended.stderr)


def alone(name: str, *arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr in a JVM of its own."""
    ran = subprocess.run(
        command(name, *arguments), capture_output=True, text=True, check=False, timeout=RUN_SECONDS_MAX
    )
    return ran.returncode, ran.stdout, without_log(ran.stderr)


def without_log(errors: str) -> str:
    """What a tool says of an error, without the times and calls that Log4j writes beside it."""
    return "\n".join(line for line in errors.splitlines() if not line.startswith(("[", "\t")))


def test_words_and_exit_status_are_the_same(server: Server, name: str) -> None:
    create_topic(server, name)
    at = ("--bootstrap-server", server.bootstrap)
    for tool, arguments in (
        ("topics", (*at, "--describe", "--topic", name)),
        ("topics", (*at, "--describe", "--topic", f"no-{name}")),
        ("topics", ()),
        ("configs", (*at, "--describe", "--entity-type", "topics", "--entity-name", name)),
    ):
        assert shared(tool, *arguments) == alone(tool, *arguments), (tool, arguments)


def test_a_tool_finds_nothing_of_the_one_before(server: Server, name: str) -> None:
    assert shared("topics")[0] == 1
    status, out, errors = shared("topics", "--bootstrap-server", server.bootstrap, "--list")
    assert (status, errors) == (0, "")
    create_topic(server, name)
    kafka_tool("console-producer", "--bootstrap-server", server.bootstrap, "--topic", name, stdin="one\ntwo\n")
    again = kafka_tool("console-producer", "--bootstrap-server", server.bootstrap, "--topic", name, stdin="three\n")
    assert "one" not in again
    assert name not in out


def test_console_clients_in_jvms_of_their_own(server: Server, name: str) -> None:
    create_topic(server, name)
    at = ("--bootstrap-server", server.bootstrap)
    run(command("console-producer", *at, "--topic", name), stdin="one\ntwo\n")
    limits = ("--from-beginning", "--max-messages", "2", "--timeout-ms", "60000")
    assert run(command("console-consumer", *at, "--topic", name, *limits)).splitlines() == ["one", "two"]
