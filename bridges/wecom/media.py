"""Files that people sent: fetched from Tencent's own hosts, AES-256-CBC with a padding to 32 bytes taken off."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Final

import aiohttp
import msgspec

from bridges.http import CallFailed, Request, exchange
from bridges.trusted import TrustedHosts, UntrustedHost
from bridges.wecom.inbound import File
from harness_client.clock import Clock

DOMAINS: Final = ("weixin.qq.com", "qq.com", "qpic.cn", "myqcloud.com")
DOWNLOAD_SECONDS: Final = 60.0
_KEY, _PADDING = 32, 32


async def fetch(http: aiohttp.ClientSession, clock: Clock, hosts: TrustedHosts, handle: str, limit: int) -> bytes:
    """Fetch at most ``limit`` bytes. Raises OSError; its text holds neither address nor key."""
    file = msgspec.json.decode(handle, type=File)
    try:
        request = Request(method="GET", url=hosts.check(file.url))
        reply = await exchange(http, clock, "file", request, seconds=DOWNLOAD_SECONDS, limit=limit + _PADDING)
    except UntrustedHost:
        raise OSError("the file is not on a host of WeCom") from None
    except CallFailed as error:
        raise OSError(str(error)) from error
    if reply.status != 200:
        raise OSError(f"file: HTTP {reply.status}")
    data = await asyncio.to_thread(_decrypt, reply.body, _key(file.aeskey)) if file.aeskey else reply.body
    if len(data) > limit:
        raise OSError(f"more than {limit} bytes")
    return data


def _key(text: str) -> bytes:
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != _KEY:
        raise OSError("the key of the file is damaged")
    return key


def _decrypt(data: bytes, key: bytes) -> bytes:
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise OSError("files need pip install 'harness-im[wecom]'") from error
    decryptor = Cipher(algorithms.AES(key), modes.CBC(key[:16])).decryptor()
    try:
        padded = decryptor.update(data) + decryptor.finalize()
    except ValueError:
        padded = b""
    length = padded[-1] if padded else 0
    if not 1 <= length <= _PADDING or padded[-length:] != bytes([length]) * length:
        raise OSError("the file cannot be decrypted")
    return padded[:-length]
