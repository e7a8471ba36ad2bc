"""The trail of a cluster, read by Spark for `kavka audit verify --engine spark`."""

from kavka_audit.engine import EngineError
from kavka_audit.spark.session import session
from kavka_audit.spark.source import KafkaSource
from kavka_audit.spark.verification import Foreign, Verification
from kavka_broker.core.audit.trail_check import TrailCheck
from kavka_cli.client_properties import java_properties
from kavka_cli.output import CommandError
from kavka_cli.target import Target
from kavka_operator.kafka.audit_topic import check_begin, trail_ranges


def read_by_spark(found: Target, check: TrailCheck, foreign: Foreign) -> None:
    """Read the trail into a check. Raises AdminError, CommandError and TooManyChainsError."""
    ranges = trail_ranges(found.bootstrap, found.security)
    source = KafkaSource(found.bootstrap, java_properties(found.security))
    try:
        with session() as spark:
            Verification(spark, source, check, foreign).read(ranges)
    except EngineError as error:
        raise CommandError(str(error)) from error
    begins = {partition: begin for partition, begin, _ in trail_ranges(found.bootstrap, found.security)}
    for partition, begin, _ in ranges:
        check_begin(partition, begin, begins.get(partition, -1))
