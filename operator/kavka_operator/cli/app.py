"""The commands of `kavka`, their options and their help. What they do stands in modules of their own."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="kavka",
    help="Kafka clusters, topics and quotas from resource files, on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
explain_app = typer.Typer(help="Say why something is as it is.", no_args_is_help=True)
app.add_typer(explain_app, name="explain")


class Output(StrEnum):
    """How `get` prints."""

    TABLE = "table"
    WIDE = "wide"
    YAML = "yaml"
    JSON = "json"
    NAME = "name"


FilesOption = Annotated[
    list[Path] | None, typer.Option("--filename", "-f", help="A resource file; may be given more than once.")
]
StateOption = Annotated[
    Path | None, typer.Option("--state-dir", help="Where local clusters are kept. [env: KAVKA_STATE_DIR]")
]
NamespaceOption = Annotated[str, typer.Option("--namespace", "-n", help="The namespace of the resources.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"kavka {version('kavka-operator')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Kafka clusters, topics and quotas from resource files, on this machine."""
    del version


@app.command()
def up(
    filename: FilesOption = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return when it is ready; it runs on.")] = False,
    state_dir: StateOption = None,
) -> None:
    """Run the cluster of a resource file as processes of this machine, until Ctrl-C or `kavka down`."""
    from kavka_operator.cli.running import up as run

    raise typer.Exit(run(filename or [], state_dir, detach=detach))


@app.command()
def down(
    cluster: Annotated[str | None, typer.Argument(help="The cluster; not needed while only one runs.")] = None,
    state_dir: StateOption = None,
    namespace: NamespaceOption = "default",
) -> None:
    """Stop a cluster that `kavka up` runs. Its records stay."""
    from kavka_operator.cli.running import down as run

    raise typer.Exit(run(cluster, namespace, state_dir))


@app.command()
def apply(filename: FilesOption = None, state_dir: StateOption = None) -> None:
    """Create or change resources; a running cluster follows at once."""
    from kavka_operator.cli.resources import apply as run

    raise typer.Exit(run(filename or [], state_dir))


@app.command()
def get(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND[,KIND] [NAME]... | KIND/NAME...]",
            help="kafkacluster, topic or clientquota (kc, kt, kq) or all; and names.",
        ),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TABLE,
    state_dir: StateOption = None,
    namespace: NamespaceOption = "default",
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of every namespace.")] = False,
    selector: Annotated[
        str, typer.Option("--selector", "-l", help="Only with these labels: team=a,tier!=gold,'stage in (a, b)',!old.")
    ] = "",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on, and print what changes, until Ctrl-C.")] = False,
) -> None:
    """List resources as `kubectl get` does."""
    from kavka_operator.cli.resources import get as run

    chosen = None if all_namespaces else namespace
    raise typer.Exit(run(words or [], output.value, state_dir, chosen, selector, watch=watch))


@app.command()
def describe(
    kind: Annotated[str, typer.Argument(help="The kind.")],
    name: Annotated[str, typer.Argument(help="The resource.")],
    state_dir: StateOption = None,
    namespace: NamespaceOption = "default",
) -> None:
    """Say all that is known of one resource."""
    from kavka_operator.cli.resources import describe as run

    raise typer.Exit(run(kind, name, state_dir, namespace))


@app.command()
def delete(
    kind: Annotated[str | None, typer.Argument(help="The kind.")] = None,
    name: Annotated[str | None, typer.Argument(help="The resource.")] = None,
    filename: FilesOption = None,
    state_dir: StateOption = None,
    namespace: NamespaceOption = "default",
) -> None:
    """Delete resources. A topic's records go only if its deletionPolicy says so."""
    from kavka_operator.cli.resources import delete as run

    raise typer.Exit(run(kind, name, filename or [], state_dir, namespace))


@explain_app.command("quota")
def explain_quota(
    user: Annotated[str, typer.Option(help="The principal's name.")] = "ANONYMOUS",
    client_id: Annotated[str, typer.Option("--client-id", help="The client.id.")] = "",
    cluster: Annotated[str | None, typer.Option(help="The cluster; not needed while only one runs.")] = None,
    state_dir: StateOption = None,
    namespace: NamespaceOption = "default",
) -> None:
    """Say which of the eight levels of quotas wins for a client, and what it hides."""
    from kavka_operator.cli.explaining import explain_quota as run

    raise typer.Exit(run(user, client_id, cluster, namespace, state_dir))


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(help="How long the throttled part lasts.")] = 10.0,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the state directory of the demo.")] = False,
) -> None:
    """The main job: three brokers, 336,776 flights, a kill -9, a roll under load, a quota. Under a minute."""
    from kavka_operator.demo.main import demo as run

    raise typer.Exit(run(throttled_seconds=seconds, keep=keep))


def main() -> None:
    """Run the command."""
    app()
