"""`kavka audit run --engine spark` as a program for spark-submit, which starts Spark and names its settings and jars:

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0,io.delta:delta-spark_4.2_2.13:4.4.0 \
        examples/spark/audit_run.py --table-format delta --bootstrap 127.0.0.1:9092 --directory audit

The Python of the driver (PYSPARK_PYTHON) needs kavka[audit,delta]; executors need no Python.
"""

import sys

from kavka_cli import main

main(["audit", "run", "--engine", "spark", *sys.argv[1:]])
