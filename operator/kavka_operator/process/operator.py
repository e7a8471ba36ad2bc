"""`kavka-operator`: the operator's process on Kubernetes.

One process at a time acts, the one that holds the lease; another waits for it and watches nothing. Whoever loses the
lease stops at once, so that two never act, and waits in line again. Where something of it may still act, it ends.
"""

import asyncio
import logging
import os
import signal
import socket
import time
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import kopf
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient

from kavka_operator.api.kinds import KINDS
from kavka_operator.domain.access import OPEN, Security
from kavka_operator.kafka.admin import Connect
from kavka_operator.kafka.client import KafkaClient
from kavka_operator.loop.cluster_loop import ClusterLoop
from kavka_operator.loop.interfaces import Platform
from kavka_operator.platform.external import ExternalPlatform
from kavka_operator.platform.kubernetes.live.access_reviews import AccessReviews
from kavka_operator.platform.kubernetes.live.api import Api, ApiError, Bridge
from kavka_operator.platform.kubernetes.live.cluster_resources import KubernetesResources
from kavka_operator.platform.kubernetes.live.events import Events, Herald
from kavka_operator.platform.kubernetes.live.node_workloads import Hosted
from kavka_operator.platform.kubernetes.live.resource_cache import OBJECTS_MAX, ClusterKey, Objects
from kavka_operator.platform.kubernetes.live.secrets import read_secret
from kavka_operator.platform.kubernetes.live.user_secrets import KubernetesSecrets
from kavka_operator.platform.random_ids import draw_id
from kavka_operator.process import handlers, logs
from kavka_operator.process.action_counter import CountedAdmin
from kavka_operator.process.cluster_threads import ClusterThreads
from kavka_operator.process.console.access import DataDoor, Door
from kavka_operator.process.console.live import LivePlaces
from kavka_operator.process.console.page import Console
from kavka_operator.process.http_server import CONSOLE, LISTEN, Address, AddressError, application, console, opened
from kavka_operator.process.lease import Lease
from kavka_operator.process.metrics import Figures
from kavka_operator.process.roll_limiter import InTurn, Turns
from kavka_operator.process.watch_events import News

log = logging.getLogger("kavka.operator")

WATCH_SECONDS_MAX = 300
RELIST_SECONDS = 300.0
RETRY_SECONDS = 5.0
LANES_SECONDS_MAX = 3.0
LEASE = "kavka-operator"
IMAGE, AUDIT_IMAGE = "KAVKA_BROKER_IMAGE", "KAVKA_AUDIT_IMAGE"
ROLLING = "KAVKA_ROLLING_CLUSTERS_MAX"


class LeaseLostError(Exception):
    """Another operator may act now, and this process cannot stay: something in it may still act."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the process in its environment: namespaces to watch (none: all), where the lease lies, its ports.

    `image` is that of brokers whose KafkaCluster names none, `audit_image` that of its analytics; `sees_machines` says
    whether it may ask which are cordoned; `listen` is for probes and Prometheus, `console` for people; `rolling_max` is
    how many clusters may be rolled at the same time, 0 for any number.
    """

    namespaces: tuple[str, ...] = ()
    lease_namespace: str | None = None
    identity: str = ""
    image: str | None = None
    listen: Address | None = None
    sees_machines: bool = False
    console: Address | None = None
    audit_image: str | None = None
    rolling_max: int = 0

    @staticmethod
    def of(environment: dict[str, str]) -> "Options":
        """The options in environment variables. Without POD_NAMESPACE nobody else is asked before acting.

        Raises AddressError.
        """
        names = environment.get("KAVKA_WATCH_NAMESPACES", "").replace(",", " ").split()
        identity = environment.get("POD_NAME") or f"{socket.gethostname()}-{os.getpid()}"
        listen, console = (Address.of_environment(environment, variable) for variable in (LISTEN, CONSOLE))
        lease, image = environment.get("POD_NAMESPACE") or None, environment.get(IMAGE) or None
        sees_machines = not names or environment.get("KAVKA_SEE_MACHINES") == "true"
        audit_image, most = environment.get(AUDIT_IMAGE) or None, environment.get(ROLLING) or "0"
        if not most.isdecimal():
            raise AddressError(f'{ROLLING} is "{most}"; write how many clusters may be rolled at a time, or nothing')
        own = (tuple(names), lease, identity, image, listen, sees_machines, console)
        return Options(*own, audit_image=audit_image, rolling_max=int(most))


