"""The demo's audit trail: kept by all of its brokers, and asked at the end who did what."""

import secrets
import tempfile
import time
from pathlib import Path

import yaml
from rich.console import Console

from kavka_audit.run import Outcome
from kavka_audit_run.main import Wanted, ask_trail
from kavka_cli.target import TargetOptions
from kavka_operator.kafka.admin import AdminError

INTERVAL_MS = 1_000
TOLD_SECONDS_MAX = 30.0
POLL_SECONDS = 1.0
SHOWN = ("top_talkers", "throttle_incidents", "quota_recommendations", "config_changes", "lineage", "audit_gaps")


class AuditedError(Exception):
    """The audit trail does not tell what the demo did; the message says what is missing."""


def audited(quickstart: Path, state: Path) -> Path:
    """Write the example with a key for the audit trail beside it; returns the file."""
    key = state / "audit.key"
    key.touch(mode=0o600)
    key.write_text(secrets.token_hex(32), encoding="ascii")
    documents = list(yaml.safe_load_all(quickstart.read_text(encoding="utf-8")))
    for document in documents:
        if document["kind"] == "KafkaCluster":
            config = document["spec"].setdefault("config", {})
            config |= {"kavka.audit.key.file": str(key), "kavka.audit.interval.ms": INTERVAL_MS}
    file = state / "audited.yaml"
    file.write_text(yaml.safe_dump_all(documents, sort_keys=False), encoding="utf-8")
    return file


def answered(console: Console, bootstrap: str, throttled: str) -> Path:
    """Ask the trail until it tells of the throttled client, and print what it says; returns the page. Raises
    AuditedError.
    """
    directory = Path(tempfile.mkdtemp(prefix="kavka-audit-"))
    console.print(f"$ kavka audit run --directory {directory}")
    until = time.monotonic() + TOLD_SECONDS_MAX
    while not tells(outcome := _asked(bootstrap, directory), throttled):
        if time.monotonic() > until:
            raise AuditedError(f"the audit trail does not tell that client {throttled} was throttled")
        time.sleep(POLL_SECONDS)
    for name in SHOWN:
        console.print(f"  {outcome.tables[name].question.title} {outcome.answer(name)}", soft_wrap=True, markup=False)
    console.print()
    return Path(outcome.page)


def tells(outcome: Outcome, throttled: str) -> bool:
    """Whether the trail tells that the client was throttled, and who else used topics."""
    held = {row["client_id"] for row in outcome.tables["throttle_incidents"].dicts()}
    return throttled in held and outcome.tables["top_talkers"].count > 1


def _asked(bootstrap: str, directory: Path) -> Outcome:
    try:
        return ask_trail(TargetOptions(bootstrap), Wanted(directory))[0]
    except AdminError as error:
        raise AuditedError(str(error)) from error
