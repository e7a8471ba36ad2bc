"""Apache Kafka's own jars: fetched once by Maven, checked against the hashes of tools/kafka/jars.sha256.

They are an oracle: the generator reads the schemas in them, the conformance tests run their clients and tools, the
bench runs their broker. `kafka_jars()` answers the directory and fetches only when it has to:

    python -m tools.kafka_jars        prints the directory
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.cache import cache_home

VERSION = "4.3.1"
NEWER_VERSION = "4.4.0"
HERE = Path(__file__).parent / "kafka"
FETCH_SECONDS_MAX = 600
COMPLETE = ".complete"


def kafka_jars() -> Path:
    """The directory with Apache Kafka's jars."""
    directory = libraries()
    if not is_fetched():
        fetch(directory, HERE)
        (directory.parent / COMPLETE).touch()
    return directory


def libraries() -> Path:
    """The place of the jars, fetched or not."""
    return cache_home() / "kavka-kafka" / VERSION / "libs"


def is_fetched() -> bool:
    """Whether all jars are there."""
    return (libraries().parent / COMPLETE).exists()


def class_path() -> str:
    """The class path for `java -cp`."""
    return f"{kafka_jars()}/*"


def newer_jars() -> Path:
    """The directory with the jars of the newest Apache Kafka, which is asked for what `VERSION` has not: 54 MB."""
    return _more_jars("newer", NEWER_VERSION)


def newer_class_path() -> str:
    """The class path of the newest Apache Kafka's broker, tools and clients."""
    return f"{newer_jars()}/*"


def streams_class_path() -> str:
    """The class path of Kafka Streams, whose jars are fetched where they are not there yet: 70 MB are RocksDB."""
    return f"{_more_jars('streams')}/*"


def connect_class_path() -> str:
    """The class path of Kafka Connect with MirrorMaker 2 and the connector of files."""
    return f"{class_path()}:{_more_jars('connect')}/*"


def flink_class_path() -> str:
    """The class path of Flink and its Kafka connector, with the client that this needs: 85 MB."""
    return f"{_more_jars('flink')}/*"


def former_client_class_path() -> str:
    """The class path of the client of Apache Kafka 3.9, which stands ahead of the present one."""
    return f"{_more_jars('clients-3.9')}/*:{class_path()}"


def class_path_of_tests() -> str:
    """The class path of Apache Kafka's own compiled tests, behind Apache Kafka's: 110 MB, of which 70 are RocksDB."""
    return f"{_more_jars('tests')}/*"


def _more_jars(name: str, cached_as: str = "") -> Path:
    """The directory of what tools/kafka/NAME lists, fetched where it is not there yet."""
    directory = cache_home() / "kavka-kafka" / (cached_as or f"{VERSION}-{name}") / "libs"
    if not (directory.parent / COMPLETE).exists():
        fetch(directory, HERE / name)
        (directory.parent / COMPLETE).touch()
    return directory


def fetch(directory: Path, here: Path) -> None:
    """Copy what the pom.xml of `here` names into the directory: all of it with the right hashes, or nothing."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        fetched = Path(scratch) / "libs"
        copy = f"-DoutputDirectory={fetched}"
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", copy]
        command = ["mvn", "-q", "-B", "-f", str(here / "pom.xml"), *goal]
        subprocess.run(command, check=True, timeout=FETCH_SECONDS_MAX, stdout=sys.stderr)
        verify(fetched, here / "jars.sha256")
        if directory.exists():
            shutil.rmtree(directory)
        fetched.rename(directory)


def verify(directory: Path, listed: Path) -> None:
    """Check that every jar of the list is there with its hash, and no other. Raises SystemExit."""
    lines = [line.split() for line in listed.read_text().splitlines()]
    wanted = {name: digest for digest, name in lines}
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in directory.glob("*.jar")}
    if found != wanted:
        differing = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
        raise SystemExit(f"error: the jars differ from {listed}: {differing}")


if __name__ == "__main__":
    print(kafka_jars())
