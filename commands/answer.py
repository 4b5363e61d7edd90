"""What most commands share: a text, a refusal that says why, or a failure with a reference."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from commands.budget import sendable
from commands.model import CommandRequest, CommandResult, Handler, Outcome, Services
from harness_client.errors import HarnessError
from i18n import Key

HOST_SECONDS: Final = 10.0
"""What one call to the host may take while a person waits for a command."""

Answer = Callable[[CommandRequest, Services], Awaitable[str]]
T = TypeVar("T")


class No(Exception):
    """The command does not do what was asked, and changed nothing; ``key`` is the text that says why."""

    def __init__(self, key: Key, **values: object) -> None:
        super().__init__(key)
        self.key = key
        self.values = values


def answering(failure: Key) -> Callable[[Answer], Handler]:
    """Make a handler of a function that returns its text, or raises No, a HarnessError or TimeoutError.

    ``failure`` is the text for the last two; it has a ``{reference}``.
    """

    def decorate(answer: Answer) -> Handler:
        @functools.wraps(answer)
        async def handler(request: CommandRequest, services: Services) -> CommandResult:
            try:
                return CommandResult(sendable(await answer(request, services)))
            except No as no:
                return CommandResult((services.words(no.key, **no.values),), Outcome.REFUSED)
            except (HarnessError, TimeoutError) as error:
                reference = services.references.record(error, actor=request.sender, session=None)
                return CommandResult((services.words(failure, reference=reference),), Outcome.FAILED, reference)

        return handler

    return decorate


async def soon(services: Services, call: Awaitable[T]) -> T:
    """Await a call to the host for HOST_SECONDS at most. Raises TimeoutError."""
    async with services.clock.timeout(HOST_SECONDS):
        return await call
