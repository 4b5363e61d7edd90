"""A model behind an OpenAI-compatible endpoint, as dsh is configured with (spec ARCHIVE 5)."""

from __future__ import annotations

from dataclasses import dataclass, field

import aiohttp
import msgspec

from archive.model import Code
from archive.writers import LONGEST_ANSWER, SECONDS, WriterFailed


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: tuple[_Choice, ...]


@dataclass(frozen=True, slots=True)
class EndpointWriter:
    """A :class:`archive.writers.Writer`. ``url`` is the base that ``/chat/completions`` is appended to."""

    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    seconds: float = SECONDS

    async def write(self, instructions: str, material: str) -> str:
        """See :meth:`archive.writers.Writer.write`."""
        request = {
            "model": self.model,
            "stream": False,
            "messages": [{"role": "system", "content": instructions}, {"role": "user", "content": material}],
        }
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        timeout = aiohttp.ClientTimeout(total=self.seconds)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=headers) as http,
                http.post(f"{self.url.rstrip('/')}/chat/completions", json=request, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    raise WriterFailed(Code.WRITER_FAILED, f"HTTP {response.status}")
                return _text(await _bounded(response))
        except TimeoutError:
            raise WriterFailed(Code.WRITER_TIMED_OUT) from None
        except (aiohttp.ClientError, ValueError) as error:  # ValueError: an address that is none
            raise WriterFailed(Code.WRITER_UNREACHABLE, type(error).__name__) from None


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > LONGEST_ANSWER:
            raise WriterFailed(Code.WRITER_FAILED, "too long")
    return bytes(body)


def _text(body: bytes) -> str:
    try:
        choices = msgspec.json.decode(body, type=_Completion).choices
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise WriterFailed(Code.WRITER_FAILED, "no completion") from None
    if not choices or choices[0].finish_reason not in ("stop", None):
        raise WriterFailed(Code.WRITER_FAILED, "not finished")
    text = (choices[0].message.content or "").strip()
    if not text:
        raise WriterFailed(Code.WRITER_EMPTY)
    return text
