"""Links a WhatsApp account: tells the risks, installs the Node package, shows the code, waits for the phone."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from enum import Enum, auto
from pathlib import Path
from typing import Final

import click

from bridges import private_file
from bridges.cli.confirm import confirmed
from bridges.cli.qr import drawn
from bridges.cli.spoken import spoken
from bridges.config import Config, WhatsApp, load
from bridges.config_error import ConfigError
from bridges.environment import environment
from bridges.text.whatsapp_sidecar import BAILEYS, Broken, Closed, Device, Lost, Opened, Qr, started
from harness_client.clock import SYSTEM_CLOCK
from i18n import Key, Language, Words

OK, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130

INSTALL_SECONDS: Final = 600.0
LINK_SECONDS: Final = 300.0
"""How long codes are shown; WhatsApp itself gives up earlier."""

_FOR_NPM: Final = ("PATH", "HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")


class NotInstalled(Exception):
    """The package could not be installed; the text is one word about why."""


class Linking(Enum):
    """How an attempt to link ended."""

    DONE = auto()
    UNLINKED = auto()
    """The login there was is no good any more."""
    EXPIRED = auto()
    BROKEN = auto()


def set_up(path: Path | None, language: str | None, name: str | None, *, yes: bool) -> int:
    """Set one bot up; return the exit code: 0, 1 when nothing came of it, 2 for the configuration, 130 for Ctrl-C."""
    environ = environment()
    words = Words(spoken(environ, language))
    try:
        config = load(path, environ)
    except ConfigError as error:
        click.echo(words(error.key, **error.values), err=True)
        return MISUSED
    words = Words(Language(language) if language else config.language)
    bots = _linked(config, name)
    if len(bots) != 1:
        click.echo(words(Key.WHATSAPP_WHICH_BOT, count=str(len(bots))), err=True)
        return MISUSED
    try:
        click.echo(words(Key.WHATSAPP_RISK))
        if not yes and not confirmed(words(Key.WHATSAPP_AGREE)):
            return FAILED
        return _set_up(config, bots[0], words, environ)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED


def _linked(config: Config, name: str | None) -> list[WhatsApp]:
    bots = [bot for bot in config.bots if isinstance(bot, WhatsApp) and bot.cloud is None]
    return [bot for bot in bots if name in {None, bot.name}]


def _set_up(config: Config, bot: WhatsApp, words: Words, environ: Mapping[str, str]) -> int:
    data = config.state.path.absolute().parent
    device = Device.of(data, bot.name, bot.endpoints.api, environ.get("PATH"))
    if device is None:
        click.echo(words(Key.WHATSAPP_NO_NODE), err=True)
        return FAILED
    try:
        if not device.installed:
            click.echo(words(Key.WHATSAPP_INSTALLING, package=BAILEYS))
            install(device, environ)
    except (NotInstalled, OSError) as error:
        click.echo(words(Key.WHATSAPP_NOT_INSTALLED, reason=str(error) or type(error).__name__), err=True)
        return FAILED
    linking = asyncio.run(_link(device, words))
    if linking is Linking.UNLINKED:
        shutil.rmtree(device.folder, ignore_errors=True)
        linking = asyncio.run(_link(device, words))
    if linking is Linking.DONE:
        click.echo(words(Key.WHATSAPP_LINKED, bot=bot.name, path=device.folder))
        return OK
    click.echo(words(Key.WHATSAPP_EXPIRED if linking is Linking.EXPIRED else Key.WHATSAPP_BROKEN), err=True)
    return FAILED


def install(device: Device, environ: Mapping[str, str]) -> None:
    """Install the package beside its place and move it there as a whole. Raises NotInstalled, OSError.

    No script of any package is run.
    """
    npm = shutil.which("npm", path=environ.get("PATH"))
    if npm is None:
        raise NotInstalled("npm")
    home = device.packages.parent
    private_file.folder(home)
    passed = {
        name: value for name, value in environ.items() if name.upper() in _FOR_NPM or name.startswith("npm_config")
    }
    work = Path(tempfile.mkdtemp(prefix="installing-", dir=home))
    command = [npm, "install", "--prefix", str(work), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run([*command, BAILEYS], env=passed, timeout=INSTALL_SECONDS, check=False)  # noqa: S603 - fixed words
        if done.returncode:
            raise NotInstalled(f"npm: {done.returncode}")
        shutil.rmtree(device.packages, ignore_errors=True)
        (work / "node_modules").rename(device.packages)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"npm: {INSTALL_SECONDS:g} s") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


async def _link(device: Device, words: Words) -> Linking:
    try:
        async with asyncio.timeout(LINK_SECONDS), started(device, SYSTEM_CLOCK) as sidecar:
            while True:
                match await sidecar.event():
                    case Qr(text):
                        click.echo(words(Key.WHATSAPP_SCAN if drawn(text) else Key.WHATSAPP_NO_QR, text=text))
                    case Opened():
                        return Linking.DONE
                    case Closed(401 | 411):
                        return Linking.UNLINKED
                    case Closed():
                        return Linking.EXPIRED
                    case Broken():
                        return Linking.BROKEN
                    case _:
                        pass  # messages are the bot's; it is told of them when it runs
    except TimeoutError:
        return Linking.EXPIRED
    except (Lost, OSError):
        return Linking.BROKEN
