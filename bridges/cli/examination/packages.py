"""The installation: whose our packages are, and what the platforms' SDKs cost to import."""

from __future__ import annotations

import asyncio
import json
import platform
import re
import sys
from importlib import metadata, util
from pathlib import Path
from typing import Final

from bridges.cli.examination.finding import Check, Finding, Level
from bridges.config import APP, AnyBot, Config, WhatsApp
from i18n import Key, Words

OURS: Final = ("archive", "bridges", "commands", "harness_client", "i18n")
IMPORT_SECONDS: Final = 60.0
"""The slowest SDK takes ten on a slow disk."""

_MEASURE: Final = """
import json, resource, sys, time
def held():
    try:
        return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
before, began = held(), time.perf_counter()
for name in sys.argv[1:]:
    __import__(name)
print(json.dumps([time.perf_counter() - began, held() - before]))
"""
"""Run in an interpreter of its own, where nothing is loaded yet. Prints seconds and MiB.

Linux's ``ru_maxrss`` would be that of the process it was started from; macOS has no ``/proc``, and counts in bytes.
"""


def installation(words: Words) -> Finding:
    """Look whether all our packages are those of this program: their names are common ones."""
    owners = metadata.packages_distributions()
    home = Path(__file__).parents[3]
    for name in OURS:
        others = {_canonical(owner) for owner in owners.get(name, ())} - {APP}
        spec = util.find_spec(name)
        place = Path(spec.origin).parents[1] if spec and spec.origin else None
        if others or place != home:
            text = words(Key.DOCTOR_FOREIGN, name=name, owner=", ".join(sorted(others)) or place)
            return Finding(Check.INSTALLATION, name, Level.WRONG, text)
    text = words(Key.DOCTOR_INSTALLED, version=metadata.version(APP), python=platform.python_version())
    return Finding(Check.INSTALLATION, APP, Level.OK, text)


async def packages(config: Config, words: Words) -> list[Finding]:
    """Measure what the configured channels need, one after the other so that none slows the next."""
    extras = sorted({extra(bot) for bot in config.bots} | ({"embedded"} if config.harness.embedded else set()))
    brought = {name: each for each in reversed(extras) for name in needed(each)}
    return [await _package(name, each, words) for name, each in sorted(brought.items())]


def extra(bot: AnyBot) -> str:
    """Return the extra that a bot needs; empty for a number on the Cloud API, which needs none."""
    return "" if isinstance(bot, WhatsApp) and bot.cloud else bot.channel


def needed(extra: str) -> list[str]:
    """Return the distributions an extra of ours brings, by our own metadata; none where there is no such extra."""
    found = [re.match(rf"([\w.-]+).*\bextra == ['\"]{extra}['\"]", each) for each in metadata.requires(APP) or ()]
    return [match[1] for match in found if match]


def _range(name: str) -> str:
    """Return the versions of a distribution that we were made for, such as ``<23,>=22.5``; empty: any."""
    found = [re.match(rf"{re.escape(name)}\s*([^;\[\s]*)\s*(;|$)", each) for each in metadata.requires(APP) or ()]
    return next((match[1] for match in found if match), "")


def fits(version: str, wanted: str) -> bool:
    """Whether a version is within a range of ours, which has numbers alone but for ``==``."""
    for sign, limit in re.findall(r"(==|>=|<)([^,]+)", wanted):
        ours, theirs = _numbers(version), _numbers(limit)
        if not {"==": version == limit, ">=": ours >= theirs, "<": ours < theirs}[sign]:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; those at its end that are 0 say nothing."""
    leading = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(each) for each in leading[0].split(".")] if leading else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def missing(extra: str) -> bool:
    """Return whether something that an extra of ours brings is not installed."""
    return any(_version(name) is None for name in needed(extra))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


async def _package(name: str, extra: str, words: Words) -> Finding:
    version = _version(name)
    if version is None:
        return Finding(Check.PACKAGE, name, Level.WRONG, words(Key.DOCTOR_NOT_INSTALLED, extra=extra))
    if not fits(version, wanted := _range(name)):
        text = words(Key.DOCTOR_OTHER_VERSION, version=version, range=wanted, extra=extra)
        return Finding(Check.PACKAGE, name, Level.WRONG, text)
    cost = await measure(_modules(name))
    if cost is None:
        return Finding(Check.PACKAGE, name, Level.WRONG, words(Key.DOCTOR_NO_IMPORT, version=version))
    seconds, megabytes = cost
    text = words(Key.DOCTOR_PACKAGE, version=version, seconds=f"{seconds:.1f}", megabytes=f"{megabytes:.0f}")
    return Finding(Check.PACKAGE, name, Level.OK, text)


def _modules(name: str) -> list[str]:
    owned = metadata.packages_distributions().items()
    wanted = _canonical(name)
    return [module for module, owners in owned if wanted in map(_canonical, owners) and module[0] != "_"]


async def measure(modules: list[str]) -> tuple[float, float] | None:
    """Import ``modules`` in an interpreter of their own; return seconds and MiB, None when that fails."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _MEASURE, *modules, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(IMPORT_SECONDS):
            out, _ = await child.communicate()
    except TimeoutError:
        return None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        return None
    seconds, megabytes = json.loads(out.splitlines()[-1])
    return float(seconds), float(megabytes)


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
