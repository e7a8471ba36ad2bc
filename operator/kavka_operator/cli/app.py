"""The commands of `kavka`, their options and their help. What they do stands in modules of their own.

argparse and no library: an installation carries little, and `--help` waits for nothing (docs/adr/0017). As with
kubectl, the options of a command may stand before, between and behind its words.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kavka_operator.cli.audit_options import add_run_options, wanted_of
from kavka_operator.extras import lacking

if TYPE_CHECKING:
    from kavka_operator.cli.places import Whereabouts
    from kavka_operator.cli.targets import Asked

ABOUT = "Kafka clusters, topics, quotas and users from resource files: on this machine, and on Kubernetes."
PLUGIN = "kubectl-kavka"
FORMS = ("table", "wide", "yaml", "json", "name")
WORDS_HELP = (
    "KIND[,KIND] [NAME]... or KIND/NAME...; kinds are kafkacluster, topic, clientquota, kafkauser (kvc, kvt, kvq, kvu)"
    " and all."
)

Options = argparse.Namespace
Command = Callable[[Options], int]


class Parser(argparse.ArgumentParser):
    """Takes options between the words of a command too, which argparse does only where it is asked to."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._subparsers is not None or self._is_between:
            return super().parse_known_args(args, namespace)
        self._is_between = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_between = False

    _is_between = False


