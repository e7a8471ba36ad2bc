"""Break a cluster of real processes and judge what its clients saw.

    python -m tests.chaos --minutes 30              three Kavka nodes, half an hour
    python -m tests.chaos --nodes 5 --seed 7        five of them, each fault once
    python -m tests.chaos --product apache-kafka    the same for Apache Kafka: is the judge fair?
    python -m tests.chaos --strangers --minutes 10  no faults: clients that nobody knows come and go beside one node

As root everything runs in namespaces of its own and all faults are possible; else those that need root are left out.
"""

import argparse
import dataclasses
import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos.disks import in_memory, leave
from tests.chaos.nemeses import ALL
from tests.chaos.network import enter, network
from tests.chaos.nodes import APACHE_KAFKA, KAVKA, make_cluster
from tests.chaos.run import Plan, run
from tests.chaos.soak import run as soak

SHORT = 3.0, 5.0
LONG = 4.0, 15.0
SOAK_MINUTES = 10.0


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--product", choices=(KAVKA, APACHE_KAFKA), default=KAVKA)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=0.0, help="0: each fault once")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", choices=[nemesis.name for nemesis in ALL], help="may be repeated")
    parser.add_argument("--strangers", action="store_true", help="judge the memory of a node beside unknown clients")
    parser.add_argument("--still", action="store_true", help="nobody moves replicas and votes meanwhile")
    parser.add_argument("--transactions", action="store_true", help="transactions beside, judged by tests/histories")
    parser.add_argument("--short", action="store_true", help="short faults")
    parser.add_argument("--json", type=Path, help="write the report there as well")
    parser.add_argument("--keep", type=Path, help="keep configurations, logs and data in this new directory")
    return parser.parse_args()


def soak_in_strangers(minutes: float) -> int:
    """Let strangers come and go; returns 1 where the broker or its known client felt that."""
    root = Path(tempfile.mkdtemp(prefix="kavka-soak-"))
    try:
        report = soak(root, minutes, lambda line: print(line, flush=True))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(report.text())
    return 1 if report.judge() else 0


def main() -> int:
    chosen = options()
    if chosen.strangers:
        return soak_in_strangers(chosen.minutes or SOAK_MINUTES)
    enter(["-m", "tests.chaos", *sys.argv[1:]])
    nemeses = [nemesis for nemesis in ALL if not chosen.only or nemesis.name in chosen.only]
    has_moves = chosen.product == KAVKA and not chosen.still
    plan = Plan(
        chosen.seed, SHORT if chosen.short else LONG, 1.0, chosen.minutes, nemeses,
        has_moves=has_moves, has_transactions=chosen.transactions,
    )  # fmt: skip
    node_ids = range(1, chosen.nodes + 1)
    root = Path(tempfile.mkdtemp(prefix="kavka-chaos-"))
    in_memory(root)
    cluster = make_cluster(chosen.product, node_ids, network(node_ids), root)
    try:
        report = run(cluster, plan, lambda line: print(line, flush=True))
        if chosen.keep:
            for node in cluster.nodes:
                node.kill()
            shutil.copytree(root, chosen.keep, symlinks=True, ignore=shutil.ignore_patterns("*.image", "proxy"))
    finally:
        cluster.close()
        leave(root)
        shutil.rmtree(root, ignore_errors=True)
    print(report.text())
    if chosen.json:
        content = dataclasses.asdict(report) | {"others": report.others.text()}
        chosen.json.write_text(json.dumps(content, indent=1))
    return 1 if report.anomalies else 0


if __name__ == "__main__":
    sys.exit(main())
