"""The whole examination, for people and for programs."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click

from bridges.cli.examination import files, network, packages, platforms
from bridges.cli.examination.finding import MARKS, Check, Finding, Level
from bridges.cli.spoken import spoken
from bridges.cli.table import rendered
from bridges.config import Config, load, locate
from bridges.config_error import ConfigError
from bridges.environment import environment
from bridges.log import Redactor, logging_to
from bridges.secret import Places
from harness_client.clock import SYSTEM_CLOCK
from i18n import Key, Words

_NAMES: Final = {
    Check.INSTALLATION: Key.DOCTOR_INSTALLATION,
    Check.CONFIGURATION: Key.DOCTOR_CONFIGURATION,
    Check.SECRET: Key.DOCTOR_SECRETS,
    Check.STATE: Key.DOCTOR_STATE_FILE,
    Check.HARNESS: Key.DOCTOR_HOST,
    Check.ENDPOINT: Key.DOCTOR_ENDPOINT,
    Check.PLATFORM: Key.DOCTOR_PLATFORM,
    Check.CLOCK: Key.DOCTOR_TIME,
    Check.PACKAGE: Key.DOCTOR_SDK,
}


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the examination goes: to the platforms, and there to what ends a running bot's connection."""

    platforms: bool = True
    log_in: bool = False


def report(path: Path | None, *, as_json: bool, reach: Reach) -> int:
    """Examine and print; return 0, or 1 when something is wrong."""
    environ = environment()
    words, redact = Words(spoken(environ)), Redactor()
    try:
        config = load(path, environ)
    except ConfigError as error:
        wrong = Finding(Check.CONFIGURATION, error.path, Level.WRONG, words(error.key, **error.values))
        findings = [packages.installation(words), wrong]
    else:
        words, redact = Words(config.language), Redactor(config.secrets())
        file = locate(path, environ)
        places = Places(environ, file.absolute().parent)
        with logging_to(sys.stderr, redact, level=logging.ERROR):
            findings = asyncio.run(_examine(config, file, places, words, reach, redact))
    findings = [each.shown(redact) for each in findings]
    click.echo(_as_json(findings) if as_json else _as_table(findings, words))
    return 1 if _wrong(findings) else 0


async def _examine(
    config: Config, file: Path, places: Places, words: Words, reach: Reach, redact: Redactor
) -> list[Finding]:
    around = platforms.surroundings(config, SYSTEM_CLOCK, redact.hide)
    host, knocks, looks = await asyncio.gather(
        network.host(config, places.environ, SYSTEM_CLOCK, words),
        network.endpoints(config, SYSTEM_CLOCK, words, platforms=reach.platforms),
        platforms.platforms(config, around, words, log_in=reach.log_in)
        if reach.platforms
        else platforms.skipped(config, words),
    )
    return [
        packages.installation(words),
        files.configuration(config, file, words),
        *files.secrets(config, words),
        *files.secret_files(file, places, words),
        *files.stored_logins(config, words),
        files.state(config.state.path, words),
        host,
        *sorted([*knocks, *looks], key=lambda finding: list(Check).index(finding.check)),
        *await packages.packages(config, words),
    ]


def _wrong(findings: Sequence[Finding]) -> int:
    return sum(each.level is Level.WRONG for each in findings)


def _as_json(findings: Sequence[Finding]) -> str:
    told = {"ok": not _wrong(findings), "findings": [asdict(each) for each in findings]}
    return json.dumps(told, ensure_ascii=False, indent=2)


def _as_table(findings: Sequence[Finding], words: Words) -> str:
    headings = ["", words(Key.DOCTOR_CHECK), words(Key.DOCTOR_SUBJECT), words(Key.DOCTOR_FOUND)]
    rows = [[MARKS[each.level], words(_NAMES[each.check]), each.subject, each.text] for each in findings]
    wrong = _wrong(findings)
    end = words(Key.DOCTOR_WRONG, count=wrong) if wrong else words(Key.DOCTOR_WELL)
    return f"{rendered(headings, rows, folds={2})}\n\n{end}"
