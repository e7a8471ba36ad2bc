"""Spark for the tests and the bench: pyspark as requirements/lock.txt pins it, and the jars that it does not bring.

Both are fetched once into the user's cache, which knows them by the checksum of what they were made from; nothing of it
is in the development environment, which would be three times as large.

    python -m tools.spark_home        fetches what is missing, and prints where pyspark is
    python -m tools.spark_home jars   fetches the jars alone, as the image of the analytics has them

The jars of Delta Lake are apart, as the image does not have them.
"""

import fcntl
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache as once
from pathlib import Path

from tools.cache import cache, cache_home
from tools.kafka_jars import fetch

ROOT = Path(__file__).parent.parent
HERE = Path(__file__).parent / "spark"
DELTA = HERE / "delta"
REQUIREMENTS = ROOT / "requirements"
WANTED, LOCK = REQUIREMENTS / "audit.in", REQUIREMENTS / "lock.txt"
# pyspark is an archive of 450 MB, of which pip builds a wheel: 900 s were too few on a busy machine.
FETCH_SECONDS_MAX = 3600


def packages() -> Path:
    """The directory with pyspark and what it needs, for this version of Python, fetched or not."""
    return cache_home() / "kavka" / "spark" / f"{sys.implementation.cache_tag}-{digest(pins().encode())}"


def jars() -> Path:
    """The directory with the jars, fetched or not."""
    return cache_home() / "kavka" / "spark" / f"jars-{checksum(HERE / 'pom.xml', HERE / 'jars.sha256')}"


@once
def pins() -> str:
    """The lines of the lock for what audit.in names: another version of them is another directory."""
    names = re.findall(r"^[a-z0-9-]+", WANTED.read_text(), re.MULTILINE)
    return "\n".join(re.findall(rf"^(?:{'|'.join(names)})==\S+", LOCK.read_text(), re.MULTILINE))


@once
def checksum(*files: Path) -> str:
    """What is in files, as a few letters."""
    return digest(b"".join(file.read_bytes() for file in files))


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def delta_jars() -> Path:
    """The directory with the jars of Delta Lake, fetched or not."""
    return cache_home() / "kavka" / "spark" / f"delta-{checksum(DELTA / 'pom.xml', DELTA / 'jars.sha256')}"


def is_fetched() -> bool:
    """Whether all of it is there."""
    return packages().exists() and jars().exists() and delta_jars().exists()


def spark_home() -> Path:
    """Where pyspark is, with the jars beside; all are fetched where they are not there."""
    with (cache("spark") / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not packages().exists():
            install(packages())
        if not jars().exists():
            fetch(jars(), HERE)
        if not delta_jars().exists():
            fetch(delta_jars(), DELTA)
    return packages()


def spark_jars() -> Path:
    """Where the jars are, which are fetched where they are not there; without pyspark."""
    with (cache("spark") / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars().exists():
            fetch(jars(), HERE)
    return jars()


def install(directory: Path) -> None:
    """Have pip put the pinned packages into a directory, which appears as a whole."""
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        target = Path(scratch) / "packages"
        line = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--target", str(target)]
        subprocess.run(
            [*line, "-c", str(LOCK), "-r", str(WANTED)], check=True, timeout=FETCH_SECONDS_MAX, stdout=sys.stderr
        )
        target.rename(directory)


def settings(directory: Path, others: Mapping[str, str] | None = None) -> dict[str, str]:
    """Write a directory with settings for Spark, and return the environment in which a program finds it and pyspark."""
    home = spark_home()
    directory.mkdir(parents=True, exist_ok=True)
    listed = ",".join(str(jar) for found in (jars(), delta_jars()) for jar in sorted(found.glob("*.jar")))
    lines = {"spark.jars": listed, **(others or {})}
    (directory / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
    # Its own workers are given this path too.
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(home))))
    return {"SPARK_CONF_DIR": str(directory), "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}


if __name__ == "__main__":
    print(spark_jars() if sys.argv[1:] == ["jars"] else spark_home())
