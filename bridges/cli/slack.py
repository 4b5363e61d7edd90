"""``harness-im slack``: its options. The manifest itself is :mod:`bridges.cli.slack_manifest`, loaded when it runs."""

from __future__ import annotations

import click


@click.group()
def slack() -> None:
    """Help to set up Slack."""


@slack.command()
@click.option("--name", default="harness-im", show_default=True, help="How the bot is called in Slack.")
@click.option("--language", type=click.Choice(["zh", "en"]), default="zh", help="Language of the commands' summaries.")
def manifest(*, name: str, language: str) -> None:
    """Print the manifest to make a Slack app from: its commands, scopes and events."""
    from bridges.cli.slack_manifest import as_json  # noqa: PLC0415 - only now, so that --help is quick

    click.echo(as_json(name, language))
