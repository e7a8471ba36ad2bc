"""The samples for Spark's two operators run a command of ours; Apache's operator knows each field of its own.

What that operator takes was read from its definition as it stood in August 2026, `spark.apache.org/v1`: no registry of
packages has it. A field that is not listed here is not known to be there. Kubeflow's own definition judges the other
sample, in `tests/kube/test_spark_samples.py`.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kavka_cli.app import parser
from tests.tidy.tree import ROOT
from tools.image.spark_pod import line_of

SAMPLES = ROOT / "examples" / "spark"
POD: dict[str, Any] = {}  # Kubernetes' own fields, which every pod has
TEXTS = "a map of texts"
APACHE = {
    "deploymentMode": ("ClientMode", "ClusterMode"),
    "runtimeVersions": {"sparkVersion": str, "scalaVersion": str, "jdkVersion": str},
    "pyFiles": str,
    "driverArgs": list,
    "sparkConf": TEXTS,
    "applicationTolerations": {
        "resourceRetainPolicy": ("Always", "Never", "OnFailure"),
        "restartConfig": {
            "restartPolicy": ("Always", "Never", "OnFailure", "OnInfrastructureFailure"),
            "restartBackoffMillis": int,
            "maxRestartAttempts": int,
        },
    },
    "driverSpec": {"podTemplateSpec": {"spec": POD}},
    "executorSpec": {"podTemplateSpec": {"spec": POD}},
}


def sample(name: str) -> Any:
    return yaml.safe_load((SAMPLES / f"{name}.yaml").read_text())


def faults(value: Any, wanted: Any, path: str = "spec") -> Iterator[str]:
    """What an operator would not take."""
    if wanted is POD:
        return
    if isinstance(wanted, dict):
        for key, part in value.items():
            if key not in wanted:
                yield f"{path}.{key} is no field"
            else:
                yield from faults(part, wanted[key], f"{path}.{key}")
    elif wanted is TEXTS:
        yield from (f"{path}.{key} is no text" for key, part in value.items() if not isinstance(part, str))
    elif isinstance(wanted, tuple):
        yield from [] if value in wanted else [f"{path}: {value} is none of {wanted}"]
    elif not isinstance(value, wanted) or (wanted is list and not all(isinstance(item, str) for item in value)):
        yield f"{path}: {value!r} is no {wanted.__name__}"


def test_apaches_operator_knows_each_field() -> None:
    found = sample("apache")
    assert (found["apiVersion"], found["kind"]) == ("spark.apache.org/v1", "SparkApplication")
    assert list(faults(found["spec"], APACHE)) == []
    assert found["spec"]["runtimeVersions"]["sparkVersion"], "which that operator demands"


def test_a_field_that_nobody_knows_is_found() -> None:
    assert list(faults({"driverArg": []}, APACHE)) == ["spec.driverArg is no field"]
    assert list(faults({"sparkConf": {"spark.ui.enabled": False}}, APACHE)) == [
        "spec.sparkConf.spark.ui.enabled is no text"
    ]
    assert len(list(faults({"applicationTolerations": {"resourceRetainPolicy": "Sometimes"}}, APACHE))) == 1


@pytest.mark.parametrize("name", ["apache", "kubeflow"])
def test_a_command_of_ours_in_the_image_is_run(name: str) -> None:
    spec = sample(name)["spec"]
    words, main, claim = {
        "kubeflow": lambda: (
            spec["template"]["arguments"],
            spec["template"]["mainApplicationFile"],
            spec["template"]["volumes"][0]["persistentVolumeClaim"]["claimName"],
        ),
        "apache": lambda: (
            spec["driverArgs"],
            spec["pyFiles"],
            spec["sparkConf"]["spark.kubernetes.driver.volumes.persistentVolumeClaim.data.options.claimName"],
        ),
    }[name]()
    options = parser().parse_args(words)
    assert (options.cluster, options.namespace, str(options.directory)) == ("main", "shop", "/data/audit")
    assert (options.engine, claim) == ("spark", "main-audit")
    place = main.removeprefix("local://")
    copied = f"COPY tools/image/spark_pod.py tools/image/kavka.py {place.rpartition('/')[0]}/"
    assert copied in (ROOT / "Dockerfile").read_text()
    assert line_of(["driver", main, *words], {}, ROOT)[-len(words) :] == words
