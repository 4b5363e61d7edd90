"""``harness-im health``: whether a program runs on the configured state, for whoever asks every half minute."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--config", type=click.Path(path_type=Path), metavar="PATH", help="Read this configuration file.")
def health(config: Path | None) -> None:
    """Say whether harness-im run lives and is not stuck; exit code 1 if not. For health checks of containers."""
    from bridges.cli.living import look  # noqa: PLC0415 - only now, so that --help is quick

    raise SystemExit(look(config))
