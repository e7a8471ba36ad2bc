"""`kavka-broker run --override KEY=VALUE`, as Apache Kafka's kafka-server-start.sh has it."""

from pathlib import Path

import pytest

from kavka_broker.cli import main, parser, read_config

SETTINGS = "node.id=1\nprocess.roles=broker,controller\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "server.properties"
    found.write_text(SETTINGS + "controller.listener.names=CONTROLLER\nlog.dirs=/tmp/x\nnum.io.threads=4\n")
    return found


def test_a_setting_of_the_command_stands_in_place_of_the_files(path: Path) -> None:
    words = ["run", "--config", str(path), "--override", "num.io.threads=6"]
    words += ["--override=advertised.listeners=PLAINTEXT://192.0.2.1:30001"]
    options = parser().parse_args(words)
    config = read_config(options.config, options.override)
    assert config["num.io.threads"] == 6
    assert [str(listener) for listener in config.listeners.advertised] == ["PLAINTEXT://192.0.2.1:30001"]
    assert read_config(path)["num.io.threads"] == 4


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            b"\xef\xbb\xbfprocess.roles=broker\n",
            "begins with a byte order mark, which would be a part of the first key",
        ),
        (b"# f\xfcr\n", "byte 3 is not UTF-8; write other characters as \\u and four hexadecimal digits"),
    ],
)
def test_a_file_that_is_no_plain_utf_8_is_refused_with_words(
    path: Path, content: bytes, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_bytes(content + path.read_bytes())
    with pytest.raises(SystemExit):
        main(["run", "--config", str(path)])
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("override", "words"),
    [("num.io.threads", "--override num.io.threads: write KEY=VALUE"), ("num.io.threads=x", "num.io.threads")],
)
def test_what_is_no_setting_ends_the_command(
    path: Path, override: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--config", str(path), "--override", override])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