def parser() -> argparse.ArgumentParser:
    """The parser of every command and option."""
    root = Parser(prog="kubectl kavka" if _is_plugin() else "kavka", description=ABOUT, allow_abbrev=False)
    root.add_argument("--version", action="store_true", help="Print the version.")
    commands = root.add_subparsers(metavar="COMMAND", title="commands")
    _add_up_and_down(commands)
    _add_apply_and_delete(commands)
    _add_plan(commands)
    _add_get_and_describe(commands)
    _add_steering(commands)
    _add_wait(commands)
    _add_explain(commands)
    _add_top(commands)
    _add_quota(commands)
    _add_doctor(commands)
    _add_export(commands)
    _add_audit(commands)
    demo = _add(
        commands,
        "demo",
        _demo,
        "The main job: three brokers, 336,776 flights, a kill -9, a roll under load, a quota. Under a minute.",
        state=False,
    )
    demo.add_argument("--seconds", type=float, default=10.0, help="How long the throttled part lasts (%(default)s).")
    demo.add_argument("--keep", action="store_true", help="Keep the state directory of the demo.")
    return root


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code."""
    root = parser()
    words = sys.argv[1:] if arguments is None else arguments
    options = root.parse_args(["--dry-run=client" if word == "--dry-run" else word for word in words])
    if options.version:
        from importlib.metadata import version

        sys.stdout.write(f"kavka {version('kavka-operator')}\n")
        sys.exit(0)
    if "run" not in options:
        root.print_help()
        sys.exit(2)
    sys.exit(options.run(options))


def _add(commands: Any, name: str, run: Command | None, about: str, *, state: bool = True) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
    if run is not None:
        command.set_defaults(run=run)
    if state:
        words = "Where local clusters are kept. [env: KAVKA_STATE_DIR]"
        command.add_argument("--state-dir", type=Path, metavar="DIR", help=words)
    return command


def _add_files(command: argparse.ArgumentParser) -> None:
    words = "A resource file, a directory of them or - for standard input; may be given more than once."
    command.add_argument("--filename", "-f", type=Path, action="append", default=[], metavar="FILE", help=words)


def _add_namespace(command: argparse.ArgumentParser) -> None:
    words = "The namespace of the resources (%(default)s)."
    command.add_argument("--namespace", "-n", default="default", metavar="NAME", help=words)


def _add_words(command: argparse.ArgumentParser) -> None:
    command.add_argument("words", nargs="*", metavar="RESOURCE", help=WORDS_HELP)


def _add_selector(command: argparse.ArgumentParser) -> None:
    words = "Only with these labels: team=a,tier!=gold,'stage in (a, b)',!old."
    command.add_argument("--selector", "-l", default="", metavar="LABELS", help=words)


def _add_dry_run(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--dry-run",
        default="none",
        choices=("none", "client", "server"),
        help="Change nothing and say what would be: from the files alone (client, as without a word), or with what the"
        " running cluster would do, and whether Kafka would accept it (server).",
    )


def _add_up_and_down(commands: Any) -> None:
    up = _add(
        commands,
        "up",
        _up,
        "Run the cluster of a resource file as processes of this machine, until Ctrl-C or `kavka down`.",
    )
    _add_files(up)
    up.add_argument("--detach", "-d", action="store_true", help="Return when it is ready; it runs on.")
    down = _add(commands, "down", _down, "Stop a cluster that `kavka up` runs. Its records stay.")
    down.add_argument("cluster", nargs="?", help="The cluster; not needed while only one runs.")
    _add_namespace(down)


def _add_apply_and_delete(commands: Any) -> None:
    apply = _add(commands, "apply", _apply, "Create or change resources; a running cluster follows at once.")
    _add_files(apply)
    _add_dry_run(apply)
    diff = _add(
        commands,
        "diff",
        _diff,
        "Show what `apply` would change, as a unified diff. Exit code 1 where there is a difference, 2 on an error.",
    )
    _add_files(diff)
    delete = _add(
        commands, "delete", _delete, "Delete resources. A topic's records go only if its deletionPolicy says so."
    )
    _add_words(delete)
    _add_files(delete)
    _add_dry_run(delete)
    _add_namespace(delete)


def _add_plan(commands: Any) -> None:
    plan = _add(
        commands,
        "plan",
        _plan,
        "Say what `apply` would do: fields, restarts with their reasons and order, what is at risk, what waits. It"
        " changes nothing. Exit code 0 where nothing would change, 2 where something would, 1 where it is refused.",
    )
    _add_files(plan)
    _add_place(plan)
    plan.add_argument("--output", "-o", choices=("text", "json"), default="text", help="How to print.")


def _add_get_and_describe(commands: Any) -> None:
    get = _add(commands, "get", _get, "List resources as `kubectl get` does.")
    _add_words(get)
    get.add_argument("--output", "-o", choices=FORMS, default="table", help="How to print.")
    _add_place(get)
    get.add_argument("--all-namespaces", "-A", action="store_true", help="Of every namespace.")
    _add_selector(get)
    get.add_argument("--watch", "-w", action="store_true", help="Go on, and print what changes, until Ctrl-C.")
    describe = _add(commands, "describe", _describe, "Say all that is known of a resource.")
    _add_words(describe)
    _add_place(describe)


def _add_steering(commands: Any) -> None:
    approve = _add(commands, "approve", _approve, "Approve the roll that waits for it, by its plan's hash.")
    approve.add_argument("cluster", nargs="?", help="The KafkaCluster; not needed where there is one.")
    approve.add_argument("--plan", metavar="HASH", help="Only if it is still this plan.")
    _add_place(approve)
    restart = _add(commands, "restart", _restart, "Restart all nodes, one after the other by the rules of a roll.")
    restart.add_argument("cluster", nargs="?", help="The KafkaCluster; not needed where there is one.")
    _add_place(restart)
    hold = _add(commands, "hold", _hold, "Keep nodes from being restarted, also in the middle of a roll.")
    release = _add(commands, "release", _release, "End a hold, so that a roll goes on.")
    for command, those in ((hold, "all"), (release, "all that are held")):
        command.add_argument("cluster", nargs="?", help="The KafkaCluster; not needed where there is one.")
        command.add_argument("--nodes", metavar="ID,...", help=f"The nodes ({those}).")
        _add_place(command)


def _add_wait(commands: Any) -> None:
    wait = _add(commands, "wait", _wait, "Wait until resources are as they should be, exist, or are gone.")
    _add_words(wait)
    _add_files(wait)
    goals = "condition=NAME[=VALUE], jsonpath={PATH}=VALUE, create or delete."
    wait.add_argument("--for", dest="goal", required=True, metavar="GOAL", help=goals)
    wait.add_argument("--timeout", default="30s", metavar="TIME", help="30s, 5m, 1h30m; 0 looks once (%(default)s).")
    wait.add_argument("--all", action="store_true", help="Every resource of the kinds.")
    _add_selector(wait)
    _add_namespace(wait)


def _add_place(command: argparse.ArgumentParser) -> None:
    """The options that name Kubernetes in the place of local clusters, and a namespace of either."""
    words = "The namespace of the resources (default; of Kubernetes, the context's)."
    command.add_argument("--namespace", "-n", metavar="NAME", help=words)
    words = "Speak to Kubernetes, as kubectl would; so it is too where no local cluster is known."
    command.add_argument("--kubernetes", "-k", action="store_true", help=words)
    words = "Speak to Kubernetes, by this file. [env: KUBECONFIG]"
    command.add_argument("--kubeconfig", type=Path, metavar="FILE", help=words)
    words = "Speak to Kubernetes, by this context of the kubeconfig."
    command.add_argument("--context", metavar="NAME", help=words)


def _where(options: Options) -> "Whereabouts":
    from kavka_operator.cli.places import Whereabouts

    is_kubernetes = options.kubernetes or _is_plugin()
    return Whereabouts(options.state_dir, options.namespace, options.kubeconfig, options.context, is_kubernetes)


def _is_plugin() -> bool:
    """Whether kubectl has started this, as `kubectl kavka`."""
    return Path(sys.argv[0]).stem == PLUGIN


def _add_target(command: argparse.ArgumentParser, *, has_pages: bool = True) -> None:
    command.add_argument("name", nargs="?", metavar="CLUSTER", help="The KafkaCluster; not needed where there is one.")
    command.add_argument("--cluster", help="The same, by an option.")
    _add_place(command)
    words = "Any other Kafka, by the addresses of its brokers."
    command.add_argument("--bootstrap", metavar="HOST:PORT,...", help=words)
    words = "Metrics pages of brokers, for what Kafka's API does not tell; those of a local cluster are known."
    if has_pages:
        command.add_argument("--metrics", default="", metavar="URL,...", help=words)
    else:
        command.set_defaults(metrics="")


def _asked(options: Options) -> "Asked":
    from kavka_operator.cli.targets import Asked

    return Asked(options.bootstrap, options.metrics, options.cluster or options.name, _where(options))


def _add_top(commands: Any) -> None:
    top = _add(
        commands,
        "top",
        _top,
        "Watch clients, topics, groups, quotas and nodes of a cluster, of any Kafka too; `?` shows the keys.",
    )
    _add_target(top)
    top.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="Time between looks (%(default)s).")


def _add_explain(commands: Any) -> None:
    explain = _add(commands, "explain", None, "Say why something is as it is.", state=False)
    subjects = explain.add_subparsers(metavar="SUBJECT", title="subjects", required=True)
    quota = _add(
        subjects,
        "quota",
        _explain_quota,
        "Say which of the eight levels of quotas wins for a client, what it hides, and how much of it is used.",
    )
    quota.add_argument("--user", help="The principal's name (ANONYMOUS).")
    quota.add_argument("--client-id", help="The client.id (empty).")
    quota.add_argument("--ip", help="An address: which limit on new connections holds for it.")
    quota.add_argument("--topic", help="A topic: which limits its config sets to all of its clients together.")
    _add_target(quota)


def _add_quota(commands: Any) -> None:
    quota = _add(commands, "quota", None, "Find limits that fit.", state=False)
    subjects = quota.add_subparsers(metavar="WHAT", title="what", required=True)
    recommend = _add(
        subjects,
        "recommend",
        _recommend,
        "Print a resource file with limits that fit what clients do: to review, and to observe before it is enforced.",
    )
    _add_target(recommend)
    recommend.add_argument("--for", dest="duration", default="60s", metavar="TIME", help="How long (%(default)s).")
    words = "Ask a Prometheus for the time that has passed, and do not wait."
    recommend.add_argument("--prometheus", metavar="URL", help=words)
    words = "How much more than the demand a limit allows, as a factor (%(default)s)."
    recommend.add_argument("--headroom", type=float, default=1.3, metavar="FACTOR", help=words)
    words = "Which demand: so many per cent of the time it was not above it (%(default)s)."
    recommend.add_argument("--percentile", type=float, default=95.0, metavar="PERCENT", help=words)


def _add_doctor(commands: Any) -> None:
    doctor = _add(
        commands,
        "doctor",
        _doctor,
        "Say what is wrong with a cluster, with any Kafka too; it only reads. Exit code 1 with findings, 2 on errors.",
    )
    _add_target(doctor, has_pages=False)
    doctor.add_argument("--output", "-o", choices=("text", "json"), default="text", help="How to print.")


def _add_export(commands: Any) -> None:
    export = _add(
        commands,
        "export",
        _export,
        "Print topics, quotas and users as resources that change nothing when they are applied; of any Kafka too, which"
        " then gets a KafkaCluster named as --cluster says. What has a resource already is left out.",
    )
    _add_target(export, has_pages=False)


def _add_audit(commands: Any) -> None:
    audit = _add(commands, "audit", None, "Look at the audit trail, and answer questions from it.", state=False)
    subjects = audit.add_subparsers(metavar="WHAT", title="what", required=True)
    verify = _add(
        subjects,
        "verify",
        _verify,
        "Say whether the audit trail is as its nodes wrote it, and up to where. Exit code 1 where not, 2 on errors.",
    )
    _add_target(verify, has_pages=False)
    words = "A key that signs the trail (kavka.audit.key.file), or its public key; once for each key of the time."
    verify.add_argument("--key-file", type=Path, metavar="FILE", action="append", default=[], help=words)
    words = "Where to write what was found for Prometheus, as the textfile collector of node-exporter reads it."
    verify.add_argument("--metrics-file", type=Path, metavar="FILE", help=words)
    answers = _add(
        subjects,
        "run",
        _run_audit,
        "Take what is new in the audit trail into Parquet files and answer from them who uses what, who was refused or"
        " held back, and what nobody uses.",
    )
    _add_target(answers, has_pages=False)
    add_run_options(answers)


def _up(options: Options) -> int:
    from kavka_operator.cli.running import up

    return up(options.filename, options.state_dir, detach=options.detach)


def _down(options: Options) -> int:
    from kavka_operator.cli.running import down

    return down(options.cluster, options.namespace, options.state_dir)


def _apply(options: Options) -> int:
    from kavka_operator.cli.applying import apply
    from kavka_operator.cli.foreseeing import DryRun

    return apply(options.filename, options.state_dir, DryRun(options.dry_run))


def _diff(options: Options) -> int:
    from kavka_operator.cli.differing import diff

    return diff(options.filename, options.state_dir)


def _plan(options: Options) -> int:
    from kavka_operator.cli.planning import plan

    return plan(options.filename, _where(options), options.output)


def _delete(options: Options) -> int:
    from kavka_operator.cli.deleting import delete
    from kavka_operator.cli.foreseeing import DryRun

    return delete(options.words, options.filename, options.state_dir, options.namespace, DryRun(options.dry_run))


def _get(options: Options) -> int:
    from kavka_operator.cli.getting import get

    everywhere = options.all_namespaces
    where = _where(options)
    return get(options.words, options.output, where, options.selector, watch=options.watch, everywhere=everywhere)


def _describe(options: Options) -> int:
    from kavka_operator.cli.getting import describe

    return describe(options.words, _where(options))


def _approve(options: Options) -> int:
    from kavka_operator.cli.steering import approve

    return approve(options.cluster, _where(options), options.plan)


def _restart(options: Options) -> int:
    from kavka_operator.cli.steering import restart

    return restart(options.cluster, _where(options))


def _hold(options: Options) -> int:
    from kavka_operator.cli.steering import hold

    return hold(options.cluster, _where(options), options.nodes)


def _release(options: Options) -> int:
    from kavka_operator.cli.steering import release

    return release(options.cluster, _where(options), options.nodes)


def _wait(options: Options) -> int:
    from kavka_operator.cli.waiting import wait

    return wait(
        options.words,
        options.goal,
        options.timeout,
        options.filename,
        options.state_dir,
        options.namespace,
        labels=options.selector,
        everything=options.all,
    )


def _explain_quota(options: Options) -> int:
    from kavka_operator.cli.explaining import Subject, explain_quota

    return explain_quota(_asked(options), Subject(options.user, options.client_id, options.ip, options.topic))


def _top(options: Options) -> int:
    if words := lacking("kavka top", "top", "kavka_top", "rich", "textual"):
        sys.stderr.write(f"error: {words}\n")
        return 1
    from kavka_operator.cli.screen import top

    return top(_asked(options), options.every)


def _doctor(options: Options) -> int:
    from kavka_operator.cli.doctoring import doctor

    return doctor(_asked(options), options.output)


def _export(options: Options) -> int:
    from kavka_operator.cli.exporting import export

    return export(_asked(options))


def _verify(options: Options) -> int:
    from kavka_operator.cli.verifying import verify_trail

    return verify_trail(_asked(options), options.key_file, options.metrics_file)


def _run_audit(options: Options) -> int:
    if words := lacking("kavka audit run", "audit", "kavka_audit_run", "kavka_audit", "duckdb"):
        sys.stderr.write(f"error: {words}\n")
        return 1
    from kavka_audit_run.main import Wanted, run_audit
    from kavka_operator.cli.client_properties import client_of_file
    from kavka_operator.cli.words import CommandError, complain

    asked = _asked(options)
    if options.command_config is not None:
        try:
            security, bootstrap = client_of_file(options.command_config)
        except CommandError as error:
            return complain(error)
        asked = replace(asked, security=security, bootstrap=asked.bootstrap or bootstrap)
    return run_audit(asked, Wanted(**wanted_of(options)))


def _recommend(options: Options) -> int:
    from kavka_operator.cli.recommending import How, recommend_quotas

    how = How(options.duration, options.prometheus, options.headroom, options.percentile)
    return recommend_quotas(_asked(options), how)


def _demo(options: Options) -> int:
    if words := lacking("kavka demo", "demo", "kavka_demo", "confluent_kafka", "duckdb", "kavka_audit", "rich"):
        sys.stderr.write(f"error: {words}\n")
        return 1
    from kavka_demo.main import demo

    return demo(throttled_seconds=options.seconds, keep=options.keep)
