"""`kavka quota recommend`: limits that fit what clients do, as a resource file to review."""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence

from kavka_cli.duration import parse_duration
from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError, complain, say
from kavka_cli.suggested_quotas import How, cluster_name, file_of
from kavka_cli.target import LABELS, Target, add_target, find_target, target_options
from kavka_operator.api.quota import AnyEntity
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.broker_metrics import Page, growth, read_pages
from kavka_operator.kafka.offsets_and_lag import Onlooker
from kavka_operator.kafka.prometheus import kept
from kavka_operator.quota.recommendation import Observed, Samples, recommend

HELP = "Print a resource file with limits that fit what clients do: to review, and to observe before it is enforced."
EVERY_SECONDS = 2.0
SECONDS_MAX = 30 * 86_400.0


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka quota recommend`."""
    add_state_directory(parser)
    add_target(parser)
    parser.add_argument("--for", dest="duration", default="60s", metavar="TIME", help="How long (%(default)s).")
    words = "Ask a Prometheus for the time that has passed, and do not wait."
    parser.add_argument("--prometheus", metavar="URL", help=words)
    words = "How much more than the demand a limit allows, as a factor (%(default)s)."
    parser.add_argument("--headroom", type=float, default=1.3, metavar="FACTOR", help=words)
    words = "Which demand: so many per cent of the time it was not above it (%(default)s)."
    parser.add_argument("--percentile", type=float, default=95.0, metavar="PERCENT", help=words)


def run(options: Namespace) -> int:
    """Print resources with limits that fit; the exit code."""
    how = How(options.duration, options.prometheus, options.headroom, options.percentile)
    try:
        asked = target_options(options, labels=LABELS)
        seconds = _seconds(how)
        found = find_target(asked)
        limits = _limits(found)
        observed = _observed(found, how, seconds)
    except (CommandError, AdminError) as error:
        return complain(error)
    recommendations = recommend(observed, limits, headroom=how.headroom, percent=how.percent)
    if not recommendations:
        return complain(CommandError("no client used anything that brokers measure in this time"))
    cluster = cluster_name(asked, found)
    say("\n".join(file_of(recommendations, cluster, found.namespace, found.owners, how)))
    return 0


def sampled(
    urls: Sequence[str],
    seconds: float,
    read: Callable[[Sequence[str]], Mapping[str, Page]] = read_pages,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> dict[Observed, Samples]:
    """Samples of the metrics pages in this time. Raises CommandError where none answers."""
    observed: dict[Observed, Samples] = {}
    before: tuple[float, Mapping[str, Page]] = (clock(), {})
    for number in range(1 + int(seconds / EVERY_SECONDS)):
        if number:
            sleep(EVERY_SECONDS)
        at_s, pages = clock(), read(urls)
        if not pages and not before[1]:
            raise CommandError("no metrics page answers")
        for broker, page in pages.items():
            _note(observed, broker, page, before[1].get(broker), at_s - before[0])
        before = at_s, pages
    return observed


def _note(observed: dict[Observed, Samples], broker: str, page: Page, before: Page | None, seconds: float) -> None:
    """Add a sample of each client of a page. Of who is under no quota the rate is what was counted meanwhile."""
    for key, figures in page.clients.items():
        counted = growth(figures, before.clients.get(key) if before is not None else None, seconds)
        who = Observed(key.user, key.client_id, key.kind, broker)
        rate = figures.rate if figures.rate is not None else counted
        observed.setdefault(who, Samples()).add(rate, figures.demand)


def _seconds(how: How) -> float:
    """The seconds to observe. Raises CommandError where an option cannot be meant."""
    seconds = parse_duration(how.duration)
    if not 0 < seconds <= SECONDS_MAX:
        raise CommandError("--for is more than 0s and at most 30 days")
    if not 0 < how.percent <= 100:
        raise CommandError("--percentile is above 0 and at most 100")
    if not 1 <= how.headroom <= 100:
        raise CommandError("--headroom is from 1 to 100")
    return seconds


def _observed(found: Target, how: How, seconds: float) -> dict[Observed, Samples]:
    """Samples of clients' traffic, from Prometheus or from the brokers' pages. Raises CommandError and AdminError."""
    if how.prometheus is not None:
        return kept(how.prometheus, seconds, time.time())
    if not found.urls:
        raise CommandError("Kafka's API does not tell usage; name metrics pages with --metrics, or a --prometheus")
    sys.stderr.write(f"watching {len(found.urls)} metrics pages for {seconds:g} s\n")
    return sampled(found.urls, seconds)


def _limits(found: Target) -> dict[AnyEntity, dict[str, float]]:
    admin = Onlooker(found.bootstrap, found.security)
    try:
        return admin.quotas()
    finally:
        admin.close()
