"""Run Apache Kafka's own compiled tests on Kavka, as the allow list has them.

    python -m tests.conformance.kafka_own                            all of the list
    python -m tests.conformance.kafka_own AutoTopicCreationTest      one class, by its last name or a part of it
    python -m tests.conformance.kafka_own --product both Transact    the same cases on Apache Kafka as well
    python -m tests.conformance.kafka_own --outside OffsetFetch      with the cases that the list leaves out
    python -m tests.conformance.kafka_own --class kafka.x.YTest      a class that the list does not name

The exit status is 1 where a case does not pass, or another number of cases passes than the list says. With `--outside`
and `--class`, where the list says nothing, it is 1 where a case does not pass.
"""

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.kafka_own.allow_list import CLASSES, OwnTests
from tests.conformance.kafka_own.runs import APACHE_KAFKA, KAVKA, run
from tests.conformance.kafka_own.verdicts import complaints, failures, pattern, table

BOTH = "both"


def main() -> int:
    chosen = options()
    classes = [one for one in CLASSES if not chosen.names or any(name in one.name for name in chosen.names)]
    if chosen.classes:
        classes = [OwnTests(name, passes=0) for name in chosen.classes]
    if not classes:
        raise SystemExit(f"error: the allow list has no class of these names: {' '.join(chosen.names)}")
    root = chosen.keep or Path(tempfile.mkdtemp(prefix="kavka-kafka-own-"))
    wrong: list[str] = []
    for product in (KAVKA, APACHE_KAFKA) if chosen.product == BOTH else (chosen.product,):
        for entry in classes:
            wrong += play(entry, root, product, chosen)
    print("\n".join(["", *(wrong or ["nothing is wrong"])]), flush=True)
    if chosen.keep is None:
        shutil.rmtree(root, ignore_errors=True)
    return 1 if wrong else 0


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="classes of the allow list, by a part of their names")
    parser.add_argument(
        "--product", choices=(KAVKA, APACHE_KAFKA, BOTH), default=KAVKA, help="Apache Kafka: the control"
    )
    parser.add_argument("--outside", action="store_true", help="play what the allow list leaves out, too")
    parser.add_argument("--class", action="append", dest="classes", help="a class by its full name; may be repeated")
    parser.add_argument("--seconds", type=float, default=1800.0, help="that one class may take at most")
    parser.add_argument("--keep", type=Path, help="keep logs in this directory")
    return parser.parse_args()


def play(entry: OwnTests, root: Path, product: str, chosen: argparse.Namespace) -> Sequence[str]:
    """Run a class, and print what came of it; answers what is not as the list says."""
    directory = root.absolute() / product / entry.name.rpartition(".")[2]
    left_out = "" if chosen.outside else pattern([entry])
    ran = run([entry.name], directory, product=product, left_out=left_out, seconds_max=chosen.seconds)
    print("\n".join(table(ran) or [f"{product} {entry.name}: no case, see {directory}"]), flush=True)
    return failures(ran) if chosen.outside or chosen.classes else complaints(ran, [entry])


if __name__ == "__main__":
    raise SystemExit(main())
