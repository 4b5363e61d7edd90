"""Files that people sent: fetched from Weixin's own hosts, AES-128-ECB with PKCS#7 padding taken off."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import Final
from urllib.parse import quote

import msgspec

from bridges.http import CallFailed
from bridges.trusted import UntrustedHost
from bridges.weixin.hosts import Hosts
from bridges.weixin.inbound import Place
from bridges.weixin.wire import Wire

BLOCK: Final = 16


async def fetch(wire: Wire, hosts: Hosts, handle: str, limit: int) -> bytes:
    """Fetch at most ``limit`` bytes. Raises OSError; its text holds neither address nor key."""
    place = msgspec.json.decode(handle, type=Place)
    try:
        url = hosts.trusted(place.full_url or _address(hosts, place))
        data = await wire.download(url, limit + BLOCK)
    except UntrustedHost:
        raise OSError("the file is not on a host of Weixin") from None
    except CallFailed as error:
        raise OSError(str(error)) from error
    key = _key(place)
    if key is not None:
        data = await asyncio.to_thread(_decrypt, data, key)
    if len(data) > limit:
        raise OSError(f"more than {limit} bytes")
    return data


def _address(hosts: Hosts, place: Place) -> str:
    if not place.encrypt_query_param:
        raise OSError("the message does not say where the file is")
    return f"{hosts.media}/download?encrypted_query_param={quote(place.encrypt_query_param, safe='')}"


def _key(place: Place) -> bytes | None:
    """Return the 16 bytes of the key; None for a file that is not encrypted."""
    try:
        if place.aeskey:
            key = bytes.fromhex(place.aeskey)
        elif place.aes_key:
            key = base64.b64decode(place.aes_key, validate=True)
            key = bytes.fromhex(key.decode()) if len(key) == 2 * BLOCK else key
        else:
            return None
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != BLOCK:
        raise OSError("the key of the file is damaged")
    return key


def _decrypt(data: bytes, key: bytes) -> bytes:
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.padding import PKCS7  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise OSError("files need pip install 'harness-im[weixin]'") from error
    # ECB is the platform's choice; each file has a key of its own.
    decryptor = Cipher(algorithms.AES(key), modes.ECB()).decryptor()  # noqa: S305 - the platform's format
    unpadder = PKCS7(8 * BLOCK).unpadder()
    try:
        return unpadder.update(decryptor.update(data) + decryptor.finalize()) + unpadder.finalize()
    except ValueError:
        raise OSError("the file cannot be decrypted") from None
