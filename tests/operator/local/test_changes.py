"""`kavka wait`, `diff` and `--dry-run` beside a cluster that runs: what they say is what then happens."""

import os
import signal

from tests.operator.local.support import Kavka

MORE = """---
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata: {name: more}
spec: {clusterRef: {name: quickstart}, partitions: 3}
"""


def test_what_a_dry_run_and_a_diff_say_is_what_apply_does(kavka: Kavka) -> None:
    kavka.up()
    file = kavka.file(more=MORE, config="{log.retention.ms: 86400000, queued.max.requests: 400}")
    file.write_text(file.read_text().replace("partitions: 2", "partitions: 5").replace("1Mi", "3Mi"))
    before = kavka.everything()
    assert kavka.run("apply", "-f", str(file), "--dry-run=server") == (
        0,
        """\
kafkacluster.kavka.dev/quickstart configured (server dry run)
  set log.retention.ms=86400000 on all brokers, without a restart
  restart node 0: queued.max.requests has changed
topic.kavka.dev/flights configured (server dry run)
  add partitions to topic "flights", to have 5
topic.kavka.dev/more created (server dry run)
  create topic "more"
clientquota.kavka.dev/backfill configured (server dry run)
  set producer_byte_rate=3Mi for client-id=backfill
""",
    )
    code, said = kavka.run("diff", "-f", str(file))
    assert (code, [line for line in said.splitlines() if line.startswith(("+ ", "- "))]) == (
        1,
        [
            "-  config: {}",
            "+  config:",
            "+    log.retention.ms: 86400000",
            "+    queued.max.requests: 400",
            "-  partitions: 2",
            "+  partitions: 5",
            "+  name: more",
            "+  namespace: default",
            "+  clusterRef:",
            "+    name: quickstart",
            "+  partitions: 3",
            "-    producerByteRate: 1Mi",
            "+    producerByteRate: 3Mi",
        ],
    ), said
    assert kavka.everything() == before, "nothing of it was done"
    assert kavka.run("wait", "--for=condition=Ready", "kvt/more", "--timeout=0")[0] == 1
    told = len(kavka.said)
    assert kavka.run("apply", "-f", str(file))[0] == 0
    assert kavka.run("wait", "--for=condition=Ready", "-f", str(file), "--timeout=60s") == (
        0,
        """\
kafkacluster.kavka.dev/quickstart condition met
topic.kavka.dev/flights condition met
topic.kavka.dev/more condition met
clientquota.kavka.dev/backfill condition met
""",
    )
    done = set(kavka.said[told:].splitlines())
    assert done >= {
        "set log.retention.ms=86400000 on all brokers, without a restart",
        "restart node 0: queued.max.requests has changed",
        'add partitions to topic "flights", to have 5',
        'create topic "more"',
        "set producer_byte_rate=3Mi for client-id=backfill",
    }, kavka.said
    assert kavka.run("diff", "-f", str(file)) == (0, "")


def test_what_kafka_would_refuse_is_said_before_it_is_asked_for(kavka: Kavka) -> None:
    kavka.up()
    file = kavka.file()
    file.write_text(file.read_text().replace("partitions: 2", "partitions: 100000"))
    code, said = kavka.run("apply", "-f", str(file), "--dry-run=server")
    refused = 'error: Topic "flights": Rejected: could not add partitions to topic "flights", to have 100000: '
    assert (code, refused in said) == (1, True), said
    assert kavka.run("get", "kvt", "-o", "jsonpath")[0] == 2, "a form that there is not"
    assert kavka.run("get", "kvt/flights")[1].splitlines()[1].split()[2] == "2"


def test_wait_says_why_it_is_not_so(kavka: Kavka) -> None:
    kavka.up()
    wait = ("wait", "--for=condition=Ready", "kvc/quickstart")
    assert kavka.run(*wait) == (0, "kafkacluster.kavka.dev/quickstart condition met\n")
    os.kill(kavka.started[0].pid, signal.SIGKILL)
    kavka.started[0].wait()
    code, said = kavka.run(*wait, "--timeout=0")
    begin, lack = said.split("quickstart: ")
    assert (code, begin) == (1, "error: timed out waiting for the condition on kafkacluster.kavka.dev/")
    assert lack == "Ready is Unknown: Stopped: not running; start it with `kavka up`\n"
