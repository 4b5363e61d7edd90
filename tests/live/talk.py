"""A session of a live test: talk in it, remember what a person should see of it, and compare."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence

from bridges.demo_model import DemoModel, Step
from harness_client.client import FollowItem, HarnessClient, Snapshot
from harness_client.events import AssistantMessage, TurnEnd, UserMessage
from harness_client.transcript import Role, text_of
from harness_client.types import PromptMode, PromptPart, RequestId, SessionId, TextPart
from tests.live.reading import compare

BOUND = 30.0
"""Seconds any single thing may take on a busy machine."""


async def _ignore(_item: FollowItem) -> None:
    pass


def new_request() -> RequestId:
    return RequestId(str(uuid.uuid4()))


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something in another process."""
    async with asyncio.timeout(BOUND):
        while not await condition():  # noqa: ASYNC110 -- another process knows no event of ours
            await asyncio.sleep(0.02)


class Talk:
    """``expected`` is what a person should see of the session, oldest first."""

    def __init__(self, client: HarnessClient, model: DemoModel, session: SessionId) -> None:
        self.client = client
        self.session = session
        self.expected: list[tuple[Role, str]] = []
        self.model = model

    async def say(
        self,
        what: str | Sequence[PromptPart],
        *steps: Step,
        on: Callable[[FollowItem], Awaitable[None]] = _ignore,
    ) -> list[FollowItem]:
        """Prompt, have the model play ``steps``, and return all items up to the end of the prompt's turn.

        ``on`` sees every item as it comes, and may act on it.
        """
        self.model.queue.extend(steps)
        request = new_request()
        parts = [TextPart(what)] if isinstance(what, str) else what
        items: list[FollowItem] = []
        ours = False
        async with asyncio.timeout(BOUND), self.client.follow(self.session) as followed:
            async for item in followed:
                items.append(item)
                if isinstance(item, Snapshot):
                    await self.client.prompt(self.session, parts, request=request)
                ours |= isinstance(item, UserMessage) and item.source is not None and item.source.request == request
                await on(item)
                if ours and isinstance(item, TurnEnd):
                    return items
        raise AssertionError("the stream ended before the turn")

    async def ask(self, text: str, *steps: Step) -> str:
        """Run a turn that completes; return its answer. Both are expected to be seen from now on."""
        items = await self.say(text, *steps)
        assert reason(items) == "completed"
        answer = answers(items)[-1]
        self.expected += [(Role.USER, text), (Role.ASSISTANT, answer)]
        return answer

    async def check(self, *, running: bool = False) -> None:
        """Check that ``/history`` shows what is expected, and asks nobody for it."""
        await compare(self.client, self.session, self.expected, self.model, running=running)

    async def steer(self, text: str) -> None:
        """Join the turn that runs."""
        await self.client.prompt(self.session, [TextPart(text)], request=new_request(), mode=PromptMode.STEER)

    async def stop(self) -> None:
        """Cancel whatever runs and wait until nothing does."""
        await self.client.cancel(self.session)

        async def idle() -> bool:
            return not await self.client.running(self.session)

        await until(idle)


def answers(items: Sequence[FollowItem]) -> list[str]:
    """Return the text of every message of the model."""
    return [text_of(item.blocks) for item in items if isinstance(item, AssistantMessage)]


def reason(items: Sequence[FollowItem]) -> str:
    """Return why the last turn ended."""
    ends = [item.reason for item in items if isinstance(item, TurnEnd)]
    return ends[-1]
