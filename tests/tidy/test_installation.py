"""What `pip install kavka` brings: the broker and the command, and no more than they import.

Read from the metadata of what is installed here, so that no index is asked. What a library costs is for docs/adr/0033
to weigh: it comes with the extra of the feature that needs it.
"""

import re
import subprocess
import sys
from importlib import metadata

import pytest
from packaging.requirements import Requirement

from tests.tidy.tree import ROOT

OURS = {"kavka", "kavka-broker", "kavka-operator", "kavka-cli"}
OF_THE_BROKER = (
    frozenset({"crc32c", "cramjam", "google-re2", "lz4", "prometheus-client"})
    | ({"backports-zstd"} if sys.version_info < (3, 14) else frozenset())
    | ({"uvloop"} if sys.platform != "win32" else frozenset())
)
OF_COMMANDS = frozenset({"kafka-python", "pydantic", "pyyaml", "shtab"}) | frozenset(
    {"annotated-types", "pydantic-core", "typing-extensions", "typing-inspection"}  # pydantic's own
)


def closure(name: str, extras: frozenset[str] = frozenset()) -> set[str]:
    """A distribution and all that it requires, by name."""
    found = {name}
    for text in metadata.requires(name) or ():
        wanted = Requirement(text)
        where = [{"extra": extra} for extra in extras] or [{"extra": ""}]
        if wanted.marker is None or any(wanted.marker.evaluate(extra) for extra in where):
            found |= closure(re.sub(r"[._]", "-", wanted.name.lower()), frozenset(wanted.extras))
    return found


@pytest.mark.parametrize(
    ("root", "libraries"), [("kavka-broker", OF_THE_BROKER), ("kavka", OF_THE_BROKER | OF_COMMANDS)]
)
def test_an_installation_has_no_library_that_only_some_need(root: str, libraries: frozenset[str]) -> None:
    assert closure(root) - OURS == libraries


def test_libraries_of_one_command_alone_come_with_its_extra() -> None:
    plain = closure("kavka")
    assert not plain & {
        "kopf",
        "kubernetes",
        "aiohttp",
        "confluent-kafka",
        "cryptography",
        "pyjwt",
        "rich",
        "textual",
        "typer",
    }
    assert closure("kavka", frozenset({"operator"})) >= {"kopf", "kubernetes", "cryptography"} | plain
    assert closure("kavka", frozenset({"demo"})) >= {"confluent-kafka", "rich"} | plain
    assert closure("kavka", frozenset({"tls"})) >= {"cryptography"} | plain
    assert closure("kavka", frozenset({"oauth"})) >= {"cryptography", "pyjwt"} | plain
    assert closure("kavka", frozenset({"top"})) >= {"rich", "textual"} | plain


def test_the_commands_are_named_as_the_documents_name_them() -> None:
    scripts = {script.name for name in OURS for script in metadata.distribution(name).entry_points}
    assert scripts == {"kavka", "kavka-broker", "kavka-operator", "kubectl-kavka"}


WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({modules!r}))  # as if they were not installed: to import them is refused
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {modules!r} else found(name, package)
from {module} import main
sys.argv[1:] = {words!r}
main()
"""


@pytest.mark.parametrize(
    ("module", "words", "modules", "code", "said"),
    [
        (
            "kavka_cli",
            ["--help"],
            [
                "duckdb",
                "kopf",
                "kubernetes",
                "kavka_audit",
                "kavka_audit_run",
                "kavka_demo",
                "kavka_top",
                "confluent_kafka",
                "cryptography",
                "jwt",
                "pydantic",
                "rich",
                "textual",
            ],
            0,
            "commands:",
        ),
        (
            "kavka_cli",
            ["demo"],
            ["kavka_demo"],
            1,
            "kavka demo needs more than is installed: pip install",
        ),
        ("kavka_operator.process", [], ["kopf"], 1, "kavka-operator needs more than is installed: pip install"),
        ("kavka_cli", ["console"], ["aiohttp"], 1, "kavka console needs more than is installed: pip install"),
        ("kavka_cli", ["up", "--console"], ["aiohttp"], 1, "kavka up --console needs more than is installed: pip"),
        ("kavka_cli", ["top"], ["textual"], 1, "kavka top needs more than is installed: pip install"),
        (
            "kavka_cli",
            ["get", "--state-dir", "nowhere"],
            [
                "kavka_demo",
                "duckdb",
                "kavka_audit",
                "kavka_audit_run",
                "kavka_top",
                "confluent_kafka",
                "cryptography",
                "jwt",
                "kopf",
                "rich",
                "textual",
                "lz4",
            ],
            0,
            "no resources",
        ),
    ],
)
def test_a_command_says_which_extra_it_needs(
    module: str, words: list[str], modules: list[str], code: int, said: str
) -> None:
    program = WITHOUT.format(module=module, words=words, modules=modules)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr
