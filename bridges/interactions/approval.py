"""An approval of one tool call: shown with all its arguments or turned down, decided by exact words, once."""

from __future__ import annotations

import contextlib
import json
import unicodedata
from typing import Final

from bridges.bot import RunningBot
from bridges.interactions.matter import Heard, Notices, confirmed
from commands.cleaning import clean
from commands.model import SenderId
from commands.recognise import BLANKS, INVISIBLE
from harness_client.errors import HarnessError
from harness_client.events import ToolCall
from harness_client.settled import LOOK_BACK, Settled, approval_in
from harness_client.streams import ApprovalAsked
from harness_client.types import Decision, Receipt, SessionId
from i18n import Key, Words

_DECISIONS: Final = {
    "批准": Decision.ALLOW_ONCE,
    "同意": Decision.ALLOW_ONCE,
    "yes": Decision.ALLOW_ONCE,
    "拒绝": Decision.REJECT,
    "不同意": Decision.REJECT,
    "no": Decision.REJECT,
}
"""The only words that decide, the same in both languages."""

_REASON_LENGTH: Final = 500
"""Characters of the model's reason that are shown; it is no part of what is approved."""

_TRIES, _PAUSE = 3, 1.0
"""How often the call is looked for in the log, and the seconds between."""


def decision_in(text: str) -> Decision | None:
    """Return the decision a message is, and nothing but."""
    return _DECISIONS.get(text.strip(BLANKS + INVISIBLE).lower())


class Approval:
    """One tool call that waits. ``arguments`` is all of them, as they are shown."""

    rank = 1
    notices = Notices(
        already=Key.APPROVAL_ALREADY,
        text_only=Key.APPROVAL_TEXT_ONLY,
        failed=Key.APPROVAL_FAILED,
        switched=Key.APPROVAL_SWITCHED,
        restarted=Key.APPROVAL_RESTARTED,
        expired=Key.APPROVAL_EXPIRED,
        unshown=Key.APPROVAL_UNSHOWN,
    )

    def __init__(
        self, bot: RunningBot, asked: ApprovalAsked, parent: SessionId | None, arguments: str | None = None
    ) -> None:
        self.id = asked.id
        self._bot = bot
        self._asked = asked
        self._parent = parent
        self._arguments = arguments or ""

    def text(self, words: Words) -> str:
        """See :meth:`Matter.text`."""
        lines = [words(Key.APPROVAL_ASKED), words(Key.APPROVAL_TOOL, tool=escaped(self._asked.tool))]
        reason = " ".join(clean(self._asked.reason).split())
        if reason:
            shown = reason if len(reason) <= _REASON_LENGTH else f"{reason[: _REASON_LENGTH - 1]}…"
            lines.append(words(Key.APPROVAL_REASON, reason=shown))
        return "\n".join([*lines, words(Key.APPROVAL_ARGUMENTS), self._arguments, words(Key.APPROVAL_HINT)])

    async def hear(self, text: str, words: Words) -> Heard:
        """See :meth:`Matter.hear`."""
        decision = decision_in(text)
        if decision is None:
            return Heard(words(Key.APPROVAL_HINT))
        match await self._bot.harness.decide(self._asked, decision):
            case Receipt.ACCEPTED:
                settled = Settled.OURS
            case Receipt.NOT_PENDING | Receipt.INVALID:
                settled = Settled.OTHERWISE
            case Receipt.UNKNOWN:
                settled = await confirmed(
                    self._bot, self._asked.session, self._parent, lambda page: approval_in(page, self._asked, decision)
                )
        return Heard(self._told(settled, decision, words), over=True)

    def _told(self, settled: Settled, decision: Decision, words: Words) -> str:
        match settled:
            case Settled.OURS:
                return words(Key.APPROVAL_ALLOWED if decision is Decision.ALLOW_ONCE else Key.APPROVAL_REJECTED)
            case Settled.OTHERWISE:
                return self.elsewhere(None, words)
            case Settled.OPEN:
                return words(Key.APPROVAL_UNCONFIRMED)

    def elsewhere(self, outcome: str | None, words: Words) -> str:
        """See :meth:`Matter.elsewhere`."""
        keys = {Decision.ALLOW_ONCE: Key.APPROVAL_ALLOWED_ELSEWHERE, Decision.REJECT: Key.APPROVAL_REJECTED_ELSEWHERE}
        return words(next((key for decision, key in keys.items() if decision == outcome), Key.APPROVAL_ELSEWHERE))

    async def withdraw(self) -> None:
        """See :meth:`Matter.withdraw`."""
        await self._bot.harness.decide(self._asked, Decision.REJECT)


async def arguments_of(bot: RunningBot, asked: ApprovalAsked, parent: SessionId | None, actor: SenderId) -> str | None:
    """Return the arguments of the call that waits, as they are to be shown; None when the log has no such call."""
    for attempt in range(_TRIES):
        if attempt:
            await bot.clock.sleep(_PAUSE)
        try:
            page = await bot.harness.page(asked.session, limit=LOOK_BACK, parent=parent)
        except HarnessError as error:
            bot.references.record(error, actor=actor, session=asked.session)
            continue
        calls = [event for event in page.events if isinstance(event, ToolCall) and event.call == asked.call]
        if calls:
            return shown(calls[-1].arguments) if calls[-1].name == asked.tool else None
    return None


def shown(arguments: str) -> str:
    """Return a tool's arguments for reading: laid out where they are JSON, and nothing in them hidden."""
    with contextlib.suppress(ValueError, RecursionError):  # no JSON: shown as the model wrote it
        arguments = json.dumps(json.loads(arguments), ensure_ascii=False, indent=2)
    return escaped(arguments)


def escaped(text: str) -> str:
    r"""Write as ``\uXXXX`` whatever could hide in a text, pass for a blank or turn its direction; LF stays."""
    return "".join(_escape(char) if _hides(char) else char for char in text)


def _hides(char: str) -> bool:
    if char in "\n ":
        return False
    return unicodedata.category(char)[0] in "CZ" or char in "\u115f\u1160\u3164\uffa0" or "\ufe00" <= char <= "\ufe0f"


def _escape(char: str) -> str:
    return f"\\u{ord(char):04x}" if char <= "\uffff" else f"\\U{ord(char):08x}"
