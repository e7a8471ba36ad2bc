"""`KafkaCluster.spec.audit`: the brokers' audit trail, and the runs that answer questions from it.

A run is `kavka audit run` in a pod, by a schedule. DuckDB is one pod and writes to a volume, or to a bucket of an S3
store by way of a copy that goes with the pod; Spark is a driver and executors, which share a volume, or reach the
bucket each. Sizes are those of pods, from which Spark's own follow.
"""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kavka_operator.api.external import CaSecret, SecretRef
from kavka_operator.api.model import ListOf, Model, Rule
from kavka_operator.api.pods import Pod
from kavka_operator.api.quantity import Quantity
from kavka_operator.api.resource import Moment

EXECUTORS_MAX = 100
SPARK_SETTINGS_MAX = 64
MEMORY_MIN = 1 << 30
DAY_SECONDS = 24 * 60 * 60
MESSAGE_LENGTH_MAX = 4096
ANSWERS_MAX = 64

IMAGE_PATTERN = (
    r"^[a-zA-Z0-9][a-zA-Z0-9._/-]*(:[0-9]+/[a-zA-Z0-9._/-]+)?(:[a-zA-Z0-9_][a-zA-Z0-9._-]*)?(@sha256:[a-f0-9]{64})?$"
)
SCHEDULE_PATTERN = (
    r"^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[0-9*/,-]+ [0-9*/,-]+( [0-9A-Za-z*/,?-]+){3})$"
)
"""What looks like cron's five fields, or is a word for them. The API server judges the rest of it with the CronJob."""
CPU_PATTERN = r"^([0-9]{1,3}(\.[0-9]{1,3})?|[1-9][0-9]{1,5}m)$"

BUCKET_PATTERN = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"
PREFIX_PATTERN = r"^[A-Za-z0-9_=-][A-Za-z0-9._=-]*(/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*$"
ENDPOINT_PATTERN = r"^https?://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?/?$"
REGION_PATTERN = r"^[A-Za-z0-9-]+$"

SPARK_PREFIX = "spark."
SPARK_OWN_PREFIX = "spark.kubernetes."
SPARK_OWN = (
    "spark.master",
    "spark.driver.host",
    "spark.driver.bindAddress",
    "spark.driver.memory",
    "spark.driver.port",
    "spark.blockManager.port",
    "spark.executor.instances",
    "spark.executor.cores",
    "spark.executor.memory",
    "spark.executor.memoryOverhead",
    "spark.local.dir",
)
"""Settings of Spark that follow from other fields, beside all that begin with SPARK_OWN_PREFIX."""
SPARK_VALUE_PATTERN = r"^[^\x00-\x1f\x7f]*$"

Image = Annotated[str, Field(max_length=512, pattern=IMAGE_PATTERN)]
SparkConf = Annotated[
    dict[str, Annotated[str, Field(max_length=1024, pattern=SPARK_VALUE_PATTERN)]], Field(max_length=SPARK_SETTINGS_MAX)
]


def _may_be_set(name: str) -> bool:
    """Whether `sparkConf` may have a setting of Spark."""
    return name.startswith(SPARK_PREFIX) and not name.startswith(SPARK_OWN_PREFIX) and name not in SPARK_OWN


