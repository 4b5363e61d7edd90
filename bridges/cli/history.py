"""``harness-im history``: its options. What it does is :mod:`bridges.cli.past`, loaded when it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click


@dataclass(frozen=True, slots=True)
class Options:
    """What the subcommands have in common. ``current`` names the source to refresh, None both."""

    workspace: Path | None
    as_json: bool
    language: str | None
    config: Path | None = None
    current: str | None = None


_SHARED: Final = (
    click.option("--workspace", type=click.Path(path_type=Path), metavar="DIR", help="Default: the current folder."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON for machines."),
    click.option("--language", type=click.Choice(["zh", "en"]), help="Language of the program's own words."),
    click.option("--config", type=click.Path(path_type=Path), metavar="PATH", help="Read this configuration file."),
    click.option("--current", metavar="pi|dsh", hidden=True, help="The source to refresh; default: both."),
)
_HOST: Final = click.option("--host", metavar="pi|dsh", help="Only this source.")


def _shared(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all have, handed over as one."""

    @functools.wraps(command)
    def run(
        *,
        workspace: Path | None,
        as_json: bool,
        language: str | None,
        config: Path | None,
        current: str | None,
        **own: str | bool | None,
    ) -> None:
        command(Options(workspace, as_json, language, config, current), **own)

    for option in reversed(_SHARED):
        run = option(run)
    return run


@click.group()
def history() -> None:
    """Search and read past questions and answers of a workspace, from Pi and dsh."""


@history.command()
@click.argument("query", required=False)
@_HOST
@click.option("--session", metavar="ID", help="Only this session.")
@click.option("--from", "since", metavar="TIME", help="ISO date or time; local unless it has an offset.")
@click.option("--to", "until", metavar="TIME", help="The same; a date alone means its end.")
@click.option("--offset", metavar="N", help="Results to skip.")
@click.option("--limit", metavar="N", help="Results to show, 20 by default, at most 50.")
@click.option("--no-refresh", is_flag=True, help="Search the archives as they stand.")
@_shared
def search(options: Options, *, no_refresh: bool, **given: str | None) -> None:
    """Find text in questions, answers and summaries; without QUERY, list the sessions."""
    from bridges.cli.past import run_search  # noqa: PLC0415 - only now, so that --help is quick

    names = {"session": "sessionId", "since": "from", "until": "to"}
    asked = {names.get(name, name): value for name, value in given.items()}
    raise SystemExit(run_search(options, asked, refresh=not no_refresh))


@history.command()
@click.argument("id")
@_HOST
@click.option("--offset", metavar="N", help="UTF-16 units of the text to skip.")
@click.option("--limit", metavar="N", help="UTF-16 units to show, 12000 by default, at most 24000.")
@click.option("--children-offset", "childrenOffset", metavar="N", help="Entries below to skip; 20 are shown.")
@_shared
def read(options: Options, **given: str | None) -> None:
    """Show one entry: a question with its answer, a summary, or a session as a directory."""
    from bridges.cli.past import run_read  # noqa: PLC0415 - only now, so that --help is quick

    raise SystemExit(run_read(options, given))


@history.command()
@_HOST
@_shared
def refresh(options: Options, *, host: str | None) -> None:
    """Bring the native sessions of this machine into the archives."""
    from bridges.cli.past import run_refresh  # noqa: PLC0415 - only now, so that --help is quick

    raise SystemExit(run_refresh(options, host))


@history.command()
@_HOST
@click.option("--no-refresh", is_flag=True, help="Summarise the archives as they stand.")
@_shared
def summarize(options: Options, *, host: str | None, no_refresh: bool) -> None:
    """Write the summaries that are pending, with each source's own model. Ctrl-C stops it at any moment."""
    from bridges.cli.past import run_summarize  # noqa: PLC0415 - only now, so that --help is quick

    raise SystemExit(run_summarize(options, host, refresh=not no_refresh))


@history.command("install-pi")
@click.option("--language", type=click.Choice(["zh", "en"]), help="Language of the program's own words.")
def install_pi(*, language: str | None) -> None:
    """Give Pi the command /pbot history and the tool pbot_history."""
    from bridges.cli.pi_extension import install  # noqa: PLC0415 - only now, so that --help is quick

    raise SystemExit(install(language))


@click.command()
@click.option("--host", metavar="pi|dsh", default="dsh", show_default=True, help="The source that is current.")
@click.option("--workspace", type=click.Path(path_type=Path), metavar="DIR", help="Default: the current folder.")
@click.option("--language", type=click.Choice(["zh", "en"]), default="en", help="Language of error messages.")
def mcp(*, host: str, workspace: Path | None, language: str) -> None:
    """Serve the tool pbot_history to an MCP client on standard input and output."""
    from bridges.cli.past import run_mcp  # noqa: PLC0415 - only now, so that --help is quick

    raise SystemExit(run_mcp(Options(workspace, as_json=True, language=language), host))
