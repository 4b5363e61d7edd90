"""``harness-im init``: its options. What it does is :mod:`bridges.cli.setup`, loaded when it runs."""

from __future__ import annotations

from pathlib import Path

import click

CHANNELS = ("telegram", "slack", "discord", "whatsapp", "feishu", "dingtalk", "wecom", "qq", "weixin")
"""As in :mod:`bridges.cli.channel_names`, whose import would hold up --help."""


@click.command()
@click.option("--config", type=click.Path(path_type=Path), metavar="PATH", help="Write this configuration file.")
@click.option("--language", type=click.Choice(["zh", "en"]), help="Language of the questions, and of the program.")
@click.option("--channel", type=click.Choice(CHANNELS), help="The platform to set up.")
@click.option("--name", metavar="NAME", help="Name of the bot; by default that of the platform.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="What the platform needs, such as app_id=123. A secret as KEY=env:NAME, KEY=file:PATH, or KEY=- for a line of "
    "standard input.",
)
@click.option("--endpoint", "endpoints", multiple=True, metavar="KEY=URL", help="Another address than the public one.")
@click.option("--owner", "owners", multiple=True, metavar="ID", help="The id of a person who owns the bot.")
@click.option("--pairing", is_flag=True, help="No owner: people are let in by pairing codes.")
@click.option("--harness", metavar="URL", help="A Harness that runs already, also as env:NAME or file:PATH.")
@click.option("--no-check", is_flag=True, help="Do not ask Harness and platform whether the answers are good.")
@click.option("--force", is_flag=True, help="Write the file anew, whatever is in it.")
def init(*, no_check: bool, **options: object) -> None:
    """Set up bots: ask for what they need, check it, write the configuration. Without a terminal options say it all."""
    from bridges.cli.setup.options import Options  # noqa: PLC0415 - only now, so that --help is quick
    from bridges.cli.setup.setting_up import set_up  # noqa: PLC0415 - as above

    raise SystemExit(set_up(Options(check=not no_check, **options)))  # type: ignore[arg-type]  # click made them so
