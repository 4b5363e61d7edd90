"""Runs ``harness-im history``: one request to the archive's service, told in JSON or for reading.

Exit codes: 0 answered, 1 something failed and was told, 2 a bad request, which names the parameter; nothing is read or
written for it.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
import msgspec

from archive.answers import Answer, RefreshAnswer, SearchAnswer, SummarizeAnswer, Why
from archive.model import Code, Host
from archive.problem import BadRequest, Fault
from archive.request import parse_host, parse_read, parse_search
from archive.service import HistoryService
from archive.writers import Writer
from bridges.archives import local_natives, writer
from bridges.cli import past_text
from bridges.cli.history import Options
from bridges.cli.spoken import spoken
from bridges.config import Config, Summaries, load
from bridges.config_error import ConfigError
from bridges.environment import environment
from commands import archive_words
from i18n import Key, Language, Words

OK, FAILED, MISUSED = 0, 1, 2

_NUMBERS: Final = frozenset({"offset", "limit", "childrenOffset"})
_NUMBER: Final = re.compile(r"-?\d{1,99}", re.ASCII)
_NOT_WRITTEN: Final = frozenset({Code.ARCHIVE_NOT_SAVED, Code.ARCHIVE_BUSY})


class _Session:
    """One request: where it goes and how its answer is told."""

    def __init__(self, options: Options) -> None:
        self.json = options.as_json
        self._options = options
        self._config = Config()
        self.words = Words(spoken(environment(), options.language))

    def configure(self) -> None:
        """Read the configuration. Raises ConfigError."""
        self._config = load(self._options.config, environment())
        self.words = Words(Language(self._options.language or self._config.language))

    @property
    def summaries(self) -> Summaries:
        return self._config.summaries

    def service(self) -> HistoryService:
        """Return the workspace's history. Raises BadRequest."""
        workspace = self._options.workspace or Path.cwd()
        if not workspace.is_dir():
            raise BadRequest(Fault.NO_WORKSPACE, "workspace")
        natives = local_natives(environment())
        current = parse_host(self._options.current)
        return HistoryService(workspace, {current: natives[current]} if current else natives)

    def tell(self, answer: Answer, text: Callable[[], None]) -> None:
        """Print an answer: one line of JSON, or as ``text`` does."""
        if self.json:
            click.echo(msgspec.json.encode(answer).decode())
        else:
            text()

    def refuse(self, error: BadRequest) -> int:
        """Say what is wrong with the request."""
        if self.json:
            click.echo(json.dumps(archive_words.error_json(error, self.words), ensure_ascii=False))
        click.echo(archive_words.fault(error, self.words), err=True)
        return MISUSED

    @contextmanager
    def progress(self, key: Key) -> Iterator[Callable[[int, int], None] | None]:
        """Show how far a long piece of work is, where a person looks on."""
        if not _looked_at():
            yield None
            return
        with click.progressbar(length=1, label=self.words(key), file=sys.stderr) as bar:

            def show(done: int, total: int) -> None:
                bar.length = total
                bar.update(done - bar.pos)

            yield show


def _looked_at() -> bool:
    return sys.stderr.isatty()


def _run(options: Options, work: Callable[[_Session], Awaitable[int]]) -> int:
    session = _Session(options)
    try:
        session.configure()
        return asyncio.run(_awaited(work(session)))
    except ConfigError as error:
        click.echo(session.words(error.key, **error.values), err=True)
        return MISUSED
    except BadRequest as error:
        return session.refuse(error)


async def _awaited(work: Awaitable[int]) -> int:
    return await work


def _typed(given: Mapping[str, str | None]) -> dict[str, object]:
    """Read the numbers of a command line; what is none is left for the parser to refuse by name."""
    return {
        name: int(text) if text and name in _NUMBERS and _NUMBER.fullmatch(text) else text
        for name, text in given.items()
    }


