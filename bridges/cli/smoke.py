"""``harness-im smoke``: its options. What it does is :mod:`bridges.cli.smoking`, loaded when it runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--simulated", "side", flag_value="simulated", help="Run on the simulated platforms that ship with it.")
@click.option("--live", "side", flag_value="live", help="Walk you through each configured bot.")
@click.option("--channel", "channels", multiple=True, metavar="NAME", help="Only this channel; may be repeated.")
@click.option("--report", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Put the report there.")
@click.option("--wait", default=120.0, type=click.FloatRange(1, 3600), metavar="SECONDS", help="For each message.")
@click.option("--language", type=click.Choice(["zh", "en"]), help="Language of the program's own words.")
@click.option("--config", type=click.Path(path_type=Path), metavar="PATH", help="Read this configuration file.")
def smoke(
    *,
    side: str | None,
    channels: tuple[str, ...],
    report: Path | None,
    wait: float,
    language: str | None,
    config: Path | None,
) -> None:
    """Try /history on every channel and write a report; no session is created and no model is called.

    Exit code 0: all was done that can be, and passed; 1: something failed; 3: something was not done.
    """
    if side is None:
        raise click.UsageError("--simulated or --live")
    from bridges.cli.smoking import running  # noqa: PLC0415 - only now, so that --help is quick
    from bridges.cli.smoking.lines import Side  # noqa: PLC0415 - as above

    options = running.Options(
        side=Side(side), channels=channels, report=report, config=config, language=language, patience=wait
    )
    raise SystemExit(running.smoke(options))
