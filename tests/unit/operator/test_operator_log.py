"""The operator's log: lines of JSON, and of its libraries what nobody else tells."""

import json
import subprocess
import sys

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