@dataclass(frozen=True, slots=True)
class Ground:
    """The parts that a place where nodes run needs: the API server, and what was heard of their objects."""

    api: Api
    bridge: Bridge
    news: News
    options: Options


PlatformOf = Callable[[ClusterKey, Ground], Platform]


def hosted(cluster: ClusterKey, ground: Ground) -> Platform:
    """The place where the nodes of a cluster run: pods."""
    return Hosted(
        cluster,
        ground.api,
        ground.bridge,
        ground.options.image,
        lambda: ground.news.count(cluster),
        time.monotonic,
        draw_id,
        sees_machines=ground.options.sees_machines,
        audit_image=ground.options.audit_image,
    )


@dataclass(slots=True)
class Operator:
    """The lanes of all clusters, fed by the watch.

    `platform_of` gives the place where a cluster's nodes run, `connect` makes an admin client for bootstrap addresses.
    """

    api: Api
    options: Options
    platform_of: PlatformOf
    connect: Connect
    figures: Figures

    async def run(self) -> None:
        """Look after every cluster until cancelled. Raises LeaseLostError where a turn does not end then."""
        bridge = Bridge(asyncio.get_running_loop())
        objects = Objects(lambda cluster: lanes.wake(cluster))  # noqa: PLW0108 - the lanes are made below
        news = News(lambda cluster: lanes.hurry(cluster))  # noqa: PLW0108 - see above
        ground = Ground(self.api, bridge, news, self.options)
        turns = Turns(self.options.rolling_max, objects.has_cluster)
        events = Events(self.api, bridge.loop, self.options.identity, self.figures.left_out, _warn_of_events)

        def loop_of(cluster: ClusterKey) -> ClusterLoop:
            resources = KubernetesResources(cluster, objects, self.api, bridge)
            name = "/".join(cluster)

            def secret(secret_name: str) -> dict[str, str]:
                return read_secret(self.api, bridge, cluster[0], secret_name)

            nodes = InTurn(cluster, self.platform_of(cluster, ground), turns)
            platform = ExternalPlatform(nodes, secret, time.monotonic)

            def tell(words: str) -> None:
                log.info("cluster.noted", extra={"cluster": name, "words": words})

            herald = Herald(events, time.monotonic, lambda: datetime.now(UTC))
            return ClusterLoop(
                resources,
                platform,
                self.connect,
                tell,
                lambda: tell("ready"),
                time.monotonic,
                _now,
                herald.announce,
                KubernetesSecrets(self.api, bridge, time.monotonic),
            )

        lanes = ClusterThreads(loop_of, objects.has_cluster, _warn, self.figures)
        self.figures.is_active, self.figures.lanes, self.figures.documents = True, lanes, objects.every
        await self._fill(objects)
        aside = [asyncio.create_task(work) for work in (self._relist(objects), events.run())]
        watch = asyncio.create_task(self._watch(objects, news))
        try:
            await asyncio.shield(watch)  # who has lost the lease stops acting first: the watch takes a while to end
        finally:
            is_cut = not watch.done()
            for task in aside:
                task.cancel()
            has_stopped = await asyncio.to_thread(lanes.close, LANES_SECONDS_MAX)
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            self.figures.stand_back()
            if is_cut:
                _end_at_signals()
            if is_cut and not has_stopped:
                raise LeaseLostError("another operator may act now, and a turn of this one waits for an answer still")

    async def _fill(self, objects: Objects) -> None:
        """List everything once: nothing is judged gone before all is known."""
        while True:
            try:
                await self._list(objects)
            except ApiError as error:
                log.error("resources.not_listed", extra={"words": str(error)})
                await asyncio.sleep(RETRY_SECONDS)
            else:
                objects.open()
                return

    async def _relist(self, objects: Objects) -> None:
        """List everything now and then, in case the watch has missed something."""
        while True:
            await asyncio.sleep(RELIST_SECONDS)
            try:
                await self._list(objects)
            except ApiError as error:
                log.warning("resources.not_listed", extra={"words": str(error)})

    async def _list(self, objects: Objects) -> None:
        for kind in KINDS:
            for namespace in self.options.namespaces or (None,):
                found, version = await self.api.all_of(kind, namespace)
                for document in found:
                    objects.take({**document, "kind": kind})
                objects.keep_only(kind, namespace, [str(document["metadata"]["uid"]) for document in found], version)
        self.figures.listed_at = time.time()
        if objects.omitted:
            log.error(
                "objects.omitted",
                extra={"words": f"more than {OBJECTS_MAX} resources: give others to another operator"},
            )
            objects.omitted = 0

    async def _watch(self, objects: Objects, news: News) -> None:
        settings = kopf.OperatorSettings()
        settings.watching.server_timeout = WATCH_SECONDS_MAX
        settings.posting.enabled = False
        handlers.select(settings)
        settings.scanning.disabled = True  # what there is was listed before: no rights on definitions are needed
        memo = kopf.Memo(objects=objects, news=news)
        await kopf.operator(
            registry=handlers.REGISTRY,
            settings=settings,
            memo=memo,
            # kopf would ask who the user is, and in the image it is nobody
            identity=self.options.identity,  # type: ignore[arg-type]
            standalone=True,
            clusterwide=not self.options.namespaces,
            namespaces=self.options.namespaces,
        )


