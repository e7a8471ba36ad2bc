"""The integration suites of projects that we did not write, on the fixture `kafka`: with the lines that their users
would change, and nothing else.

Each test that is left out, or fails, stands here with its reason. The suites are those of the source archives, at the
versions of the lock file. A test that fails otherwise runs once more: kafka-python forgets a subscription while an
older request for metadata is under way (`ClusterMetadata.set_topics` has a note of its authors), and reads nothing.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.sdists import unpacked

SECONDS_MAX = 900
AGAIN_MAX = 3
IMAGINED_PORT = "'9092'"


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite, by its project and path.

    `conftest` are a user's lines. `added` are files that the archive lacks, `edits` texts that are replaced by file.
    `left_out` and `fails` are tests by their ids, with the reason. `passes` are so many, or more where the machine has
    more libraries.
    """

    project: str
    tests: str
    passes: int
    conftest: str
    settings: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    added: Mapping[str, str] = field(default_factory=dict)
    edits: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    fails: Mapping[str, str] = field(default_factory=dict)


KAFKA_PYTHON = Suite(
    project="kafka-python",
    tests="test/integration",
    passes=50,
    environment={"KAFKA_VERSION": "4.3.0", "KAFKA_ROOT": "."},
    conftest="""\
import os
import pytest

@pytest.fixture(scope="session")
def kafka_config():  # as in the server.properties that the suite's own broker is started with
    return {
        "node.id": "0",
        "controller.quorum.voters": "0@127.0.0.1:9093",
        "num.partitions": "4",
        "group.min.session.timeout.ms": "1000",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
    }

@pytest.fixture(scope="session", autouse=True)
def kafka_uri(kafka):
    os.environ["KAFKA_URI"] = f"kafka://{kafka}"
""",
    # Parts of the suite that are not in the archive: what starts a JVM, which is not asked for here.
    added={
        "test/__init__.py": "",
        "test/service.py": """\
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def stop(self):
        pass

SpawnedService = None
""",
    },
    left_out={
        "test/integration/test_sasl_integration.py": "starts brokers with passwords; the fixture has no logins",
        "test/integration/test_ssl_integration.py": "starts a broker with certificates; the fixture has no TLS",
    },
    fails={
        "test/integration/test_admin_integration.py::test_describe_configs_broker_resource_returns_configs": (
            "asks where advertised.listeners is set; the fixture, whose port is drawn, does not set it"
        ),
    },
)
KOMBU = Suite(
    project="kombu",
    tests="t/integration/test_kafka.py",
    passes=30,
    settings="python_classes = test_*",
    conftest="""\
import os
import pytest

@pytest.fixture(scope="session", autouse=True)
def kafka_port(kafka):
    os.environ["KAFKA_PORT"] = str(kafka).rpartition(":")[2]
""",
    edits={
        "t/integration/test_kafka.py": {
            f"port={IMAGINED_PORT}": "port=os.environ['KAFKA_PORT']",
            "import pytest\n": "import os\n\nimport pytest\n",
        }
    },
    left_out={
        f"t/integration/test_kafka.py::{kind}::test_failed_{what}": "asks for what happens without a broker, for 12 s"
        for kind in ("test_KafkaBasicFunctionality", "test_KafkaFailover")
        for what in ("connect", "connection", "channel", "default_channel")
    },
)


@pytest.mark.parametrize("suite", [KAFKA_PYTHON, KOMBU], ids=lambda suite: suite.project)
def test_a_foreign_suite_passes_on_the_fixture(suite: Suite, tmp_path: Path) -> None:
    root = unpacked(suite.project, tmp_path)
    prepare(suite, root)
    outcomes = run(suite, root, suite.tests)
    unexpected = {name for name, outcome in outcomes.items() if outcome == "failed"} - set(suite.fails)
    if len(unexpected) <= AGAIN_MAX:
        outcomes |= run(suite, root, *unexpected) if unexpected else {}
    failed = {name for name, outcome in outcomes.items() if outcome == "failed"}
    assert failed == set(suite.fails), f"mend it, or say here why: {root / 'output.txt'}"
    assert list(outcomes.values()).count("passed") >= suite.passes


def prepare(suite: Suite, root: Path) -> None:
    """Make a user's changes to the suite."""
    for name, text in {**suite.added, "conftest.py": suite.conftest}.items():
        assert not (root / name).exists(), f"{name} is there already"
        (root / name).write_text(text)
    for name, replaced in suite.edits.items():
        text = (root / name).read_text()
        for before, after in replaced.items():
            assert before in text, f"{name} has no {before!r} any more"
            text = text.replace(before, after)
        (root / name).write_text(text)
    (root / "ours.ini").write_text(f"[pytest]\n{suite.settings}\n")


def run(suite: Suite, root: Path, *tests: str) -> dict[str, str]:
    """The outcome of each test by its id: passed, skipped or failed."""
    report = root / "report.xml"
    line = [sys.executable, "-m", "pytest", "-c", "ours.ini", "--rootdir", ".", "-p", "no:randomly", "-W", "ignore"]
    line += ["-p", "no:cacheprovider", "-q", "--junitxml", str(report), *sorted(tests)]
    line += [word for name in suite.left_out for word in ("--deselect", name)]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    with (root / "output.txt").open("w") as output:
        subprocess.run(
            line, cwd=root, env={**own, **suite.environment}, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            timeout=SECONDS_MAX, check=False,
        )  # fmt: skip
    assert report.exists(), (root / "output.txt").read_text()[-4000:]
    return dict(outcome(root, case) for case in ET.parse(report).getroot().iter("testcase"))


def outcome(root: Path, case: ET.Element) -> tuple[str, str]:
    """The id of a test, and its outcome."""
    words = case.get("classname", "").split(".")
    file = next(at for at in range(len(words), 0, -1) if (root / "/".join(words[:at])).with_suffix(".py").exists())
    name = "::".join(["/".join(words[:file]) + ".py", *words[file:], case.get("name", "")])
    if case.find("failure") is not None or case.find("error") is not None:
        return name, "failed"
    return name, "passed" if case.find("skipped") is None else "skipped"
