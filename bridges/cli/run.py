"""``harness-im run``: its options. What it does is :mod:`bridges.cli.running`, loaded when it runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--config", type=click.Path(path_type=Path), metavar="PATH", help="Read this configuration file.")
def run(*, config: Path | None) -> None:
    """Serve all bots of the configuration until SIGTERM or Ctrl-C."""
    from bridges.cli import lean  # noqa: F401, PLC0415 - first, see there
    from bridges.cli.running import serve_all  # noqa: PLC0415 - only now, so that --help is quick

    raise SystemExit(serve_all(config))
