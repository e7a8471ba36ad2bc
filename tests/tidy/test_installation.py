"""What `pip install kavka` brings: the broker and the command, and no more than they import.

Counted from what is installed here (metadata and files, without bytecode), so that no index is asked. The bounds are
those of docs/adr/0028: what libraries of others bring is a ratchet, to be lowered and never raised.
"""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.tidy.tree import ROOT

OURS = {
    "kavka": None,
    "kavka-broker": "broker/kavka_broker",
    "kavka-operator": "operator/kavka_operator",
    "kavka-extras": "extras",
}
NOT_PACKED = ("README.md", "ruff.toml")
"""Files beside the code that setuptools leaves out of a wheel."""
PACKAGES_MAX = 8
LIBRARIES_MEGABYTES_MAX = 11.4
OWN_MEGABYTES_MAX = 5.0
BROKER_PACKAGES_MAX = 4
BROKER_LIBRARIES_MEGABYTES_MAX = 6.4
BROKER_OWN_MEGABYTES_MAX = 3.4


def closure(name: str, extras: frozenset[str] = frozenset()) -> set[str]:
    """A distribution and all that it requires, by name."""
    found = {name}
    for text in metadata.requires(name) or ():
        wanted = Requirement(text)
        where = [{"extra": extra} for extra in extras] or [{"extra": ""}]
        if wanted.marker is None or any(wanted.marker.evaluate(extra) for extra in where):
            found |= closure(re.sub(r"[._]", "-", wanted.name.lower()), frozenset(wanted.extras))
    return found


def megabytes(name: str) -> float:
    """What a distribution takes on the disk; ours are installed in place."""
    own = OURS.get(name)
    if name in OURS:
        files = (ROOT / own).rglob("*") if own else ()
        paths = [path for path in files if path.is_file() and path.name not in NOT_PACKED and not is_hidden(path)]
    else:
        paths = [Path(str(file.locate())) for file in metadata.files(name) or ()]
    return sum(path.stat().st_size for path in paths if path.suffix != ".pyc" and path.exists()) / 1e6


def is_hidden(path: Path) -> bool:
    """Whether a tool keeps it for itself, as a cache of lint beside the code."""
    return any(part.startswith(".") for part in path.relative_to(ROOT).parts)


def shown(names: set[str]) -> str:
    sizes = sorted(((megabytes(name), name) for name in names), reverse=True)
    return "\n".join(f"{size:6.2f} MB  {name}" for size, name in sizes)


@pytest.mark.parametrize(
    ("root", "packages_max", "libraries_max", "own_max"),
    [
        ("kavka", PACKAGES_MAX, LIBRARIES_MEGABYTES_MAX, OWN_MEGABYTES_MAX),
        ("kavka-broker", BROKER_PACKAGES_MAX, BROKER_LIBRARIES_MEGABYTES_MAX, BROKER_OWN_MEGABYTES_MAX),
    ],
)
def test_an_installation_is_small(root: str, packages_max: int, libraries_max: float, own_max: float) -> None:
    names = closure(root)
    own = names & set(OURS)
    others = names - own
    assert 1 < len(others) <= packages_max, shown(others)
    assert 1 < sum(map(megabytes, others)) <= libraries_max, shown(others)
    assert 1 < sum(map(megabytes, own)) <= own_max, shown(own)


def test_libraries_of_one_command_alone_come_with_its_extra() -> None:
    plain = closure("kavka")
    assert not plain & {
        "kavka-extras",
        "kopf",
        "kubernetes",
        "aiohttp",
        "confluent-kafka",
        "cryptography",
        "rich",
        "textual",
        "typer",
        "pydantic",
        "lz4",
    }
    assert closure("kavka", frozenset({"operator"})) >= {"kavka-extras", "kopf", "kubernetes", "cryptography"} | plain
    assert closure("kavka", frozenset({"demo"})) >= {"kavka-extras", "confluent-kafka", "rich"} | plain
    assert closure("kavka", frozenset({"tls"})) >= {"cryptography"} | plain
    assert closure("kavka", frozenset({"top"})) >= {"kavka-extras", "rich", "textual"} | plain


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
            "kavka_operator.cli",
            ["--help"],
            [
                "duckdb",
                "kopf",
                "kubernetes",
                "kavka_audit",
                "kavka_audit_run",
                "kavka_demo",
                "kavka_kubernetes",
                "kavka_top",
                "confluent_kafka",
                "cryptography",
                "rich",
                "textual",
            ],
            0,
            "commands:",
        ),
        (
            "kavka_operator.cli",
            ["demo"],
            ["kavka_demo"],
            1,
            "kavka demo needs more than is installed: pip install",
        ),
        ("kavka_kubernetes", [], ["kopf"], 1, "kavka-operator needs more than is installed: pip install"),
        ("kavka_operator.cli", ["top"], ["textual"], 1, "kavka top needs more than is installed: pip install"),
        (
            "kavka_operator.cli",
            ["get", "--state-dir", "nowhere"],
            [
                "kavka_demo",
                "kavka_kubernetes",
                "duckdb",
                "kavka_audit",
                "kavka_audit_run",
                "kavka_top",
                "confluent_kafka",
                "cryptography",
                "kopf",
                "rich",
                "textual",
                "pydantic",
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
