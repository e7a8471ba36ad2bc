"""The entry of the image of the analytics with Spark: what a pod of it runs.

Spark asks for its executors with the one argument `executor`, and tells the rest by environment variables. A driver
that a Spark operator makes has the argument `driver` and those of spark-submit behind it. Anything else is a command,
such as `kavka audit run`.

An executor trusts a store whose certificate the file of AWS_CA_BUNDLE vouches for: Java is told so before it starts.
"""

import os
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from kavka_audit.store.ca_certificates import java_options

BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
OPTION = "SPARK_JAVA_OPT_"
TOLD = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}
"""What an executor is told, by the variables in which Spark's scheduler says it."""


def line_of(
    words: Sequence[str], environment: Mapping[str, str], spark: Path, directory: Path | None = None
) -> list[str]:
    """The command line that these arguments ask for. `spark` is where pyspark is installed."""
    match list(words):
        case ["executor"]:
            return executor(environment, spark, directory or Path(tempfile.gettempdir()))
        case ["driver", *rest]:
            address = environment.get("SPARK_DRIVER_BIND_ADDRESS", "0.0.0.0")
            bound = ["--deploy-mode", "client", "--conf", f"spark.driver.bindAddress={address}"]
            return [str(spark / "bin" / "spark-submit"), *bound, *rest]
        case command:
            return command


def executor(environment: Mapping[str, str], spark: Path, directory: Path) -> list[str]:
    """The command line of an executor. Writes the file of whom it trusts to `directory`."""
    numbers = sorted(int(name.removeprefix(OPTION)) for name in environment if name.startswith(OPTION))
    options = [environment[f"{OPTION}{number}"] for number in numbers]
    trusted = java_options(environment, directory)
    options += [f"-D{name}={value}" for name, value in trusted.items()]
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    more = (environment.get("SPARK_CONF_DIR"), f"{spark}/jars/*", environment.get("SPARK_DIST_CLASSPATH"))
    path = ":".join(filter(None, (*more, environment.get("SPARK_CLASSPATH"))))
    told = [word for option, name in TOLD.items() for word in (option, environment[name])]
    java = f"{environment['JAVA_HOME']}/bin/java"
    return [java, *options, f"-Xms{memory}", f"-Xmx{memory}", "-cp", path, BACKEND, *told]


def main() -> None:
    """Become the process that the arguments ask for."""
    line = line_of(sys.argv[1:], os.environ, Path(sysconfig.get_path("purelib")) / "pyspark")
    os.execvp(line[0], line)


if __name__ == "__main__":
    main()
