"""Looks at the WeCom side of a bot, which can only be done by logging in: whoever was connected is pushed out."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import aiohttp

from bridges.checkup import kind
from bridges.http import CONNECT_SECONDS, new_session
from bridges.message import ChannelStopped, Clock, Noticed, Sign
from bridges.race import first_of
from bridges.wecom.connection import MAX_MESSAGE, Connection, Credentials, Ended, Refused


async def look(who: Credentials, url: str, clock: Clock, *, busy: Collection[int]) -> tuple[Noticed, ...]:
    """Subscribe and leave at once; codes in ``busy`` say nothing about the secret, whose own code nobody documents."""
    async with new_session() as http:
        try:
            async with clock.timeout(CONNECT_SECONDS):
                socket = await http.ws_connect(url, max_msg_size=MAX_MESSAGE)
            async with socket:
                up = asyncio.Event()
                await first_of(Connection(socket, clock).run(who, up.set, lambda _: None), _set(up))
        except Refused as error:
            sign = Sign.BUSY if error.code in busy else Sign.BAD_CREDENTIAL
            return (Noticed(sign, str(error.code) if sign is Sign.BUSY else "bot_id, secret"),)
        except TimeoutError:
            return (Noticed(Sign.SILENT),)
        except (Ended, aiohttp.WSServerHandshakeError, ChannelStopped) as error:
            return (Noticed(Sign.UNREADABLE, kind(error)),)
        except (aiohttp.ClientError, OSError) as error:
            return (Noticed(Sign.UNREACHED, kind(error)),)
    return (Noticed(Sign.ACCEPTED, who.bot_id),)


async def _set(event: asyncio.Event) -> None:
    await event.wait()