async def operate(
    options: Options,
    platform_of: PlatformOf,
    connect: Connect,
    api_of: Callable[[ApiClient], Api] = Api,
) -> None:
    """Look after every cluster of the API server that the environment leads to, once no other process does."""
    figures = Figures()
    await load_access()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(ApiClient())
        await stack.enter_async_context(opened(options.listen, application(figures)))
        if options.console is not None:
            reviews = await stack.enter_async_context(aclosing(AccessReviews(client.configuration)))
            door = None if options.console.is_of_the_pod else Door(reviews)
            pages = Console(figures, door=door, live=LivePlaces(DataDoor(reviews), figures.view_of))
            await stack.enter_async_context(opened(options.console, console(pages)))
        api = replace(api_of(client), wrote=lambda what: figures.wrote("kubernetes", what))
        operator = Operator(api, options, platform_of, _counted(connect, figures), figures)
        if options.lease_namespace is None:
            await operator.run()
        else:
            lease = Lease(operator.api, options.lease_namespace, LEASE, options.identity, time.monotonic)
            await lead(lease, operator.run)


async def load_access() -> None:
    """Load the way to the API server: of a kubeconfig, or of the pod. Raises ConfigException where there is neither."""
    with warnings.catch_warnings():
        # That a pod has no kubeconfig is as it should be.
        warnings.filterwarnings("ignore", "kube_config_path not provided", UserWarning)
        await config.load_config()


def _counted(connect: Connect, figures: Figures) -> Connect:
    """The same connections, of which each action that is carried out is counted."""

    def counted(bootstrap: str, security: Security = OPEN) -> CountedAdmin:
        return CountedAdmin(connect(bootstrap, security), lambda what: figures.wrote("kafka", what))

    return counted


async def lead(lease: Lease, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work while the lease is held, again whenever it is held again; give it back once the work is done.

    Raises LeaseLostError, and what the work raises.
    """
    while not await _reign(lease, work):
        log.info("lease.awaited", extra={"words": lease.identity})
    await lease.release()


async def _reign(lease: Lease, work: Callable[[], Awaitable[None]]) -> bool:
    """Do the work once the lease is held, and as long as it is; whether the work is done.

    Raises LeaseLostError where the renewing fails by a fault of its own, and what the work raises.
    """
    await lease.acquire()
    acting = asyncio.ensure_future(work())

    async def keep() -> None:
        try:
            await lease.keep()
        finally:
            acting.cancel()  # whatever ends the renewing: who does not renew may not act

    keeper = asyncio.create_task(keep())
    try:
        await acting
    except asyncio.CancelledError:
        own = asyncio.current_task()
        if not keeper.done() or (own is not None and own.cancelling()):
            raise
        if (fault := keeper.exception()) is not None:
            raise LeaseLostError("another operator may act now") from fault
        return False
    finally:
        keeper.cancel()
    return True


def _end_at_signals() -> None:
    """Let signals end the process, as before it acted: nobody hears those that kopf has taken for itself."""
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().remove_signal_handler(number)


def _warn(words: str) -> None:
    log.warning("cluster.noted", extra={"words": words})


def _warn_of_events(words: str) -> None:
    log.warning("event.not_made", extra={"words": words})


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def main() -> None:
    """Run until a signal ends it, or the lease is lost. Raises SystemExit for an environment that it cannot read."""
    logs.to_stderr()
    try:
        options = Options.of(dict(os.environ))
    except AddressError as error:
        raise SystemExit(f"error: {error}") from None
    asyncio.run(operate(options, hosted, KafkaClient))


if __name__ == "__main__":
    main()
