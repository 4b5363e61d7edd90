"""A bot of the product at Discord's public addresses, in a process of its own whose names all lead to this machine.

Argument: the port. It answers two direct messages, prints what it heard as JSON, or prints why it ended.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from functools import partial
from typing import Any

from bridges.text.discord import DiscordChannel
from harness_client.clock import SYSTEM_CLOCK
from tests.channels.around import MemoryCursors, RecordingInbox
from tests.fakes.discord.payloads import TOKEN


def only_here(real: Any, port: int, host: str, _: int, *how: Any) -> Any:  # the system's own function, as it is
    """Resolve every name to this machine."""
    return real("127.0.0.1", port, *how)


async def main() -> dict[str, object]:
    """Run until two messages are answered or the run is over."""
    inbox = RecordingInbox()
    channel = DiscordChannel("ops", token=TOKEN, api=None, gateway=None, cursors=MemoryCursors(), clock=SYSTEM_CLOCK)
    run = asyncio.create_task(channel.run(inbox))
    run.add_done_callback(lambda _: inbox.changed.set())
    try:
        for number in (1, 2):
            await inbox.until(lambda: len(inbox.messages) >= number or run.done())  # noqa: B023 - awaited at once
            if run.done():
                return {"ended": str(run.exception())}
            await channel.send(inbox.messages[-1].reply_to, f"You said: {inbox.messages[-1].text}")
        return {"heard": [message.text for message in inbox.messages]}
    finally:
        run.cancel()
        await asyncio.wait({run})
        await channel.close()


socket.getaddrinfo = partial(only_here, socket.getaddrinfo, int(sys.argv[1]))
print(json.dumps(asyncio.run(main())))
