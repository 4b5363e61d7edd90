"""``harness-im doctor``: its options. What it does is :mod:`bridges.cli.examination`, loaded when it runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--config", type=click.Path(path_type=Path), metavar="PATH", help="Read this configuration file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--offline", is_flag=True, help="Do not connect to the platforms.")
@click.option("--login", is_flag=True, help="Log in also where that pushes out a running bot (WeCom).")
def doctor(*, config: Path | None, as_json: bool, offline: bool, login: bool) -> None:
    """Examine installation, configuration, state, Harness and platforms; exit code 1 when something is wrong."""
    from bridges.cli.examination.report import Reach, report  # noqa: PLC0415 - only now, so that --help is quick

    raise SystemExit(report(config, as_json=as_json, reach=Reach(platforms=not offline, log_in=login)))
