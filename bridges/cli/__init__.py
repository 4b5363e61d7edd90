"""``harness-im``: the command line. Commands load their parts when they run, so that ``--help`` is quick."""

from __future__ import annotations

import click

from bridges.cli.bots import bots, sessions
from bridges.cli.chat import chat
from bridges.cli.doctor import doctor
from bridges.cli.health import health
from bridges.cli.history import history, mcp
from bridges.cli.init import init
from bridges.cli.login import login
from bridges.cli.output import Program
from bridges.cli.pair import pair
from bridges.cli.reload import reload
from bridges.cli.run import run
from bridges.cli.slack import slack
from bridges.cli.smoke import smoke
from bridges.cli.whatsapp import whatsapp


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="harness-im")
def main() -> None:
    """Connect people's chats with the DeepSeek Harness."""


main.add_command(bots)
main.add_command(chat)
main.add_command(doctor)
main.add_command(init)
main.add_command(login)
main.add_command(pair)
main.add_command(health)
main.add_command(history)
main.add_command(mcp)
main.add_command(reload)
main.add_command(run)
main.add_command(sessions)
main.add_command(slack)
main.add_command(smoke)
main.add_command(whatsapp)
