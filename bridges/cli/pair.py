"""``harness-im pair``: its commands. What they do is :mod:`bridges.cli.pairing`, loaded when it runs."""

from __future__ import annotations

from pathlib import Path

import click

_CONFIG = click.option(
    "--config", type=click.Path(path_type=Path), metavar="PATH", help="Read this configuration file."
)


@click.group()
def pair() -> None:
    """Let in people who were given a pairing code. Works while the bots run."""


@pair.command("list")
@_CONFIG
def list_(config: Path | None) -> None:
    """List the codes that wait for approval."""
    from bridges.cli.pairing import run, waiting  # noqa: PLC0415 - only now, so that --help is quick

    raise SystemExit(run(config, waiting))


@pair.command()
@click.argument("code")
@_CONFIG
def approve(code: str, config: Path | None) -> None:
    """Let in whoever holds CODE."""
    from bridges.cli.pairing import approval, run  # noqa: PLC0415 - as above, only now

    raise SystemExit(run(config, approval(code)))


@pair.command()
@click.argument("bot")
@click.argument("sender")
@_CONFIG
def revoke(bot: str, sender: str, config: Path | None) -> None:
    """Take back what SENDER was given for BOT, both as ``pair list`` and the log name them."""
    from bridges.cli.pairing import revocation, run  # noqa: PLC0415 - as above, only now

    raise SystemExit(run(config, revocation(bot, sender)))
