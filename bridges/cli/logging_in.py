"""Logs Weixin in: the terminal shows, asks and tells; :mod:`bridges.weixin.login` knows the way."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final

import click

from bridges.cli.qr import drawn
from bridges.cli.spoken import spoken
from bridges.config import Config, Weixin, load
from bridges.config_error import ConfigError
from bridges.environment import environment
from bridges.log import Redactor, logging_to
from bridges.weixin.account import Accounts
from bridges.weixin.hosts import Hosts
from bridges.weixin.login import Failure, Login, LoginFailed, Progress
from bridges.weixin.wire import Wire
from commands.cleaning import one_line
from harness_client.clock import SYSTEM_CLOCK
from i18n import Key, Language, Words

OK, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130

_PROGRESS: Final = {
    Progress.SCANNED: Key.LOGIN_SCANNED,
    Progress.EXPIRED: Key.LOGIN_EXPIRED,
    Progress.BLOCKED: Key.LOGIN_BLOCKED,
}
_FAILURES: Final = {
    Failure.NO_CODE: Key.LOGIN_NO_CODE,
    Failure.EXPIRED: Key.LOGIN_GAVE_UP,
    Failure.BLOCKED: Key.LOGIN_REST,
    Failure.TIMED_OUT: Key.LOGIN_TIMED_OUT,
    Failure.UNTRUSTED: Key.LOGIN_UNTRUSTED,
    Failure.INCOMPLETE: Key.LOGIN_INCOMPLETE,
}


class Terminal:
    """The :class:`bridges.weixin.login.Person` who sits here."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def show(self, address: str) -> None:
        """See :meth:`bridges.weixin.login.Person.show`."""
        if not drawn(address):
            click.echo(self._words(Key.LOGIN_NO_QR))
        click.echo(self._words(Key.LOGIN_SCAN, address=one_line(address)))

    def tell(self, progress: Progress) -> None:
        """See :meth:`bridges.weixin.login.Person.tell`."""
        click.echo(self._words(_PROGRESS[progress]))

    def number(self, *, again: bool) -> str:
        """See :meth:`bridges.weixin.login.Person.number`."""
        key = Key.LOGIN_WRONG_NUMBER if again else Key.LOGIN_NUMBER
        return str(click.prompt(self._words(key), prompt_suffix="\n> "))


def log_in(path: Path | None, language: str | None) -> int:
    """Log in and return the exit code: 0, 1 when nothing came of it, 2 for the configuration, 130 for Ctrl-C."""
    words = Words(spoken(environment(), language))
    try:
        config = load(path, environment())
    except ConfigError as error:
        click.echo(words(error.key, **error.values), err=True)
        return MISUSED
    words = Words(Language(language) if language else config.language)
    redact = Redactor(config.secrets())
    try:
        with logging_to(sys.stderr, redact):
            return asyncio.run(_log_in(config, words, redact))
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except LoginFailed as failure:
        click.echo(words(_FAILURES[failure.why]), err=True)
    except OSError as error:
        click.echo(words(Key.LOGIN_NOT_STORED, reason=redact(str(error))), err=True)
    return FAILED


async def _log_in(config: Config, words: Words, redact: Redactor) -> int:
    """Log in and store the login. Raises LoginFailed, and OSError when the file of logins cannot be used."""
    accounts = Accounts(config.state.path.absolute().parent)
    known = accounts.read()
    hosts = Hosts(next((bot.endpoints.api for bot in config.bots if isinstance(bot, Weixin)), None))
    async with Wire(hosts.base, "", SYSTEM_CLOCK) as wire:
        account = await Login(wire, hosts, Terminal(words), SYSTEM_CLOCK, known).run()
    if account is None:
        click.echo(words(Key.LOGIN_ALREADY))
        return OK
    redact.hide(account.token)
    accounts.save(account)
    account_id, user = one_line(account.id), one_line(account.user or "-")
    click.echo(words(Key.LOGIN_DONE, account=account_id, user=user, path=accounts.path))
    return OK
