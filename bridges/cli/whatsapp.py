"""``harness-im whatsapp``: its options. What it does is :mod:`bridges.cli.whatsapp_setup`, loaded when it runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.group()
def whatsapp() -> None:
    """Help to set up WhatsApp as a linked device."""


@whatsapp.command()
@click.option("--bot", metavar="NAME", help="The bot to link; needed where several are linked devices.")
@click.option("--yes", is_flag=True, help="Do not ask about the risks.")
@click.option("--config", type=click.Path(path_type=Path), metavar="PATH", help="Read this configuration file.")
@click.option("--language", type=click.Choice(["zh", "en"]), help="Language of the program's own words.")
def setup(*, bot: str | None, yes: bool, config: Path | None, language: str | None) -> None:
    """Install the client of linked devices and link an account with a QR code."""
    from bridges.cli.whatsapp_setup import set_up  # noqa: PLC0415 - only now, so that --help is quick

    raise SystemExit(set_up(config, language, bot, yes=yes))
