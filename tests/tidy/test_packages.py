"""A package can be installed by itself: what it imports is declared, and its commands are there."""

import ast
import re
import sys
import tomllib
from importlib import import_module
from typing import Any

import pytest

from tests.tidy.tree import ROOT, nodes, parsed

PACKAGES = (
    ("broker", "kavka_broker"),
    ("operator", "kavka_operator"),
    ("cli", "kavka_cli"),
    ("cli", "kavka_audit_run"),
    ("cli", "kavka_demo"),
    ("cli", "kavka_pytest"),
    ("cli", "kavka_top"),
)
#: Where a distribution is not called as its module.
CALLED = {
    "jwt": "pyjwt",
    "kafka": "kafka-python",
    "pydantic_core": "pydantic",
    "re2": "google-re2",
    "yaml": "pyyaml",
    "backports": "backports.zstd",
    "confluent_kafka": "confluent-kafka",
    "google": "protobuf",
    "grpc_tools": "grpcio-tools",
    "kavka_audit_run": "kavka-cli",
    "kavka_demo": "kavka-cli",
    "kavka_pytest": "kavka-cli",
    "kavka_top": "kavka-cli",
}
#: With another distribution, of which they are a part; `compression` with Python 3.14.
COME_ALONG = {"compression"}


def project(member: str) -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((ROOT / member / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return settings


def imported(member: str, package: str) -> set[str]:
    """The distributions that its modules import, at their heads or in functions."""
    modules: set[str] = set()
    for path in (ROOT / member / package).rglob("*.py"):
        for node in nodes(parsed(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module)
    tops = {module.partition(".")[0] for module in modules} - {*sys.stdlib_module_names, package}
    return {CALLED.get(top, top.replace("_", "-")) for top in tops}


@pytest.mark.parametrize(("member", "package"), PACKAGES)
def test_a_package_declares_what_it_imports(member: str, package: str) -> None:
    settings = project(member)
    optional = [text for texts in settings.get("optional-dependencies", {}).values() for text in texts]
    declared = {re.split(r"[=;\[]", text)[0].strip() for text in (*settings["dependencies"], *optional)}
    assert imported(member, package) - declared - {settings["name"]} <= COME_ALONG


@pytest.mark.parametrize(
    ("command", "target"),
    [pair for member in ("broker", "operator", "cli") for pair in project(member)["scripts"].items()],
)
def test_a_command_is_a_function(command: str, target: str) -> None:
    module, _, function = target.partition(":")
    assert callable(getattr(import_module(module), function)), command
