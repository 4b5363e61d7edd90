"""The platform's own Python SDK as a bot that echoes, in an environment of its own. Argument: the fake's address."""

from __future__ import annotations

import json
import sys
from typing import Any, TypeAlias

import aiohttp
import botpy  # type: ignore[import-not-found]  # is installed in the other environment only
from botpy.errors import ServerError  # type: ignore[import-not-found]  # as above
from botpy.http import Route  # type: ignore[import-not-found]  # as above

Untyped: TypeAlias = Any  # the SDK has no types

BASE = sys.argv[1]
_post: Untyped = aiohttp.ClientSession.post


def _redirected(session: aiohttp.ClientSession, url: str, **options: Untyped) -> Untyped:
    """Post where the fake is: the SDK names the token's host in a constant, and only that is replaced."""
    return _post(session, url.replace("https://bots.qq.com", BASE), **options)


setattr(aiohttp.ClientSession, "post", _redirected)  # noqa: B010 - an assignment would need the types of both
Route.SCHEME, _, Route.DOMAIN = BASE.partition("://")


def tell(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


class Echo(botpy.Client):  # type: ignore[misc]  # has no types
    async def on_ready(self) -> None:
        tell(event="ready", bot=self.robot.id)

    async def on_resumed(self) -> None:
        tell(event="resumed")

    async def on_c2c_message_create(self, message: Untyped) -> None:
        await self._answer("c2c", message, self.api.post_c2c_message, openid=message.author.user_openid)

    async def on_group_at_message_create(self, message: Untyped) -> None:
        await self._answer("group", message, self.api.post_group_message, group_openid=message.group_openid)

    async def on_at_message_create(self, message: Untyped) -> None:
        await self._answer("guild", message, self.api.post_message, channel_id=message.channel_id)

    async def on_direct_message_create(self, message: Untyped) -> None:
        await self._answer("dm", message, self.api.post_dms, guild_id=message.guild_id)

    async def _answer(self, event: str, message: Untyped, post: Untyped, **where: str) -> None:
        posted = await post(**where, content=f"echo {message.content.strip()}", msg_id=message.id)
        refused = False
        try:  # its default number is always the same
            await post(**where, content="again", msg_id=message.id)
        except ServerError:
            refused = True
        tell(event=event, id=message.id, content=message.content, posted=posted["id"], refused=refused)


intents = botpy.Intents(public_messages=True, public_guild_messages=True, direct_message=True)
Echo(intents=intents).run(appid="102000001", secret="client-secret-fake")
