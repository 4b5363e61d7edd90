"""``harness-im login``: its options. What it does is :mod:`bridges.cli.logging_in`, loaded when it runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def login() -> None:
    """Log a bot in where a token alone does not do."""


@login.command()
@click.option("--config", type=click.Path(path_type=Path), metavar="PATH", help="Read this configuration file.")
@click.option("--language", type=click.Choice(["zh", "en"]), help="Language of the program's own words.")
def weixin(*, config: Path | None, language: str | None) -> None:
    """Log in to Weixin with a QR code and store the login for the Weixin bots of the configuration."""
    from bridges.cli.logging_in import log_in  # noqa: PLC0415 - only now, so that --help is quick

    raise SystemExit(log_in(config, language))
