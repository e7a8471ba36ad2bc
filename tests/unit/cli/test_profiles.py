"""`kavka profile`: a Kafka by a name, kept where this user alone may read it, and when commands take it."""

import json
import os
import stat
import sys
from io import StringIO
from pathlib import Path

import pytest

from kavka_cli.app import joined, parser
from kavka_cli.output import CommandError
from kavka_cli.profiles import CONFIG_VARIABLE, PROFILE_VARIABLE, Profile, Profiles, profiles, shown
from kavka_cli.target import LABELS, TargetOptions, find_target, target_options
from tests.unit.operator.person import run

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECRET = 'cor"rect \\ horse'
QUOTED = SECRET.replace("\\", "\\\\").replace('"', '\\"')
LOGIN = (
    "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
    "ssl.truststore.type=PEM\nssl.truststore.location=ca.crt\n"
    f'sasl.jaas.config={MODULE} required username="alice" password="{QUOTED}";\n'.replace("\\", "\\\\")
)


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of settings of a user who has made no profile, and is in a directory with an authority."""
    for name in (PROFILE_VARIABLE, "KAVKA_STATE_DIR", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "settings"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n")
    (tmp_path / "client.properties").write_text(LOGIN)
    return tmp_path / "settings" / "profiles"


def make(name: str, *words: str) -> None:
    code, said = run("profile", "create", name, "--bootstrap", f"{name}:9092", *words)
    assert code == 0, said


def asked(*words: str) -> TargetOptions:
    """What these words of a command ask for."""
    return target_options(parser().parse_args(joined(words)))


def test_a_profile_says_where_a_kafka_is_and_how_it_lets_clients_in(directory: Path, tmp_path: Path) -> None:
    make("prod", "--command-config", "client.properties", "--metrics", "prod:9644", "--registry", "http://prod:8081")
    os.chdir("/")
    found = asked("topics", "--profile", "prod")
    assert (found.bootstrap, found.metrics, found.registry) == ("prod:9092", "prod:9644", "http://prod:8081")
    security = found.security
    assert (security.mechanism, security.username, security.password) == ("SCRAM-SHA-512", "alice", SECRET)
    assert security.authority == (tmp_path / "ca.crt").read_text(), "a path from where the profile was made"
    target = find_target(found)
    assert (target.name, target.urls, target.registry) == ("prod", ("http://prod:9644/metrics",), "http://prod:8081")
    assert 'profile "prod": sasl.jaas.config' in security.origin.login


def test_this_user_alone_may_read_it(directory: Path) -> None:
    make("prod", "--command-config", "client.properties", "--use")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (directory, *directory.iterdir())}
    assert modes == {"profiles": 0o700, "prod.properties": 0o600, "current": 0o600}
    file = directory / "prod.properties"
    file.chmod(0o640)
    words = f'error: profile "prod": other users may read {file}; chmod 600 {file}\n'
    for command in (("topics",), ("profile", "list"), ("profile", "show")):
        assert run(*command) == (1, words)


def test_no_command_prints_a_secret(directory: Path) -> None:
    text = LOGIN + "ssl.keystore.type=PEM\nssl.keystore.certificate.chain=shown\nssl.keystore.key=hunter2\n"
    Path("client.properties").write_text(text)
    make("prod", "--command-config", "client.properties", "--use")
    said = "".join(
        run("profile", *words)[1] for words in (("list",), ("list", "-o", "json"), ("show",), ("show", "prod"))
    )
    assert (directory / "prod.properties").read_text().count("hunter2") == 1
    assert "hunter2" not in said
    assert "horse" not in said
    assert said.count('username="alice" password="***";') == 2
    assert said.count("ssl.keystore.key=***") == 2
    assert "SASL_SSL SCRAM-SHA-512 as alice by certificate" in said


@pytest.mark.parametrize(
    "text",
    [
        "password=plain", "x", 'passwords="a"', 'password="unended',
        f'{MODULE} required username="alice" password="a" token="hunter2";',
        f'{MODULE} required username="alice" password="a" password=hunter2;',
        'com.example.LoginModule required username="alice" password="hunter2";',
    ],
)  # fmt: skip
def test_a_login_of_another_form_is_hidden_as_a_whole(text: str) -> None:
    assert shown("sasl.jaas.config", text) == "***"


def test_a_login_is_shown_as_its_module_and_its_user() -> None:
    words = f"{MODULE} required password='hunter2' username='al\"ice' ;"
    assert shown("sasl.jaas.config", words) == f'{MODULE} required username="al\\"ice" password="***";'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("http://prod:8081", "http://prod:8081"),
        ("a:9644,b:9644", "a:9644,b:9644"),
        ("https://alice:hunter2@prod:8081/path", "https://***@prod:8081/path"),
        ("https://hunter2@a:1,http://b:2,http://c:hunter2@d", "https://***@a:1,http://b:2,http://***@d"),
        ("https://alice:hunter2,hun@ter2/hunter2@a:1", "https://***@a:1"),
        ("alice:hunter2@a:1", "***@a:1"),
        ("https://a:1/x?key=hunter2", "https://a:1/x?***"),
    ],
)
def test_who_logs_in_at_an_address_is_hidden(text: str, told: str) -> None:
    for name in ("kavka.registry", "kavka.metrics", "bootstrap.servers"):
        assert shown(name, text) == told


def test_values_are_hidden_unless_they_are_known_to_be_harmless(directory: Path) -> None:
    make("prod")
    file = directory / "prod.properties"
    names = ("ssl.truststore.password", "ssl.key.password", "basic.auth.user.info", "kavka.other", "security.protocols")
    file.write_text(file.read_text() + "".join(f"{name}=hunter2\n" for name in names) + "security.protocol=SSL\n")
    code, said = run("profile", "show", "prod")
    assert (code, said.splitlines()[1:]) == (
        0, ["bootstrap.servers=prod:9092", *(f"{name}=***" for name in names), "security.protocol=SSL"]
    )  # fmt: skip


def test_the_registry_may_stand_in_the_file() -> None:
    Path("client.properties").write_text("kavka.registry=http://alice:hunter2@prod:8081\n")
    make("prod", "--command-config", "client.properties")
    assert asked("topics", "--profile", "prod").registry == "http://alice:hunter2@prod:8081"
    assert "hunter2" not in run("profile", "show", "prod")[1]


def test_the_file_may_name_the_brokers_and_be_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO("bootstrap.servers=one:1,two:2\n"))
    assert run("profile", "create", "dev", "--command-config", "-") == (0, 'profile "dev" is made\n')
    assert asked("groups", "--profile", "dev").bootstrap == "one:1,two:2"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("create", "a"), "name its brokers: --bootstrap, or bootstrap.servers in the file of --command-config"),
        (("create", "a/b", "--bootstrap", "x:1"), '"a/b" is not a name for a profile'),
        (("create", "..", "--bootstrap", "x:1"), '".." is not a name for a profile'),
        (("create", "a", "--bootstrap", "x:1", "--metrics", "ftp://x"), "--metrics: "),
        (("create", "a", "--command-config", "none"), "--command-config: none cannot be read"),
        (("create", "dev", "--bootstrap", "x:1"), 'there is a profile "dev"; --replace writes it anew'),
        (("use", "prod"), 'there is no profile "prod"; there are dev'),
        (("delete", "prod"), 'there is no profile "prod"; there are dev'),
        (("show",), "no profile is used; name one, or `kavka profile use` one"),
    ],
)
def test_what_cannot_be_is_refused_in_words(words: tuple[str, ...], told: str) -> None:
    make("dev")
    code, said = run("profile", *words)
    assert (code, said.startswith(f"error: {told}")) == (1, True), said
    assert profiles().names() == ["dev"]


@pytest.mark.parametrize("content", [None, b"\xff"])
def test_a_current_that_is_no_text_is_an_error_in_words(directory: Path, content: bytes | None) -> None:
    make("prod")
    current = directory / "current"
    if content is None:
        current.mkdir()
        words = f"error: {current} cannot be read: Is a directory\n"
    else:
        current.write_bytes(content)
        words = f"error: {current} cannot be read: what it has is not UTF-8 text\n"
    for command in (
        ("topics",), ("profile", "list"), ("profile", "show"), ("profile", "delete", "prod"),
        ("profile", "create", "dev", "--bootstrap", "x:1"),
    ):  # fmt: skip
        assert run(*command) == (1, words), command
    if content is None:
        assert run("profile", "clear")[1].startswith(f"error: {current} cannot be deleted: ")
        assert run("profile", "use", "prod") == (1, f"error: {current} cannot be written: Is a directory\n")
        assert not list(directory.glob(".*")), "no draft stays"


def test_a_profile_that_is_a_directory_is_an_error_in_words(directory: Path) -> None:
    make("prod")
    (directory / "dev.properties").mkdir(mode=0o700)
    path = directory / "dev.properties"
    assert run("profile", "delete", "dev")[1].startswith(f"error: {path} cannot be deleted: ")
    said = run("profile", "create", "dev", "--bootstrap", "x:1", "--replace")
    assert said == (1, f"error: {path} cannot be written: Is a directory\n")
    assert run("profile", "use", "dev") == (1, f'error: profile "dev": {path} cannot be read: Is a directory\n')


def test_a_profile_that_another_made_meanwhile_stays(directory: Path) -> None:
    profiles().put(Profile("prod", {"bootstrap.servers": "one:1"}), is_new=True)
    with pytest.raises(CommandError, match='there is a profile "prod"; --replace writes it anew'):
        profiles().put(Profile("prod", {"bootstrap.servers": "two:1"}), is_new=True)
    assert profiles().get("prod").bootstrap == "one:1"
    assert [path.name for path in directory.iterdir()] == ["prod.properties"]


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_directory_that_others_may_write_is_refused(directory: Path, mode: int) -> None:
    make("prod", "--use")
    directory.chmod(mode)
    words = f"error: other users may write {directory}; chmod 700 {directory}\n"
    for command in (
        ("topics",), ("topics", "--profile", "prod"), ("profile", "list", "-o", "name"), ("profile", "use", "prod"),
        ("profile", "create", "dev", "--bootstrap", "x:1"),
    ):  # fmt: skip
        assert run(*command) == (1, words), command


def test_a_directory_of_another_user_is_refused(directory: Path) -> None:
    make("prod", "--use")
    owner = directory.stat().st_uid
    other = Profiles(directory.parent, user=owner + 1)
    if owner == 0:
        assert other.current == "prod", "root may write all, and may have made it"
        os.chown(directory, 12345, -1)
    for ask in (other.names, lambda: other.current, lambda: other.get("prod")):
        with pytest.raises(CommandError, match="is another user's; profiles are in a directory of your own"):
            ask()


def test_a_property_that_is_not_understood_makes_no_profile() -> None:
    Path("client.properties").write_text("sasl.mechanism=GSSAPI\nsecurity.protocol=SASL_SSL\n")
    code, said = run("profile", "create", "a", "--bootstrap", "x:1", "--command-config", "client.properties")
    assert (code, said.startswith('error: profile "a": sasl.mechanism: ')) == (1, True), said
    assert profiles().names() == []


def test_the_used_profile_is_for_commands_that_name_no_other_cluster(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make("dev")
    make("prod", "--use")
    assert run("profile", "list", "-o", "name") == (0, "dev\nprod\n")
    capsys.readouterr()
    assert asked("topics").bootstrap == "prod:9092"
    assert capsys.readouterr().err == 'profile "prod": prod:9092\n', "which Kafka it is"
    assert asked("topics", "--profile", "dev").bootstrap == "dev:9092"
    assert capsys.readouterr().err == ""
    for words in (
        ("main",), ("--cluster", "main"), ("--namespace", "shop"), ("--kubernetes",), ("--context", "x"),
        ("--state-dir", "x"),
    ):  # fmt: skip
        assert asked("topics", *words).bootstrap is None, words
    assert asked("topics", "--bootstrap", "x:1").bootstrap == "x:1"
    monkeypatch.setenv("KAVKA_STATE_DIR", "x")
    assert asked("topics").bootstrap is None, "the environment names a store"
    monkeypatch.setenv(PROFILE_VARIABLE, "dev")
    assert asked("topics").bootstrap == "dev:9092", "the environment names a profile"
    assert json.loads(run("profile", "list", "-o", "json")[1])["profiles"] == [
        {"name": name, "isUsed": name == "dev", "bootstrapServers": f"{name}:9092", "login": "PLAINTEXT"}
        for name in ("dev", "prod")
    ]
    monkeypatch.setenv(PROFILE_VARIABLE, "")
    assert asked("topics").bootstrap is None, "the environment names none"


def test_a_profile_is_not_mixed_with_other_ways_to_name_a_kafka() -> None:
    make("prod")
    for more in (("--bootstrap", "x:1"), ("--command-config", "client.properties")):
        with pytest.raises(CommandError, match="leave out the other options"):
            asked("topics", "--profile", "prod", *more)


@pytest.mark.parametrize("option", ["--bootstrap", "--cluster", "--namespace", "--context", "--profile"])
@pytest.mark.parametrize("word", ["", " "])
def test_an_empty_word_is_no_way_to_the_used_profile(option: str, word: str) -> None:
    make("prod", "--use")
    words = f"error: {option} is empty; name what is meant, or leave it out\n"
    assert run("groups", option, word, "--group", "g", "--delete") == (1, words)
    assert run("topics", option, word) == (1, words)
    assert run("topics", word)[1] == words.replace(option, "CLUSTER")


def test_a_file_with_an_empty_address_is_refused() -> None:
    make("prod", "--use")
    Path("client.properties").write_text("bootstrap.servers=\n")
    with pytest.raises(CommandError, match=r"bootstrap\.servers is empty"):
        asked("topics", "--command-config", "client.properties")


PLACES = (
    ("main",), ("--cluster", "main"), ("--namespace", "shop"), ("--context", "x"), ("--kubernetes",),
    ("--kubeconfig", "x"), ("--state-dir", "x"),
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_a_profile_and_another_cluster_are_not_named_together(place: tuple[str, ...]) -> None:
    make("prod")
    for command in (("topics",), ("produce", "--topic", "t"), ("groups", "-g", "g", "--delete")):
        code, said = run(*command, "--profile", "prod", *place)
        assert code == 1
        word = place[0] if place[0].startswith("--") else "CLUSTER"
        assert said == f"error: --profile and {word} each say which Kafka is meant; leave one of them out\n"


def test_what_is_printed_may_be_named_beside_a_profile() -> None:
    make("prod")
    for command in (("export",), ("quota", "recommend"), ("audit", "run")):
        found = target_options(
            parser().parse_args(joined((*command, "--profile", "prod", "--cluster", "main", "-n", "shop"))),
            labels=LABELS,
        )
        assert (found.bootstrap, found.cluster, found.where.namespace) == ("prod:9092", "main", "shop")
        assert run(*command, "--profile", "prod", "main")[1].startswith("error: --profile and CLUSTER ")
    assert run("audit", "verify", "--profile", "prod", "-n", "shop")[1].startswith("error: --profile and --namespace ")


@pytest.mark.parametrize(
    "command",
    [
        ("groups", "--group", "g", "--delete"),
        ("groups", "--group", "g", "--reset-to", "start"),
        ("produce", "--topic", "t"),
    ],
    ids=" ".join,
)
def test_what_changes_a_kafka_names_the_profile(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    make("prod", "--use")
    code, said = run(*command)
    assert code == 1
    assert said.startswith('error: the profile that is used is "prod" (prod:9092), and this command changes something')
    assert "--profile prod or KAVKA_PROFILE=prod" in said
    options = parser().parse_args(joined((*command, "--profile", "prod")))
    assert target_options(options, is_change=True).bootstrap == "prod:9092"
    monkeypatch.setenv(PROFILE_VARIABLE, "prod")
    assert target_options(parser().parse_args(joined(command)), is_change=True).bootstrap == "prod:9092"
    monkeypatch.setenv(PROFILE_VARIABLE, "")
    assert target_options(parser().parse_args(joined(command)), is_change=True).bootstrap is None


def test_a_deleted_profile_and_a_cleared_one_are_used_no_more(directory: Path) -> None:
    make("dev", "--use")
    make("prod")
    assert run("profile", "delete", "prod") == (0, 'profile "prod" is deleted\n')
    assert profiles().current == "dev"
    assert run("profile", "clear") == (0, "no profile is used\n")
    assert asked("topics").bootstrap is None
    assert run("profile", "use", "dev") == (0, 'profile "dev" is used\n')
    assert run("profile", "delete", "dev") == (0, 'profile "dev" is deleted\n')
    assert asked("topics").bootstrap is None
    assert list(directory.iterdir()) == []
    assert run("profile", "list") == (0, "no profiles; make one with `kavka profile create`\n")


def test_a_profile_is_replaced_when_that_is_asked_for() -> None:
    make("dev", "--use")
    said = run("profile", "create", "dev", "--bootstrap", "other:1", "--replace")
    assert said == (0, 'profile "dev" is made and used\n')
    assert asked("topics").bootstrap == "other:1"


def test_profiles_are_below_the_directory_of_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(CONFIG_VARIABLE)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert profiles() == Profiles(tmp_path / ".config" / "kavka")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    assert profiles() == Profiles(Path("/elsewhere/kavka"))
