"""``harness-im reload``: its options. What it does is :mod:`bridges.cli.reloading`, loaded when it runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--config", type=click.Path(path_type=Path), metavar="PATH", help="Read this configuration file.")
def reload(config: Path | None) -> None:
    """Let the running program take over new bots and the language from its configuration; no connection is dropped."""
    from bridges.cli.pairing import run  # noqa: PLC0415 - only now, so that --help is quick
    from bridges.cli.reloading import ask  # noqa: PLC0415 - as above

    raise SystemExit(run(config, ask))
