"""The operator's log: lines of JSON, and of its libraries what nobody else tells."""

import json
import os
import subprocess
import sys
from pathlib import Path

SAYS = """
import logging, warnings
from kavka_operator.process import logs

logs.to_stderr()
logging.getLogger("kafka.net.manager").error("Connection failed: KafkaConnectionError: 111 ECONNREFUSED")
logging.getLogger("kopf.objects").info("Handler 'on_topic' succeeded.")
logging.getLogger("kopf.objects").warning("Something to know.")
warnings.warn("a library's own warning", UserWarning, stacklevel=1)
logging.getLogger("kavka_operator.process").info("cluster.not_answering", extra={"cluster": "default/main"})
"""


def test_each_line_is_json_and_connections_of_the_library_are_left_out() -> None:
    ran = subprocess.run([sys.executable, "-c", SAYS], check=True, capture_output=True, text=True)
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    assert [(line["logger"], line["level"]) for line in lines] == [
        ("kopf.objects", "warning"),
        ("py.warnings", "warning"),
        ("kavka_operator.process", "info"),
    ]
    assert "a library's own warning" in lines[1]["event"]
    assert lines[2]["cluster"] == "default/main"


IN_A_POD = """
import asyncio
from kubernetes.aio.config import ConfigException
from kavka_operator.process import logs, operator

logs.to_stderr()
try:
    asyncio.run(operator.load_access())
except ConfigException:
    print("asked the pod")
"""


def test_that_a_pod_has_no_kubeconfig_is_no_warning(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    line = [sys.executable, "-c", IN_A_POD]
    ran = subprocess.run(line, check=True, capture_output=True, text=True, env={**environment, "HOME": str(tmp_path)})
    assert (ran.stdout, ran.stderr) == ("asked the pod\n", "")
