"""The one table of commands. ``/help``, platform menus and the README derive from it.

Adding a command is one row here, one handler in a module of its family, and its texts in :mod:`i18n`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from commands import about, batch, control, models, pbot, presets, sessions, workspaces
from commands.compact import compact
from commands.count import parse_count
from commands.help import helper
from commands.history import NAME, history
from commands.model import AttachmentKind, ChatKind, Command, Gate
from commands.recognise import Recognised
from i18n import Key

BARRIER: Final = "barrier"
"""Tag of a command that changes what a later message does, or what its number means: that waits until it is over."""


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
        tags=frozenset({BARRIER}),
    ),
    Command(
        "sessions",
        usage=Key.SESSIONS_USAGE,
        summary=Key.SESSIONS_SUMMARY,
        run=sessions.sessions,
        parameter=Key.SESSIONS_PARAMETER,
        accepts=lambda argument: sessions.parse_asked(argument) is not None,
        aliases=("sessionlist",),
        tags=frozenset({BARRIER}),
    ),
    Command(
        "session",
        usage=Key.SESSION_USAGE,
        summary=Key.SESSION_SUMMARY,
        run=sessions.session,
        parameter=Key.SESSION_PARAMETER,
        accepts=sessions.is_session_id,
        tags=frozenset({BARRIER}),
    ),
    Command(
        "workspaces",
        usage=Key.WORKSPACES_USAGE,
        summary=Key.WORKSPACES_SUMMARY,
        run=workspaces.workspaces,
        accepts=_no_argument,
        aliases=("workspacelist", "wsl"),
        tags=frozenset({BARRIER}),
    ),
    Command(
        "workspace",
        usage=Key.WORKSPACE_USAGE,
        summary=Key.WORKSPACE_SUMMARY,
        run=workspaces.workspace,
        parameter=Key.WORKSPACE_PARAMETER,
        accepts=workspaces.is_choice,
        aliases=("ws",),
        tags=frozenset({BARRIER}),
    ),
    Command(
        "conv",
        usage=Key.CONV_USAGE,
        summary=Key.CONV_SUMMARY,
        run=workspaces.conv,
        parameter=Key.CONV_PARAMETER,
        accepts=workspaces.is_pin,
        aliases=("conversation", "thread"),
        tags=frozenset({BARRIER}),
    ),
    Command(
        "models",
        usage=Key.MODELS_USAGE,
        summary=Key.MODELS_SUMMARY,
        run=models.models,
        accepts=_no_argument,
        tags=frozenset({BARRIER}),
    ),
    Command(
        "model",
        usage=Key.MODEL_USAGE,
        summary=Key.MODEL_SUMMARY,
        run=models.model,
        parameter=Key.MODEL_PARAMETER,
        accepts=models.is_choice,
        tags=frozenset({BARRIER}),
    ),
    Command(
        "reasonings",
        usage=Key.REASONINGS_USAGE,
        summary=Key.REASONINGS_SUMMARY,
        run=models.reasonings,
        accepts=_no_argument,
        aliases=("reasoninglist",),
        tags=frozenset({BARRIER}),
    ),
    Command(
        "reasoning",
        usage=Key.REASONING_USAGE,
        summary=Key.REASONING_SUMMARY,
        run=models.reasoning,
        parameter=Key.REASONING_PARAMETER,
        accepts=models.is_word,
        tags=frozenset({BARRIER}),
    ),
    Command(
        "presets",
        usage=Key.PRESETS_USAGE,
        summary=Key.PRESETS_SUMMARY,
        run=presets.presets,
        accepts=_no_argument,
        aliases=("presetlist",),
        tags=frozenset({BARRIER}),
    ),
    Command(
        "preset",
        usage=Key.PRESET_USAGE,
        summary=Key.PRESET_SUMMARY,
        run=presets.preset,
        parameter=Key.PRESET_PARAMETER,
        accepts=models.is_word,
        tags=frozenset({BARRIER}),
    ),
    Command(
        "compact",
        usage=Key.COMPACT_USAGE,
        summary=Key.COMPACT_SUMMARY,
        run=compact,
        accepts=_no_argument,
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
        "batch",
        usage=Key.BATCH_USAGE,
        summary=Key.BATCH_SUMMARY,
        run=batch.batch,
        accepts=_no_argument,
        gate=Gate.PRIVATE,
        private_notice=Key.BATCH_PRIVATE_ONLY,
        during_batch=True,
    ),
    Command(
        "send",
        usage=Key.SEND_USAGE,
        summary=Key.SEND_SUMMARY,
        run=batch.send,
        accepts=_no_argument,
        gate=Gate.PRIVATE,
        private_notice=Key.BATCH_PRIVATE_ONLY,
        text_only=False,
        during_batch=True,
    ),
    Command(
        "cancel",
        usage=Key.CANCEL_USAGE,
        summary=Key.CANCEL_SUMMARY,
        run=batch.cancel,
        accepts=_no_argument,
        gate=Gate.PRIVATE,
        private_notice=Key.BATCH_PRIVATE_ONLY,
        text_only=False,
        during_batch=True,
    ),
    Command(
        "language",
        usage=Key.LANGUAGE_USAGE,
        summary=Key.LANGUAGE_SUMMARY,
        run=about.language,
        parameter=Key.LANGUAGE_PARAMETER,
        accepts=about.is_language,
        tags=frozenset({BARRIER}),
    ),
    Command(
        "version",
        usage=Key.VERSION_USAGE,
        summary=Key.VERSION_SUMMARY,
        run=about.version,
        accepts=_no_argument,
    ),
    Command(
        "pair",
        usage=Key.PAIR_USAGE,
        summary=Key.PAIR_SUMMARY,
        run=about.pair,
        parameter=Key.PAIR_PARAMETER,
        accepts=about.is_code,
        gate=Gate.OWNER,
    ),
    Command(
        pbot.NAME,
        usage=Key.PBOT_USAGE,
        summary=Key.PBOT_SUMMARY,
        run=pbot.pbot,
        parameter=Key.PBOT_PARAMETER,
        accepts=pbot.accepts,
        gate=Gate.OWNER,
    ),
    Command(
        "help",
        usage=Key.HELP_USAGE,
        summary=Key.HELP_SUMMARY,
        run=helper(lambda: _ROWS),
        accepts=_no_argument,
        aliases=("start",),  # what chat apps send for a person who opens a bot; it must not cost a model run
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
