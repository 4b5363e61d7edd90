"""``harness-im chat``: its options. What it does is :mod:`bridges.cli.chatting`, loaded when it runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--once", metavar="TEXT", help="Send one message, print the reply and exit.")
@click.option("--session", metavar="ID", help="Bind the chat to this session.")
@click.option("--harness", metavar="URL", help="Talk to this Harness: the address it printed, token included.")
@click.option("--demo-model", is_flag=True, help="Start a Harness that talks to the built-in demo model.")
@click.option("--language", type=click.Choice(["zh", "en"]), help="Language of the program's own words.")
@click.option("--json", "as_json", is_flag=True, help="Print each reply as one JSON line.")
@click.option("--config", type=click.Path(path_type=Path), metavar="PATH", help="Read this configuration file.")
def chat(
    *,
    once: str | None,
    session: str | None,
    harness: str | None,
    demo_model: bool,
    language: str | None,
    as_json: bool,
    config: Path | None,
) -> None:
    """Chat with a Harness in this terminal.

    When standard input is not a terminal, every line of it is one message and every reply one JSON line.
    """
    from bridges.cli import lean  # noqa: F401, PLC0415 - first, see there
    from bridges.cli.chatting import Options, run  # noqa: PLC0415 - only now, so that --help is quick

    raise SystemExit(
        run(
            Options(
                once=once,
                session=session,
                harness=harness,
                demo_model=demo_model,
                language=language,
                as_json=as_json,
                config=config,
            )
        )
    )
