"""Looks at the Telegram side of a bot: whose the token is, and what @BotFather was told. Imports the SDK."""

from __future__ import annotations

from telegram import Bot
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, TelegramError
from telegram.error import RetryAfter as FloodControl

from bridges.checkup import kind, unanswered
from bridges.http import CallFailed
from bridges.message import Noticed, Sign


async def look(bot: Bot) -> tuple[Noticed, ...]:
    """See :meth:`bridges.message.ChecksPlatform.check`; takes no message, and a webhook that is set stays."""
    try:
        me, webhook = await bot.get_me(), await bot.get_webhook_info()
    except TelegramError as error:
        return (_unseen(error),)
    signs = {
        Sign.WEBHOOK_SET: bool(webhook.url),
        Sign.READS_ALL: bool(me.can_read_all_group_messages),
        Sign.NO_GROUPS: me.can_join_groups is False,
    }
    return Noticed(Sign.ACCEPTED, me.name), *(Noticed(sign) for sign, shown in signs.items() if shown)


def _unseen(error: TelegramError) -> Noticed:
    """Return what a call shows that was not answered; the order counts, for BadRequest is a NetworkError."""
    match error:
        case _ if isinstance(error.__cause__, CallFailed):
            return unanswered(error.__cause__)
        case _ if isinstance(error.__cause__, TelegramError):
            return Noticed(Sign.UNREADABLE, kind(error))  # a page of something in between
        case InvalidToken():
            return Noticed(Sign.BAD_CREDENTIAL, "token")
        case FloodControl():
            return Noticed(Sign.BUSY, "429")
        case BadRequest() | Forbidden() | Conflict():
            return Noticed(Sign.REFUSED, kind(error))
        case _:
            return Noticed(Sign.UNREADABLE, kind(error))
