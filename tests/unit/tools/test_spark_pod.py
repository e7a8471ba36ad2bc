"""The entry of the image with Spark: which process a pod of it becomes."""

from pathlib import Path

import pytest

from tools.image.spark_pod import line_of

SPARK = Path("/packages/pyspark")
TOLD = {
    "JAVA_HOME": "/java",
    "SPARK_DIST_CLASSPATH": "/jars/*",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
    "SPARK_EXECUTOR_ID": "2",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_EXECUTOR_MEMORY": "640m",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_EXECUTOR_POD_NAME": "kavka-audit-exec-2",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_JAVA_OPT_10": "-Dtenth",
    "SPARK_JAVA_OPT_9": "-Dninth",
}


def test_an_executor_has_its_heap_its_jars_and_what_its_driver_says() -> None:
    line = line_of(["executor"], TOLD, SPARK)
    assert line[:5] == ["/java/bin/java", "-Dninth", "-Dtenth", "-Xms640m", "-Xmx640m"]
    assert line[5:7] == ["-cp", "/packages/pyspark/jars/*:/jars/*"]
    told = dict(zip(line[8::2], line[9::2], strict=True))
    assert told["--driver-url"] == TOLD["SPARK_DRIVER_URL"]
    assert (told["--executor-id"], told["--podName"]) == ("2", "kavka-audit-exec-2")


def test_an_executor_trusts_whom_the_bundle_names(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.crt"
    bundle.write_text("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n")
    line = line_of(["executor"], {**TOLD, "AWS_CA_BUNDLE": str(bundle)}, SPARK, tmp_path)
    assert line[1:5] == [
        "-Dninth",
        "-Dtenth",
        f"-Djavax.net.ssl.trustStore={tmp_path / 'trusted.jks'}",
        "-Djavax.net.ssl.trustStoreType=JKS",
    ]
    assert b"X.509" in (tmp_path / "trusted.jks").read_bytes()


def test_an_executor_without_a_driver_does_not_begin() -> None:
    with pytest.raises(KeyError, match="SPARK_DRIVER_URL"):
        line_of(["executor"], {name: value for name, value in TOLD.items() if name != "SPARK_DRIVER_URL"}, SPARK)


def test_a_driver_of_a_spark_operator_is_submitted_where_it_is() -> None:
    line = line_of(["driver", "local:///opt/kavka/kavka.py", "audit"], {"SPARK_DRIVER_BIND_ADDRESS": "10.0.0.3"}, SPARK)
    assert line[0] == "/packages/pyspark/bin/spark-submit"
    assert line[1:5] == ["--deploy-mode", "client", "--conf", "spark.driver.bindAddress=10.0.0.3"]
    assert line[5:] == ["local:///opt/kavka/kavka.py", "audit"]


def test_a_command_is_run_as_it_is() -> None:
    assert line_of(["kavka", "audit", "run"], {}, SPARK) == ["kavka", "audit", "run"]
