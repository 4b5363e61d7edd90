"""``harness-im bots`` and ``sessions``: options. What they do is :mod:`bridges.cli.overview`, loaded when it runs."""

from __future__ import annotations

from pathlib import Path

import click

_CONFIG = click.option(
    "--config", type=click.Path(path_type=Path), metavar="PATH", help="Read this configuration file."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@_CONFIG
@_JSON
def bots(*, config: Path | None, as_json: bool) -> None:
    """Show how every bot is: connected or not, its last event, its last error. Works while they run."""
    from bridges.cli.overview import bot_list  # noqa: PLC0415 - only now, so that --help is quick
    from bridges.cli.pairing import run  # noqa: PLC0415 - as above

    raise SystemExit(run(config, bot_list(as_json=as_json)))


@click.command()
@_CONFIG
@_JSON
@click.option("--full", is_flag=True, help="Show the ids themselves, not a short hash of them.")
def sessions(*, config: Path | None, as_json: bool, full: bool) -> None:
    """Show which chat talks to which session. Works while the bots run."""
    from bridges.cli.overview import session_list  # noqa: PLC0415 - only now, so that --help is quick
    from bridges.cli.pairing import run  # noqa: PLC0415 - as above

    raise SystemExit(run(config, session_list(as_json=as_json, full=full)))
