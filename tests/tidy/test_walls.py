"""The walls of `[tool.importlinter]` stand: forbidden imports are planted, and `lint-imports` refuses each of them."""

import os
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT

MEMBERS = (
    "broker/kavka_broker",
    "operator/kavka_operator",
    "cli/kavka_audit_run",
    "cli/kavka_cli",
    "cli/kavka_demo",
    "cli/kavka_pytest",
    "cli/kavka_top",
    "audit/kavka_audit",
)
LINT = Path(sys.executable).parent / "lint-imports"

PLANTS = (
    # (contract, module that imports, module that it may not import)
    ("layers", "kavka_broker.core.placement", "kavka_broker.storage.log"),
    ("layers", "kavka_broker.replica.leading.partition", "kavka_broker.controller.sessions"),
    ("layers", "kavka_broker.replica.leading.partition", "kavka_broker.coordinator.groups.group_shard"),
    ("layers", "kavka_broker.quotas.quota_shares", "kavka_broker.membership.lifecycle"),
    ("layers", "kavka_broker.loop.timers", "kavka_broker.logs"),
    ("metadata", "kavka_broker.core.metadata.image.topics", "kavka_broker.core.metadata.decide.election_policy"),
    ("replica", "kavka_broker.replica.leading.partition", "kavka_broker.replica.serving.fetch_sessions"),
    ("replica", "kavka_broker.replica.following.fetcher", "kavka_broker.replica.hosting.log_opener"),
    ("coordinator", "kavka_broker.coordinator.groups.group_shard", "kavka_broker.controller.controller"),
    ("layers", "kavka_broker.request.broker", "kavka_broker.api.a00_produce"),
    ("layers", "kavka_broker.api.a03_metadata", "kavka_broker.dispatch.forwarding"),
    ("pure", "kavka_broker.core.placement", "random"),
    ("api", "kavka_broker.api.a00_produce", "kavka_broker.net.connection"),
    ("operator", "kavka_operator.kafka.client", "kavka_broker.loop.timers"),
    ("operator", "kavka_operator.kafka.client", "kavka_broker.protocol.codec"),
    ("operator", "kavka_operator.reconcile.topics", "kavka_broker.core.placement"),
    ("operator-layers", "kavka_operator.api.quota", "kavka_operator.domain.quota_entities"),
    ("operator-layers", "kavka_operator.domain.plan", "kavka_operator.quota.shadows"),
    ("operator-layers", "kavka_operator.reconcile.topics", "kavka_operator.loop.unexpected_errors"),
    ("operator", "kavka_cli.output", "kavka_broker.core.placement"),
    ("command", "kavka_operator.platform.local.up", "kavka_cli.output"),
    ("command", "kavka_operator.process.handlers", "kavka_audit.run"),
    ("extras", "kavka_cli.output", "kavka_top.once"),
    ("fixtures", "kavka_pytest.brokers", "kavka_cli.output"),
    ("fixtures", "kavka_pytest.proxy", "kavka_broker.runtime.server"),
    ("faults", "kavka_pytest.fault_plan", "time"),
    ("extras", "kavka_cli.commands.plan", "kavka_operator.process.lease"),
    ("extras", "kavka_cli.commands.plan", "kavka_operator.platform.kubernetes.live.node_workloads"),
    ("live", "kavka_operator.platform.local.up", "kavka_operator.platform.kubernetes.live.events"),
    ("kubernetes", "kavka_operator.platform.kubernetes.objects.pod_template", "kubernetes"),
    ("kubernetes", "kavka_operator.loop.requeue", "kopf"),
    (
        "kubernetes-layers",
        "kavka_operator.platform.kubernetes.objects.pod_template",
        "kavka_operator.platform.kubernetes.observe.node_objects",
    ),
    ("reconcile-layers", "kavka_operator.reconcile.rollout.roll", "kavka_operator.reconcile.cluster"),
    ("extras", "kavka_cli.commands.audit.verify", "kavka_audit.run"),
    ("audit", "kavka_audit.lake.rows", "kavka_broker.core.quota.entity"),
    ("members", "kavka_broker.cli", "kavka_operator.optional_libraries"),
)


def _copied(place: Path) -> Path:
    """The members and their contracts."""
    for member in MEMBERS:
        shutil.copytree(ROOT / member, place / member, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to plant in."""
    return _copied(tmp_path_factory.mktemp("walls"))


def _lint(copy: Path, *contracts: str) -> str:
    """What `lint-imports` says of the copy, on lines that end where its own do."""
    paths = os.pathsep.join(str(copy / Path(member).parent) for member in MEMBERS)
    command = [str(LINT), "--no-cache", *(f"--contract={contract}" for contract in contracts)]
    environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "400"}
    ran = subprocess.run(command, cwd=copy, env=environment, check=False, capture_output=True, text=True)
    assert (ran.returncode == 0) == ("0 broken." in ran.stdout), ran.stdout + ran.stderr
    return ran.stdout


def test_nothing_is_refused_before_something_is_planted(tmp_path: Path) -> None:
    assert "0 broken." in _lint(_copied(tmp_path))


@pytest.fixture(scope="module")
def lines(copy: Path) -> dict[tuple[str, str], int]:
    """Where all the imports stand that are planted here, together."""
    found = {}
    for _, source, target in PLANTS:
        file = _file(copy, source)
        text = file.read_text(encoding="utf-8")
        file.write_text(f"{text}\nimport {target}\n", encoding="utf-8")
        found[source, target] = text.count("\n") + 2
    return found


@cache
def refused(copy: Path, contract: str) -> str:
    """What a contract says of what is planted."""
    said = _lint(copy, contract)
    assert "0 kept, 1 broken." in said
    return " ".join(said.split())


@pytest.mark.parametrize(("contract", "source", "target"), PLANTS)
def test_a_planted_import_is_refused(
    copy: Path, lines: dict[tuple[str, str], int], contract: str, source: str, target: str
) -> None:
    assert f"{source} -> {target} (l.{lines[source, target]})" in refused(copy, contract)


def _file(copy: Path, module: str) -> Path:
    member, path = module.split(".", maxsplit=1)[0], module.replace(".", "/") + ".py"
    [root] = (copy / each for each in MEMBERS if each.endswith(f"/{member}"))
    return root.parent / path


def test_every_wall_is_tried() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {contract["id"] for contract in settings["tool"]["importlinter"]["contracts"]}
    assert contracts == {contract for contract, _, _ in PLANTS}
