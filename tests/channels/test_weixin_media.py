"""Weixin: files that people send."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from bridges.message import InboundAttachment
from tests.channels.weixin import ALICE, Line, line_on, platform
from tests.fakes.weixin import FakeWeixin, Obj

KEY = bytes(range(16))
CONTENT = b"picture" * 1000


def encrypted(content: bytes) -> bytes:
    padder = PKCS7(128).padder()
    encryptor = Cipher(algorithms.AES(KEY), modes.ECB()).encryptor()  # noqa: S305 - the platform's format
    return encryptor.update(padder.update(content) + padder.finalize()) + encryptor.finalize()


@pytest.fixture
async def fake() -> AsyncIterator[FakeWeixin]:
    async with platform() as fake:
        fake.files["p&1"] = encrypted(CONTENT)
        fake.files["plain"] = CONTENT
        yield fake


@pytest.fixture
async def line(fake: FakeWeixin) -> AsyncIterator[Line]:
    async with line_on(fake) as line:
        yield line


async def sent(line: Line, image: Obj) -> InboundAttachment:
    line.fake.says(ALICE, items=[{"type": 2, "image_item": image}])
    (message,) = await line.inbox.heard()
    return message.attachments[0]


@pytest.mark.parametrize(
    "image",
    [
        {"aeskey": KEY.hex(), "media": {"encrypt_query_param": "p&1"}},
        {"media": {"encrypt_query_param": "p&1", "aes_key": base64.b64encode(KEY).decode()}},
        {"media": {"encrypt_query_param": "p&1", "aes_key": base64.b64encode(KEY.hex().encode()).decode()}},
        {"media": {"encrypt_query_param": "plain"}},
    ],
)
async def test_every_spelling_of_the_key_opens_the_file(line: Line, image: Obj) -> None:
    assert await line.channel.fetch(await sent(line, image), 10_000) == CONTENT


async def test_a_whole_address_is_used_on_trusted_hosts_only(line: Line) -> None:
    whole = {"full_url": f"{line.fake.url}/c2c/download?encrypted_query_param=plain"}
    assert await line.channel.fetch(await sent(line, {"media": whole}), 10_000) == CONTENT


@pytest.mark.parametrize(
    ("image", "limit", "why"),
    [
        ({"media": {"full_url": "https://example.org/x"}}, 10_000, "not on a host of Weixin"),
        ({"media": {}}, 10_000, "does not say where"),
        ({}, 10_000, "does not say where"),
        ({"media": {"encrypt_query_param": "plain"}}, 6_999, "more than"),
        ({"media": {"encrypt_query_param": "p&1"}, "aeskey": KEY.hex()}, 6_990, "more than"),
        ({"media": {"encrypt_query_param": "gone"}}, 10_000, "404"),
        ({"media": {"encrypt_query_param": "p&1"}, "aeskey": "zz"}, 10_000, "key of the file"),
        ({"media": {"encrypt_query_param": "p&1", "aes_key": "AAAA"}}, 10_000, "key of the file"),
        ({"media": {"encrypt_query_param": "plain"}, "aeskey": KEY.hex()}, 10_000, "cannot be decrypted"),
    ],
)
async def test_what_cannot_be_fetched_is_an_error_without_address_or_key(
    line: Line, image: Obj, limit: int, why: str
) -> None:
    attachment = await sent(line, image)
    with pytest.raises(OSError, match=why) as error:
        await line.channel.fetch(attachment, limit)
    assert KEY.hex() not in str(error.value)
    assert "http://" not in str(error.value)