def run_search(options: Options, given: Mapping[str, str | None], *, refresh: bool) -> int:
    """Search, or list the sessions."""

    async def work(session: _Session) -> int:
        asked = parse_search(_typed(given))
        with session.progress(Key.PAST_SCANNING) as progress:
            answer = await session.service().search(asked, refresh=refresh, progress=progress)
        if answer.reason is not None and answer.reason.code is Why.NO_ARCHIVE:
            return _no_archive(session, answer)
        session.tell(answer, lambda: past_text.search(answer, asked.query, session.words))
        return OK

    return _run(options, work)


def _no_archive(session: _Session, answer: SearchAnswer) -> int:
    """Refuse a workspace without any history; its answer is no less an answer."""
    error = BadRequest(Fault.NO_ARCHIVE, "workspace")
    if session.json:
        told = msgspec.to_builtins(answer) | archive_words.error_json(error, session.words)
        click.echo(json.dumps(told, ensure_ascii=False))
    click.echo(archive_words.fault(error, session.words), err=True)
    return MISUSED


def run_read(options: Options, given: Mapping[str, str | None]) -> int:
    """Read one node."""

    async def work(session: _Session) -> int:
        answer = await session.service().read(parse_read(_typed(given)))
        session.tell(answer, lambda: past_text.read(answer, session.words))
        return OK

    return _run(options, work)


def run_refresh(options: Options, host: str | None) -> int:
    """Refresh one source or both; one answer each."""

    async def work(session: _Session) -> int:
        only = parse_host(host)
        service = session.service()
        with session.progress(Key.PAST_SCANNING) as progress:
            answers = await service.refresh(only, progress)
        for answer in answers:
            _tell_refresh(session, answer)
        return FAILED if any(each.code in _NOT_WRITTEN for answer in answers for each in answer.warnings) else OK

    return _run(options, work)


def _tell_refresh(session: _Session, answer: RefreshAnswer) -> None:
    def text() -> None:
        counts = {name: getattr(answer, name) for name in ("sessions", "pairs", "added", "updated", "unchanged")}
        click.echo(session.words(Key.PAST_REFRESHED, host=answer.host, **counts))
        past_text.warnings(answer.warnings, session.words)

    session.tell(answer, text)


def run_summarize(options: Options, host: str | None, *, refresh: bool) -> int:
    """Fill in what is pending, of one source or of every one that has a model; Ctrl-C and SIGTERM stop it."""

    async def work(session: _Session) -> int:
        only = parse_host(host)
        service = session.service()
        writers = _writers(only, session.summaries)
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        failed = 0
        for each, by in writers.items():
            if refresh:
                await service.refresh(each)
            with session.progress(Key.PAST_WRITING) as progress:
                answer = await service.summarize(each, by, stop, progress)
            _tell_summaries(session, answer)
            failed += answer.failed
        return FAILED if failed else OK

    return _run(options, work)


def _writers(only: Host | None, summaries: Summaries) -> dict[Host, Writer]:
    found = {host: writer(host, summaries, environment()) for host in ((only,) if only else tuple(Host))}
    known = {host: by for host, by in found.items() if by is not None}
    if not known:
        raise BadRequest(Fault.NO_WRITER, "host")
    return known


def _tell_summaries(session: _Session, answer: SummarizeAnswer) -> None:
    def text() -> None:
        key = Key.PAST_STOPPED if answer.cancelled else Key.PAST_SUMMARISED
        click.echo(
            session.words(key, host=answer.host, written=answer.written, failed=answer.failed, pending=answer.pending)
        )
        past_text.warnings(answer.warnings, session.words)

    session.tell(answer, text)


def run_mcp(options: Options, host: str) -> int:
    """Serve the tool until the client leaves."""

    async def work(session: _Session) -> int:
        current = parse_host(host) or Host.DSH
        service = HistoryService(session.service().workspace, {current: local_natives(environment())[current]})
        try:
            from bridges.mcp_server import serve  # noqa: PLC0415 - an extra that others need not install
        except ImportError:
            click.echo(session.words(Key.PAST_NO_MCP), err=True)
            return FAILED
        await serve(service, session.words)
        return OK

    return _run(options, work)
