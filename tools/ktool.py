"""Run one of Apache Kafka's command line tools by the name of its script.

python -m tools.ktool topics --bootstrap-server 127.0.0.1:9092 --list
python -m tools.ktool --list
"""

import os
import sys
from typing import Final

from tools.cache import cache
from tools.kafka_jars import class_path
from tools.kafka_jvm import java

_TOOLS: Final = "org.apache.kafka.tools"
CLASSES: Final = {
    "acls": f"{_TOOLS}.AclCommand",
    "broker-api-versions": f"{_TOOLS}.BrokerApiVersionsCommand",
    "client-metrics": f"{_TOOLS}.ClientMetricsCommand",
    "cluster": f"{_TOOLS}.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": f"{_TOOLS}.consumer.ConsoleConsumer",
    "console-producer": f"{_TOOLS}.ConsoleProducer",
    "console-share-consumer": f"{_TOOLS}.consumer.ConsoleShareConsumer",
    "consumer-groups": f"{_TOOLS}.consumer.group.ConsumerGroupCommand",
    "consumer-perf-test": f"{_TOOLS}.ConsumerPerformance",
    "delegation-tokens": f"{_TOOLS}.DelegationTokenCommand",
    "delete-records": f"{_TOOLS}.DeleteRecordsCommand",
    "dump-log": f"{_TOOLS}.DumpLogSegments",
    "e2e-latency": f"{_TOOLS}.EndToEndLatency",
    "features": f"{_TOOLS}.FeatureCommand",
    "get-offsets": f"{_TOOLS}.GetOffsetShell",
    "groups": f"{_TOOLS}.GroupsCommand",
    "leader-election": f"{_TOOLS}.LeaderElectionCommand",
    "log-dirs": f"{_TOOLS}.LogDirsCommand",
    "metadata-quorum": f"{_TOOLS}.MetadataQuorumCommand",
    "metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "producer-perf-test": f"{_TOOLS}.ProducerPerformance",
    "reassign-partitions": f"{_TOOLS}.reassign.ReassignPartitionsCommand",
    "replica-verification": f"{_TOOLS}.ReplicaVerificationTool",
    "server": "kafka.Kafka",
    "share-groups": f"{_TOOLS}.consumer.group.ShareGroupCommand",
    "storage": "kafka.tools.StorageTool",
    "streams-groups": f"{_TOOLS}.streams.StreamsGroupCommand",
    "topics": f"{_TOOLS}.TopicCommand",
    "transactions": f"{_TOOLS}.TransactionsCommand",
    "verifiable-consumer": f"{_TOOLS}.VerifiableConsumer",
    "verifiable-producer": f"{_TOOLS}.VerifiableProducer",
    "verifiable-share-consumer": f"{_TOOLS}.VerifiableShareConsumer",
}

# Warnings to stderr, so that a tool's own output stands alone on stdout.
LOGGING: Final = """\
status = error
appender.stderr.type = Console
appender.stderr.name = STDERR
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = ${env:LOG_LEVEL:-WARN}
rootLogger.appenderRef.stderr.ref = STDERR
"""


def jvm(heap: str) -> list[str]:
    """The start of a command line of java, before its class path, of a program that logs as Kafka's tools do."""
    logging = cache("ktool") / "log4j2.properties"
    if not logging.exists() or logging.read_text() != LOGGING:
        logging.write_text(LOGGING)
    return [*java(heap), f"-Dlog4j2.configurationFile={logging}"]


def command(name: str, *arguments: str, heap: str = "256M") -> list[str]:
    """The java command line of a tool."""
    return [*jvm(heap), "-cp", class_path(), CLASSES.get(name, name), *arguments]


def main() -> None:
    """Become the tool."""
    match sys.argv[1:]:
        case [] | ["--help" | "-h"]:
            raise SystemExit(__doc__)
        case ["--list"]:
            print("\n".join(CLASSES))
        case [name, *_] if name not in CLASSES and "." not in name:
            raise SystemExit(f"error: no tool is called {name!r}; --list names them")
        case [name, *arguments]:
            line = command(name, *arguments)
            os.execvp(line[0], line)


if __name__ == "__main__":
    main()