class Size(Model):
    """A size of a pod: it asks for both, and gets no more memory."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="quantity(string(self.memory)).compareTo(quantity('1Gi')) >= 0",
            message="is less than a run needs; write 1Gi or more",
            holds=lambda size: size.memory >= MEMORY_MIN,
            path="memory",
        ),
    )

    cpu: str = Field(
        default="500m",
        max_length=8,
        pattern=CPU_PATTERN,
        description="Processors, as 2 or 500m. An executor does as many tasks at a time as this has whole ones, and at"
        " least one.",
    )
    memory: Quantity = Field(default=2 << 30, description="Memory, as 2Gi: what it asks for, and all that it gets.")


class Executors(Model):
    """The executors of Spark, all alike."""

    instances: int = Field(default=1, ge=1, le=EXECUTORS_MAX, description="How many.")
    resources: Size = Field(default_factory=Size, description="The size of each.")


class AuditVolume(Model):
    """A PersistentVolumeClaim of the analytics. It stays when the analytics are taken out, and with the cluster."""

    size: Quantity = Field(description="How much to ask for. It may grow, and never shrinks.")
    storage_class_name: str | None = Field(
        default=None, max_length=253, description="The StorageClass to ask. It stays as it is."
    )
    access_mode: Literal["ReadWriteOnce", "ReadWriteMany"] = Field(
        default="ReadWriteOnce",
        description="ReadWriteOnce: executors run on the machine of their driver. ReadWriteMany: on any, where the"
        " StorageClass has such volumes. It stays as it is.",
    )


class AuditS3(Model):
    """A prefix of a bucket in an S3 store, which heeds If-None-Match and If-Match. Runs make no bucket."""

    bucket: str = Field(min_length=3, max_length=63, pattern=BUCKET_PATTERN, description="The bucket.")
    prefix: str | None = Field(
        default=None,
        min_length=1,
        max_length=512,
        pattern=PREFIX_PATTERN,
        description="What its objects begin with, as audit/main. A prefix has the trail of one cluster.",
    )
    endpoint: str | None = Field(
        default=None,
        max_length=512,
        pattern=ENDPOINT_PATTERN,
        description="The URL of the store, as https://s3.example.com. Left out: AWS.",
    )
    region: str = Field(
        default="us-east-1", min_length=1, max_length=64, pattern=REGION_PATTERN, description="The bucket's region."
    )
    addressing: Literal["Auto", "Path", "Virtual"] = Field(
        default="Auto",
        description="Path: the bucket is the first part of the path. Virtual: of the host's name. Auto: Virtual at AWS,"
        " Path at an endpoint.",
    )
    credentials_secret: SecretRef = Field(
        description="A Secret with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, where there is one,"
        " AWS_SESSION_TOKEN, which the runs have in their environment."
    )
    ca_secret: CaSecret | None = Field(
        default=None, description="Who has signed the store's certificate. Left out: whom the image trusts."
    )
    work_size: Quantity = Field(
        default=10 << 30,
        description="How much of the machine's disk a run may take; the pod of one that takes more is ended. DuckDB:"
        " room for all that is in the bucket, which it fetches each time. Spark: for all but the rows of the trail.",
    )


class AuditStorage(Model):
    """The place of the tables: a volume, or a bucket."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.volume) != has(self.s3)",
            message="is one place; write either volume or s3",
            holds=lambda storage: (storage.volume is None) != (storage.s3 is None),
        ),
    )

    volume: AuditVolume | None = Field(default=None, description="A volume of the analytics.")
    s3: AuditS3 | None = Field(default=None, description="A bucket of an S3 store.")


