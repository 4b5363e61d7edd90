"""The one table of commands. ``/help``, platform menus and the README derive from it.

Adding a command is one row here, one handler in a module of its family, and its texts in :mod:`i18n`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from commands import control, sessions
from commands.count import parse_count
from commands.help import helper
from commands.history import NAME, history
from commands.model import AttachmentKind, ChatKind, Command, Gate
from commands.recognise import Recognised
from i18n import Key

REBINDS: Final = "rebinds"
"""Tag of a command that changes which session its chat talks to."""


def _no_argument(argument: str) -> bool:
    return not argument


_ROWS: Final[tuple[Command, ...]] = (
    Command(
        NAME,
        usage=Key.HISTORY_USAGE,
        summary=Key.HISTORY_SUMMARY,
        run=history,
        parameter=Key.HISTORY_PARAMETER,
        accepts=lambda argument: parse_count(argument) is not None,
        gate=Gate.PRIVATE,
        private_notice=Key.HISTORY_PRIVATE_ONLY,
    ),
    Command(
        "new",
        usage=Key.NEW_USAGE,
        summary=Key.NEW_SUMMARY,
        run=sessions.new,
        accepts=_no_argument,
        tags=frozenset({REBINDS}),
    ),
    Command(
        "sessions",
        usage=Key.SESSIONS_USAGE,
        summary=Key.SESSIONS_SUMMARY,
        run=sessions.sessions,
        parameter=Key.SESSIONS_PARAMETER,
        accepts=lambda argument: sessions.rows_wanted(argument) is not None,
        aliases=("sessionlist",),
    ),
    Command(
        "session",
        usage=Key.SESSION_USAGE,
        summary=Key.SESSION_SUMMARY,
        run=sessions.session,
        parameter=Key.SESSION_PARAMETER,
        accepts=sessions.is_session_id,
        tags=frozenset({REBINDS}),
    ),
    Command("status", usage=Key.STATUS_USAGE, summary=Key.STATUS_SUMMARY, run=control.status, accepts=_no_argument),
    Command("stop", usage=Key.STOP_USAGE, summary=Key.STOP_SUMMARY, run=control.stop, accepts=_no_argument),
    Command(
        "steer",
        usage=Key.STEER_USAGE,
        summary=Key.STEER_SUMMARY,
        run=control.steer,
        parameter=Key.STEER_PARAMETER,
        accepts=bool,
    ),
    Command(
        "help",
        usage=Key.HELP_USAGE,
        summary=Key.HELP_SUMMARY,
        run=helper(lambda: _ROWS),
        accepts=_no_argument,
    ),
)

COMMANDS: Final[Mapping[str, Command]] = {command.name: command for command in _ROWS}
"""By canonical name, in the order of ``/help``."""

KNOWN: Final[Mapping[str, str]] = {alias: row.name for row in _ROWS for alias in (row.name, *row.aliases)}
"""What :func:`commands.recognise.recognise` looks for: every name and alias, with its canonical name."""


def refusal(recognised: Recognised, kind: ChatKind, attachments: Collection[AttachmentKind]) -> Key | None:
    """Return why a recognised command must not run, as the text to send; None when it may (spec HISTORY 2).

    The place wins over the argument, the argument over attachments. Who may run commands is the bridge's business.
    """
    command = COMMANDS[recognised.name]
    if command.gate is Gate.PRIVATE and kind is not ChatKind.DIRECT:
        return command.private_notice
    if recognised.glued or not command.accepts(recognised.argument):
        return command.usage
    if command.text_only and attachments:
        return Key.CHAT_TEXT_ONLY
    return None
