"""From what a person sent to the parts of a prompt: words, images by their first bytes, files by their place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from bridges.bot import RunningBot
from bridges.inbound_files import discard, safe_name, store
from bridges.message import FetchesAttachments, InboundAttachment
from commands.cleaning import is_invisible, one_line
from commands.marks import wrap
from commands.model import AttachmentKind, StaleBinding
from harness_client.types import ImagePart, PromptPart, SessionId, TextPart
from i18n import Key, Words

IMAGE_BYTES: Final = 5 * 1024 * 1024
MESSAGE_BYTES: Final = 20 * 1024 * 1024
"""Of all that one message carries; a single file may take all of it."""

MOST: Final = 20
"""Images and files of one message."""

FETCH_SECONDS: Final = 120.0
"""What fetching all of one message may take."""

AT_ONCE: Final = 4
"""Messages of one bot whose attachments are in memory at the same time; the others wait."""

TITLE_CODE_POINTS: Final = 60
_EXAMINED: Final = 1_000
"""Code points of a text in which its first words are looked for."""

_IMAGES: Final = frozenset({AttachmentKind.IMAGE, AttachmentKind.STICKER})


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a person said: one message, or several sent together, and what the one message carries."""

    texts: tuple[str, ...]
    attachments: tuple[InboundAttachment, ...] = ()


def title_of(prompt: Prompt) -> str | None:
    """Return what a session begun with ``prompt`` is to be called; None where the host finds that in its first words.

    With a preamble before the words (:mod:`commands.marks`) the host would call it by that.
    """
    files = [each.name or each.kind.value for each in prompt.attachments if each.kind not in _IMAGES]
    if len(prompt.texts) == 1 and not files:
        return None
    texts = (text[:_EXAMINED] for text in (*prompt.texts, *map(safe_name, files)))
    lines = (one_line(line) for text in texts for line in text.splitlines())
    first = next((line for line in lines if not is_invisible(line)), None)
    return first[:TITLE_CODE_POINTS] if first else None


class Unusable(Exception):
    """An attachment cannot be used; ``key`` says why, ``cause`` is for the log."""

    def __init__(self, key: Key, cause: BaseException | None = None) -> None:
        super().__init__(key)
        self.key = key
        self.cause = cause


def refusal(bot: RunningBot, attachments: Iterable[InboundAttachment]) -> Key | None:
    """Return why attachments cannot be taken, by what the platform says of them: nothing is fetched."""
    carried = tuple(attachments)
    if carried and not isinstance(bot.channel, FetchesAttachments):
        return Key.CHAT_ATTACHMENTS
    if len(carried) > MOST:
        return Key.CHAT_TOO_MANY_FILES
    sizes = [(each, each.size or 0) for each in carried]
    if any(size > _limit(each) for each, size in sizes) or sum(size for _, size in sizes) > MESSAGE_BYTES:
        return Key.CHAT_FILE_TOO_LARGE
    if any(each.kind not in _IMAGES for each in carried) and not bot.harness.address.is_loopback:
        return Key.CHAT_FILES_ELSEWHERE
    return None


def media_type(data: bytes) -> str | None:
    """Tell an image by its first bytes; None for anything a host does not take."""
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None


class Prompts:
    """Makes the prompts of one bot."""

    def __init__(self, bot: RunningBot) -> None:
        self._bot = bot
        self._room = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def parts(self, prompt: Prompt, session: SessionId, words: Words) -> AsyncIterator[list[PromptPart]]:
        """Fetch what the prompt carries and yield its parts. Raises Unusable, HarnessError.

        Files stay in the workspace, unless StaleBinding leaves the context: then it is another session's.
        """
        if not prompt.attachments:
            yield [TextPart(wrap(prompt.texts))]
            return
        async with self._room:
            images, files = await self._fetched(prompt.attachments)
            folder = self._bot.mint()
            workspace = await self._workspace(session) if files else ""
            try:
                paths = await asyncio.to_thread(store, workspace, folder, files) if files else ()
            except OSError as error:
                raise Unusable(Key.CHAT_FILES_NOT_KEPT, error) from error
            texts = prompt.texts if files or any(map(str.strip, prompt.texts)) else (words(Key.CHAT_LOOK),)
            try:
                yield [TextPart(wrap(texts, files=paths)), *images]
            except StaleBinding:
                if files:
                    await asyncio.to_thread(discard, workspace, folder)
                raise

    async def _fetched(
        self, attachments: Iterable[InboundAttachment]
    ) -> tuple[list[ImagePart], list[tuple[str, bytes]]]:
        images: list[ImagePart] = []
        files: list[tuple[str, bytes]] = []
        left = MESSAGE_BYTES
        try:
            async with self._bot.clock.timeout(FETCH_SECONDS):
                for each in attachments:
                    data = await self._fetch(each, min(_limit(each), left))
                    left -= len(data)
                    if each.kind not in _IMAGES:
                        files.append((each.name or each.kind.value, data))
                    elif kind := media_type(data):
                        images.append(ImagePart(kind, data, each.name))
                    else:
                        raise Unusable(Key.CHAT_IMAGE_KIND)
        except TimeoutError as error:
            raise Unusable(Key.CHAT_FETCH_FAILED, error) from error
        return images, files

    async def _fetch(self, attachment: InboundAttachment, limit: int) -> bytes:
        channel = self._bot.channel
        if not isinstance(channel, FetchesAttachments):
            raise Unusable(Key.CHAT_ATTACHMENTS)
        try:
            data = await channel.fetch(attachment, limit)
        except OSError as error:
            raise Unusable(Key.CHAT_FETCH_FAILED, error) from error
        if len(data) > limit:
            raise Unusable(Key.CHAT_FILE_TOO_LARGE)
        return data

    async def _workspace(self, session: SessionId) -> str:
        """Return the folder the session works in, wherever the chat's next one will."""
        row = next((row for row in await self._bot.harness.sessions() if row.id == session), None)
        if row is None or row.cwd is None:
            raise Unusable(Key.CHAT_FILES_ELSEWHERE)
        return row.cwd


def _limit(attachment: InboundAttachment) -> int:
    return IMAGE_BYTES if attachment.kind in _IMAGES else MESSAGE_BYTES