class Analytics(Model):
    """Runs of `kavka audit run` by a schedule. Kubernetes only."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=f"self.schedule.matches('{SCHEDULE_PATTERN}')",
            message='is no schedule as cron has it; write five fields such as "0 * * * *", or @hourly',
            holds=lambda analytics: re.fullmatch(SCHEDULE_PATTERN, analytics.schedule) is not None,
            path="schedule",
        ),
        Rule(
            cel="!has(self.executors) || self.engine == 'Spark'",
            message="are Spark's alone; write engine: Spark, or take executors out",
            holds=lambda analytics: analytics.executors is None or analytics.engine == "Spark",
            path="executors",
        ),
        Rule(
            cel="self.tableFormat != 'Delta' || self.engine != 'Spark'",
            message="Delta is DuckDB's alone where executors are pods; write engine: DuckDB, or tableFormat: Parquet",
            holds=lambda analytics: analytics.table_format != "Delta" or analytics.engine != "Spark",
            path="tableFormat",
        ),
        Rule(
            cel="!has(self.sparkConf) || self.engine == 'Spark'",
            message="is Spark's alone; write engine: Spark, or take sparkConf out",
            holds=lambda analytics: not analytics.spark_conf or analytics.engine == "Spark",
            path="sparkConf",
        ),
        Rule(
            # Without a regular expression: a name has no length that an API server knows, so that one costs too much.
            cel=f"!has(self.sparkConf) || self.sparkConf.all(key, key.startsWith('{SPARK_PREFIX}')"
            f" && !key.startsWith('{SPARK_OWN_PREFIX}') && !(key in {list(SPARK_OWN)}))",
            message="has a name that is none of Spark's, or a setting that follows from resources, executors, pod or"
            f" storage: any {SPARK_OWN_PREFIX}*, {', '.join(SPARK_OWN)}; take it out",
            holds=lambda analytics: all(map(_may_be_set, analytics.spark_conf)),
            path="sparkConf",
        ),
    )

    schedule: str = Field(
        max_length=100,
        description='When to run, as cron has it and by UTC: "0 * * * *" is once an hour. Run it more often than'
        " __audit_events forgets.",
    )
    engine: Literal["DuckDB", "Spark"] = Field(
        default="DuckDB",
        description="DuckDB: one pod. Spark: for more than a machine can read; the image audit-spark has it.",
    )
    table_format: Literal["Parquet", "Delta"] = Field(
        default="Parquet",
        description="Parquet: files in a layout of Kavka's own. Delta: tables of Delta Lake, experimental, by DuckDB"
        " alone. A volume or prefix keeps the format that it was begun with.",
    )
    image: Image | None = Field(
        default=None, description="The image of the analytics. Left out: that of the operator's own version."
    )
    user_secret: SecretRef | None = Field(
        default=None,
        description="Who the runs are, where listeners ask: a Secret with client.properties as Kafka's tools take it,"
        " bootstrap.servers among it. That of a KafkaUser is one; its rights are what the runs see.",
    )
    storage: AuditStorage = Field(description="Where the tables and the report go.")
    resources: Size = Field(default_factory=Size, description="The size of the pod that runs; of Spark, the driver.")
    executors: Executors | None = Field(default=None, description="The executors. Spark only; left out: one.")
    spark_conf: SparkConf = Field(
        default_factory=dict,
        description="More settings of Spark, by its names, as they stand in spark-defaults.conf. Spark only. They stand"
        " in an annotation of the pod: write no secret.",
    )
    pod: Pod = Field(default_factory=Pod, description="What the pods of a run have beside that.")
    time_limit_seconds: int = Field(
        default=3600, ge=60, le=7 * DAY_SECONDS, description="A run that takes longer is ended, and has failed."
    )


class Audit(Model):
    """The audit trail of the brokers, in the topic __audit_events."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.enabled || !has(self.analytics)",
            message="answer from the trail; write enabled: true, or take analytics out",
            holds=lambda audit: audit.enabled or audit.analytics is None,
            path="analytics",
        ),
    )

    enabled: bool = Field(
        default=True,
        description="Every broker keeps the trail. Its key is drawn once: on Kubernetes it is the Secret"
        " NAME-audit-key, which stays with the volumes; on the local platform the file audit.key of the cluster.",
    )
    analytics: Analytics | None = Field(
        default=None,
        description="Runs that answer from the trail. Taken out: they end, and their volume stays. Kubernetes only.",
    )


class AuditAnswer(Model):
    """The weight of the answer to a question."""

    question: str = Field(max_length=200, description="The question.")
    weight: Literal["wrong", "look", "tidy up", "well", "no data", "told"] = Field(
        description="wrong: records or entries are missing, or there twice. look: clients are refused or held back, or"
        " something is new. tidy up: something could go or be set better. no data: nothing was measured. told: an"
        " account of what was."
    )
    rows: int = Field(ge=0, description="The rows of its table.")


class AuditSummary(Model):
    """A run's last message: no names, so that all users who see the cluster may see it."""

    time: Moment = Field(description="When it was written.")
    answers: ListOf[AuditAnswer] = Field(
        default=(), max_length=ANSWERS_MAX, description="The answers, the heaviest first."
    )
    chains: str | None = Field(
        default=None, max_length=300, description="Whether the chains of the trail hold, and up to when."
    )


class AnalyticsStatus(Model):
    """The newest run of the analytics."""

    state: Literal["Waiting", "Running", "Succeeded", "Failed", "Refused"] = Field(
        description="Waiting: none has run. Refused: nothing runs; the message says why."
    )
    start_time: Moment | None = Field(default=None, description="When the newest run began.")
    success_time: Moment | None = Field(default=None, description="When a run last succeeded.")
    message: str | None = Field(
        default=None, max_length=MESSAGE_LENGTH_MAX, description="Why it failed, or is refused, and what to do."
    )
    summary: AuditSummary | None = Field(
        default=None, description="What a run said last; the report and the tables have the rest."
    )
