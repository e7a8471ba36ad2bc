"""Where executors find the files of a lake, and where they put what they have made.

`Here` is the directory of the lake: all of Spark is this process, or its executors share the directory. `Afar` is the
store that keeps the lake, for executors on other machines, which reach it by Hadoop's own file system (`s3a`). What
they make stands beside the lake, below a name that no other run has, until this process, which holds the lease, copies
it to its place within the store. So executors of a run that died may go on for a moment, and hurt nothing.

Each process finds credentials in its own environment. Spark would copy those of this one into the settings that it
sends to executors; they are taken out before anything is sent.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, Final, Protocol

from pyspark import SparkContext

from kavka_audit.engine import EngineError
from kavka_audit.lake.directory import Lake
from kavka_audit.spark.errors import told
from kavka_audit.store.address import Address
from kavka_audit.store.ca_certificates import BUNDLE, java_options
from kavka_audit.store.objects import Store

CREDENTIALS: Final = (
    "fs.s3.awsAccessKeyId",
    "fs.s3.awsSecretAccessKey",
    "fs.s3n.awsAccessKeyId",
    "fs.s3n.awsSecretAccessKey",
    "fs.s3a.access.key",
    "fs.s3a.secret.key",
    "fs.s3a.session.token",
)
"""Settings of Hadoop into which Spark copies credentials."""
SUFFIX: Final = ".parquet"


class Ground(Protocol):
    """Files of a lake as executors see them, by the paths that they have in its directory."""

    def address(self, file: Path) -> str:
        """Return the name that Spark has for a file, or for a directory."""

    def names(self, stage: Path) -> list[str]:
        """Return the names of the files that a job has written, in order. Raises LakeError."""

    def settle(self, file: Path, place: Path) -> None:
        """Have a file that a job has written take its place, where executors look for it. Raises LakeError."""

    def bring(self, file: Path) -> Path:
        """Return a file that a job has written, in this directory. Raises LakeError."""

    def clear(self, stage: Path) -> None:
        """Delete what a job has written and nothing has taken. Raises EngineError."""


class Here:
    """The directory of the lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def address(self, file: Path) -> str:
        """Return how Spark names a file of this machine, whatever file system is its default."""
        return f"file://{file.absolute()}"

    def names(self, stage: Path) -> list[str]:
        """Return the names of the files that a job has written."""
        return [file.name for file in sorted(stage.glob(f"*{SUFFIX}")) if not file.name.startswith(("_", "."))]

    def settle(self, file: Path, place: Path) -> None:
        """Have a file take its place."""
        self._lake.settle(file, place)

    def bring(self, file: Path) -> Path:
        """Return the file, which is here."""
        return file

    def clear(self, stage: Path) -> None:
        """Delete a directory."""
        rmtree(stage, ignore_errors=True)


class Afar:
    """The store that keeps the lake."""

    def __init__(self, spark: Any, address: Address, store: Store, lake: Lake) -> None:
        self._spark, self._address, self._store, self._lake = spark, address, store, lake
        self._sizes: dict[str, int] = {}

    def _key(self, file: Path) -> str:
        return file.relative_to(self._lake.directory).as_posix()

    def address(self, file: Path) -> str:
        """Return how Hadoop names an object."""
        return f"s3a://{str(self._address).removeprefix('s3://')}/{self._key(file)}"

    def names(self, stage: Path) -> list[str]:
        """Return the names of the objects that a job has written."""
        below = self._key(stage)
        found = {seen.key: seen.size for seen in self._store.list(below)}
        self._sizes |= found  # of other stages too: several jobs may be asked for at a time
        names = (key.removeprefix(f"{below}/") for key in found)
        return sorted(name for name in names if name.endswith(SUFFIX) and "/" not in name)

    def settle(self, file: Path, place: Path) -> None:
        """Have an object take its place, within the store."""
        key = self._key(file)
        self._lake.adopt(key, place, self._sizes.pop(key))

    def bring(self, file: Path) -> Path:
        """Fetch an object."""
        file.parent.mkdir(parents=True, exist_ok=True)
        self._store.fetch(self._key(file), file)
        return file

    def clear(self, stage: Path) -> None:
        """Delete what is below a name, with the empty objects by which Hadoop marks directories."""
        rmtree(stage, ignore_errors=True)
        with told(f"deleting {self.address(stage)}"):
            place = self._spark._jvm.org.apache.hadoop.fs.Path(self.address(stage))
            place.getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf()).delete(place, True)


def is_here(spark: Any) -> bool:
    """Whether all of Spark is this process."""
    return str(spark.sparkContext.master).split("[")[0] == "local"


@contextmanager
def afar(
    spark: Any, address: Address, store: Store, environment: Mapping[str, str] = os.environ
) -> Iterator[Callable[[Lake], Ground]]:
    """Give what makes the ground of a lake at an address, where Spark is ready for it. Raises EngineError."""
    for name, value in settings(address).items():
        spark.conf.set(name, value)
    known = spark.sparkContext._jsc.hadoopConfiguration()
    for name in CREDENTIALS:
        known.unset(name)
    with tempfile.TemporaryDirectory() as scratch:
        for name, value in _trusted(environment, Path(scratch)).items():
            SparkContext.setSystemProperty(name, value)
        yield partial(Afar, spark, address, store)


def _trusted(environment: Mapping[str, str], directory: Path) -> dict[str, str]:
    try:
        return java_options(environment, directory)
    except (OSError, ValueError) as problem:
        words = f"{environment[BUNDLE]} cannot be read as certificates in PEM: {problem}"
        raise EngineError(f"{BUNDLE}: {words}") from None


def settings(address: Address) -> dict[str, str]:
    """Return what Hadoop's file system is told of a store: nothing that is secret."""
    # Of the bucket alone: another that Spark has to do with may be elsewhere.
    own = f"fs.s3a.bucket.{address.bucket}"
    return {
        f"{own}.endpoint.region": address.region,
        f"{own}.path.style.access": str(not address.is_virtual).lower(),
        # Where AWS's own tools look, and the client of this process does.
        f"{own}.aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
        # Its other way reads ahead by a client that needs more libraries.
        f"{own}.input.stream.type": "classic",
        **({f"{own}.endpoint": address.endpoint} if address.endpoint else {}),
    }
