"""Nothing that a resource says, and no fault in a look, ends `kavka up` or a broker."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from kavka_operator.platform.local.files import write_whole
from tests.operator.local.records import Writer
from tests.operator.local.support import Kavka, wait_until

QUOTA = """\
apiVersion: kavka.dev/v1alpha1
kind: ClientQuota
metadata: {{name: other}}
spec: {{clusterRef: {{name: quickstart}}, entity: {{user: {{name: alice}}}}, limits: {{{limits}}}}}
"""


def up_detached(kavka: Kavka) -> int:
    code, said = kavka.run("up", "-f", str(kavka.file()), "--detach")
    assert code == 0, said
    return kavka.broker_pid


def ready(kavka: Kavka, kind: str, name: str) -> tuple[str, str, str]:
    code, said = kavka.run("get", kind, name, "-o", "json")
    assert code == 0, said
    found = [each for each in json.loads(said)["status"].get("conditions", ()) if each["type"] == "Ready"]
    return (found[0]["status"], found[0]["reason"], found[0]["message"]) if found else ("", "", "")


def change(path: Path, **parts: Any) -> None:
    """Write something into a stored file, as another version or a hand would."""
    value = yaml.safe_load(path.read_text())
    for part, fields in parts.items():
        value[part] = {**value.get(part, {}), **fields}
    write_whole(path, yaml.safe_dump(value))


def goes_on(kavka: Kavka, pid: int) -> None:
    """The broker is the same, takes records, and topics and quotas are still made."""
    assert kavka.broker_pid == pid
    writer = Writer(kavka, "flights")
    writer.start()
    writer.wait_for_more(50)
    writer.halt.set()
    writer.join()
    path = kavka.directory / "more.yaml"
    path.write_text(
        "apiVersion: kavka.dev/v1alpha1\nkind: Topic\nmetadata: {name: more}\nspec: {clusterRef: {name: quickstart}}\n"
    )
    code, said = kavka.run("apply", "-f", str(path))
    assert code == 0, said
    assert ready(kavka, "kvt", "more")[0] == "True"


@pytest.mark.parametrize("amount", [".inf", ".nan", "1.0e+308", "9" * 5000])
def test_a_number_that_is_none_is_refused_with_the_field_and_what_to_write(kavka: Kavka, amount: str) -> None:
    pid = up_detached(kavka)
    path = kavka.directory / "quota.yaml"
    for field in ("requestPercentage", "producerByteRate"):
        path.write_text(QUOTA.format(limits=f"{field}: {amount}"))
        code, said = kavka.run("apply", "-f", str(path))
        assert (code, "Traceback" in said) == (1, False), said
        assert f"spec.limits.{field}" in said or "quota.yaml:4" in said
        assert "write " in said
    goes_on(kavka, pid)


def test_what_an_earlier_version_let_in_is_told_of_and_can_be_deleted(kavka: Kavka) -> None:
    pid = up_detached(kavka)
    path = kavka.directory / "quota.yaml"
    path.write_text(QUOTA.format(limits="requestPercentage: 5"))
    assert kavka.run("apply", "-f", str(path))[0] == 0
    change(kavka.cluster / "resources" / "clientquota.other.yaml", spec={"limits": {"requestPercentage": float("inf")}})
    wait_until(lambda: ready(kavka, "kvq", "other")[1] == "Invalid", "it is told of")
    assert "spec.limits.requestPercentage: inf is out of range" in ready(kavka, "kvq", "other")[2]
    goes_on(kavka, pid)
    assert kavka.run("down")[0] == 0
    assert up_detached(kavka)
    code, said = kavka.run("delete", "kvq", "other")
    assert (code, "could not be understood" in said) == (0, True), said
    assert kavka.run("get", "kvq", "-o", "name")[1] == "clientquota.kavka.dev/backfill\n"


def test_fields_of_another_version_are_left_out(kavka: Kavka) -> None:
    pid = up_detached(kavka)
    for kind, name in (("kafkacluster", "quickstart"), ("topic", "flights"), ("clientquota", "backfill")):
        later = {"laterField": {"deep": [1]}}
        change(kavka.cluster / "status" / f"{kind}.{name}.yaml", **{f"{kind}Later": later})
        change(kavka.cluster / "resources" / f"{kind}.{name}.yaml", spec=later, metadata=later)
        assert kavka.run("get", kind, name)[0] == 0
    assert "Traceback" not in kavka.run("get", "all", "-o", "wide")[1]
    goes_on(kavka, pid)
    assert kavka.run("down")[0] == 0
    goes_on(kavka, up_detached(kavka))
    for kind, name in (("kvc", "quickstart"), ("kvt", "flights"), ("kvq", "backfill")):
        wait_until(lambda: ready(kavka, kind, name)[0] == "True", f"{name} is ready")  # noqa: B023 - awaited at once


def test_a_file_that_is_not_yaml_does_not_end_up(kavka: Kavka) -> None:
    pid = up_detached(kavka)
    for part in ("resources/kafkacluster.quickstart.yaml", "status/topic.flights.yaml", "resources/topic.flights.yaml"):
        write_whole(kavka.cluster / part, "{not: [yaml")
    for kind, name in (("kvt", "flights"), ("kvc", "quickstart")):
        wait_until(lambda: ready(kavka, kind, name)[1] == "Invalid", f"{name} is told")  # noqa: B023 - awaited at once
    os.kill(pid, signal.SIGKILL)
    log = kavka.cluster / "logs" / "up.log"
    wait_until(lambda: log.read_text().count("answers on") == 2, "the broker is started again")
    code, said = kavka.run("apply", "-f", str(kavka.file()))
    assert code == 0, said
    goes_on(kavka, kavka.broker_pid)


def test_a_status_directory_that_cannot_be_written_does_not_end_up(kavka: Kavka) -> None:
    pid = up_detached(kavka)
    status = kavka.cluster / "status"
    status.rename(kavka.cluster / "aside")
    status.write_text("no directory")
    kavka.run("apply", "-f", str(kavka.file(config="{log.retention.ms: 123456789}")))
    log = kavka.cluster / "logs" / "up.log"
    wait_until(lambda: "NotADirectoryError" in log.read_text(), "it says so")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: log.read_text().count("answers on") == 2, "the broker is started again")
    assert log.read_text().count("Traceback") == 1, "once"
    status.unlink()
    (kavka.cluster / "aside").rename(status)
    assert kavka.run("apply", "-f", str(kavka.file()))[0] == 0, "a change is looked at without waiting for the next try"
    goes_on(kavka, kavka.broker_pid)
