"""Answers that outlive their wait, or us: delivered once, to the same chat, while its binding is the same."""

from __future__ import annotations

from dataclasses import replace

from bridges.bot import RunningBot
from bridges.host_turn import HostTurn, Withdrawn
from bridges.message import EditsMessages, Sent
from bridges.split import split_answer
from bridges.state import Phase, StateError, Turn
from bridges.turn import create_session
from bridges.turn_text import ending_text, failure_text
from commands.model import StaleBinding
from harness_client.errors import HarnessError
from harness_client.watch import PromptLost, PromptParked
from i18n import Key, Words

LATE_SECONDS = 24 * 3600.0
"""How long a late answer is waited for."""


async def settle(bot: RunningBot, turn: Turn) -> None:
    """Say what became of a turn of an earlier process that the host does not run (:class:`Phase`).

    The turn ends when that is said: a process killed in between says it once more rather than never.
    """
    words = await bot.words(turn.chat)
    if turn.phase is Phase.CREATING:
        await _keep_session(bot, turn)
    key = Key.CHAT_CUT_OFF if turn.phase is Phase.DELIVERING else Key.CHAT_SEND_AGAIN
    await bot.replies.reply(turn.reply_to, (words(key),))
    await bot.state.turns.end(turn)


async def _keep_session(bot: RunningBot, turn: Turn) -> None:
    """Bind the session that was about to be made, if the chat still has none; without a host it is given up."""
    binding = await bot.state.chats.get(turn.chat)
    if binding.session is not None or turn.session is None or turn.cwd is None:
        return
    try:
        await create_session(bot, turn.chat, turn.session, turn.cwd)
        await bot.state.chats.bind(turn.chat, turn.session, expected=binding)
    except (HarnessError, StaleBinding) as error:
        bot.references.record(error, actor=turn.sender, session=turn.session)


async def finish_late(bot: RunningBot, turn: Turn, host_turn: HostTurn) -> None:
    """Wait for the end of a turn that nobody waits for any more, and deliver its answer at most once.

    Nothing is delivered when the chat's binding is no longer the one the prompt was made in. Whoever calls ends the
    turn in the state.
    """
    words = await bot.words(turn.chat)
    text = await _late_text(bot, turn, host_turn, words)
    if text is None or await bot.state.chats.get(turn.chat) != turn.binding:
        return
    try:
        await bot.state.turns.save(replace(turn, phase=Phase.DELIVERING))
    except StateError as error:  # a full disk does not stop an answer
        bot.references.record(error, actor=turn.sender, session=turn.session)
    if not await _deliver(bot, turn, text):
        await bot.replies.reply(turn.reply_to, (words(Key.CHAT_UNDELIVERED),))


async def _late_text(bot: RunningBot, turn: Turn, host_turn: HostTurn, words: Words) -> str | None:
    try:
        await host_turn.over(patience=LATE_SECONDS, limit=LATE_SECONDS)
    except Withdrawn:
        return words(Key.CHAT_WITHDRAWN)
    except PromptLost:
        return words(Key.CHAT_PROMPT_LOST)
    except PromptParked:
        return words(Key.CHAT_PARKED)
    except HarnessError as error:
        reference = bot.references.record(error, actor=turn.sender, session=turn.session)
        return failure_text(error, words, reference)
    reader = host_turn.reader
    return words(Key.CHAT_LATE, text=ending_text(reader, words)[0]) if reader.ending else None


async def _deliver(bot: RunningBot, turn: Turn, text: str) -> bool:
    """Send the answer; a message that was growing when we went away takes its beginning."""
    segments = split_answer(text, bot.channel.limits)
    if turn.carrier is not None and isinstance(bot.channel, EditsMessages):
        outcome = await bot.channel.edit(turn.reply_to, turn.carrier, segments[0])
        segments = segments[1:] if isinstance(outcome, Sent) else segments
    return not segments or await bot.replies.reply(turn.reply_to, segments)
