"""A person's chat: a prompt that stays usable while answers grow above it."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from bridges.message import AnswerStream, EventId, Inbox, ReplyTarget, SendOutcome, Sent
from bridges.state import StateError
from bridges.terminal.chat import UNLIMITED, spoken
from commands.cleaning import clean

_STYLE = Style.from_dict({"prompt": "bold ansicyan", "growing": "nobold fg:default"})
_PROMPT = "› "
_MARK = "● "
_INDENT = "  "
_GROWING_SHOWN = 400
"""Characters of an unfinished line that are shown: the prompt must stay on the screen."""


class ScreenChannel:
    """The chat on a terminal. ``trouble`` words an error that kept a message from being taken."""

    limits = UNLIMITED

    def __init__(self, mint: Callable[[], str], trouble: Callable[[StateError], str]) -> None:
        self._mint = mint
        self._trouble = trouble
        self._growing = ""
        # What a person types may be private: the input history is kept in memory only.
        # The prompt erases itself: what it showed of an unfinished answer would stay behind as a torn line.
        self._session: PromptSession[str] = PromptSession(history=InMemoryHistory(), style=_STYLE, erase_when_done=True)

    async def run(self, inbox: Inbox) -> None:
        """Read messages until the person leaves with Ctrl-C or Ctrl-D."""
        with patch_stdout():
            inbox.connected()
            while True:
                try:
                    text = await self._session.prompt_async(self._message)
                except (EOFError, KeyboardInterrupt):
                    return
                if not text.strip():
                    continue
                self.put(clean(text), mark=_PROMPT)
                try:
                    await inbox.accept(spoken(text, EventId(self._mint())))
                except StateError as error:
                    self.show(self._trouble(error))

    def settled(self, event: EventId) -> None:
        """Nothing waits for a reply here: the person sees it."""

    async def send(self, target: ReplyTarget, text: str) -> SendOutcome:
        """Print a reply above the prompt."""
        return await self.send_reply(target, (text,))

    async def send_reply(self, target: ReplyTarget, segments: tuple[str, ...]) -> SendOutcome:
        """Print a whole reply above the prompt."""
        del target
        self.show("".join(segments))
        return Sent(None)

    async def begin(self, target: ReplyTarget) -> AnswerStream:
        """Let an answer grow above the prompt."""
        del target
        return _Growing(self)

    async def close(self) -> None:
        """Nothing is held."""

    def show(self, text: str) -> None:
        """Print ``text`` above the prompt, marked as the other side's."""
        self.put(clean(text), mark=_MARK)

    def put(self, text: str, *, mark: str) -> None:
        """Print clean ``text`` above the prompt, ``mark`` before its first line."""
        print(*(f"{_INDENT if n else mark}{line}".rstrip() for n, line in enumerate(text.split("\n"))), sep="\n")

    def grow(self, text: str) -> None:
        """Show the unfinished line of an answer right above the prompt."""
        self._growing = text
        self._session.app.invalidate()

    def _message(self) -> StyleAndTextTuples:
        prompt = ("class:prompt", _PROMPT)
        if not self._growing:
            return [prompt]
        return [("class:growing", f"{self._growing[-_GROWING_SHOWN:]}\n"), prompt]


class _Growing:
    """One answer: its finished lines are printed for good, the unfinished one stays above the prompt."""

    def __init__(self, screen: ScreenChannel) -> None:
        self._screen = screen
        self._printed = ""

    async def update(self, text: str) -> None:
        """Show the answer so far."""
        finished, newline, growing = clean(text).rpartition("\n")
        self._print(finished + newline)
        self._screen.grow(f"{_INDENT if self._printed else _MARK}{growing}" if growing else "")

    async def finish(self, text: str) -> SendOutcome:
        """Print the rest."""
        self._screen.grow("")
        self._print(f"{clean(text)}\n")
        return Sent(None)

    def _print(self, text: str) -> None:
        """Print what of ``text``, whole lines, is new; text that was taken back is printed anew from its beginning."""
        if not text.startswith(self._printed):
            self._printed = ""
        if new := text[len(self._printed) :]:
            self._screen.put(new.removesuffix("\n"), mark=_INDENT if self._printed else _MARK)
            self._printed = text
