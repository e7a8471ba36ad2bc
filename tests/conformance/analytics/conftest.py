"""One session of Spark for all tests here, with pyspark from the cache: its start takes longer than most of them."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from tools.spark_home import settings, spark_home

    others = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}
    given = settings(tmp_path_factory.mktemp("spark") / "conf", others)
    before = dict(os.environ)
    os.environ.update(given)
    sys.path.append(str(spark_home()))
    from kavka_audit.spark.session import session

    try:
        with session() as found:
            found.sparkContext.setLogLevel("OFF")  # tests make it fail on purpose
            yield found
    finally:
        sys.path.remove(str(spark_home()))
        os.environ.clear()
        os.environ.update(before)
