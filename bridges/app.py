"""The composition root: the only place that knows all parts, and the owner of every task."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from archive.model import Host
from archive.service import LocalDsh, RemoteDsh
from bridges.archives import Archives, writer
from bridges.bot import RunningBot
from bridges.config import Config
from bridges.delivery import Delivery
from bridges.idle import UNWATCHED, Activity, IdleSummaries
from bridges.intake import Intake, Policy
from bridges.log import LoggedReferences, Redactor
from bridges.message import Channel, EventId
from bridges.observer import UNOBSERVED, Observer
from bridges.split import split_lossless
from bridges.state import BotKey, State
from bridges.state.sqlite import open_state
from commands.model import Outcome
from harness_client.address import Address
from harness_client.client import HarnessClient
from harness_client.clock import SYSTEM_CLOCK, Clock
from i18n import Language

if TYPE_CHECKING:
    from harness_client.embedded import EmbeddedHost

FAREWELL_SECONDS: Final = 0.3
"""What replies on their way out get when the program ends."""

INHERITED_VARIABLES: Final = ("PATH", "LANG", "LC_ALL", "TZ", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE")
"""All that a Harness of our own sees of our environment; its lower-case spellings too."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What all bots of the program share."""

    harness: HarnessClient
    state: State
    language: Language
    workspace: str
    clock: Clock = SYSTEM_CLOCK
    archives: Archives | None = None
    activity: Activity = UNWATCHED
    observer: Observer = UNOBSERVED
    spoken: Callable[[], Language] | None = None
    """The language in force, where it may change while the program runs; else it is ``language``."""

    def speaking(self, language: Callable[[], Language]) -> Parts:
        """Return the same parts for bots that speak whatever ``language`` returns at the time."""
        return replace(self, spoken=language)

    def bot(self, key: BotKey, channel: Channel, replies: Delivery, *, workspace: str | None = None) -> RunningBot:
        """Wire one bot; ``workspace`` is its own in the configuration."""
        return RunningBot(
            key=key,
            channel=channel,
            harness=self.harness,
            state=self.state,
            replies=replies,
            clock=self.clock,
            references=LoggedReferences(),
            language=self.spoken or (lambda: self.language),
            workspace=workspace or self.workspace,
            mint=mint,
            archives=self.archives,
            activity=self.activity,
            observer=self.observer,
        )


def mint() -> str:
    """Return an id that never repeats."""
    return str(uuid.uuid4())


@asynccontextmanager
async def open_parts(
    config: Config,
    environ: Mapping[str, str],
    redact: Redactor,
    *,
    demo_model: bool = False,
    observer: Observer = UNOBSERVED,
    only_reads: bool = False,
) -> AsyncIterator[Parts]:
    """Open state and host. Raises StateError, HarnessError of the first contact, EmbeddedError.

    ``only_reads`` hands out a client that cannot create, prompt or change anything, and writes no summaries.
    """
    workspace = config.harness.workspace or str(Path.cwd())
    async with AsyncExitStack() as stack:
        connect = partial(_connect, stack, redact=redact, observer=observer, only_reads=only_reads)
        state = await stack.enter_async_context(open_state(config.state.path))
        if config.harness.address is None:
            redact.keep([environ.get("DEEPSEEK_API_KEY", "")])  # a host that does not start tells its last lines
            host = await _own_host(stack, config, environ, workspace, demo_model=demo_model)
            harness = await connect(await host.address())
            host.on_restart(partial(_move, harness, redact))
            archives = Archives(LocalDsh(host.dsh_home), observe=observer.archived)
        else:
            harness = await connect(config.harness.address)
            archives = Archives(RemoteDsh(harness), observe=observer.archived)
        await harness.health()
        # The demo model condenses nothing: it would fill the archive with echoes.
        silent = demo_model or only_reads or not config.summaries.idle
        author = None if silent else writer(Host.DSH, config.summaries, environ)
        activity: Activity = UNWATCHED
        if author is not None:
            activity = await stack.enter_async_context(IdleSummaries(harness, archives, author, SYSTEM_CLOCK))
        shared = Parts(harness, state, config.language, workspace)
        yield replace(shared, archives=archives, activity=activity, observer=observer)


async def _connect(
    stack: AsyncExitStack, address: Address, *, redact: Redactor, observer: Observer, only_reads: bool
) -> HarnessClient:
    redact.keep([address.token or ""])
    client = HarnessClient(address, observe=observer.requested, only_reads=only_reads)
    return await stack.enter_async_context(client)


def _move(harness: HarnessClient, redact: Redactor, address: Address) -> None:
    redact.keep([address.token or ""])
    harness.move(address)


async def _own_host(
    stack: AsyncExitStack, config: Config, environ: Mapping[str, str], workspace: str, *, demo_model: bool
) -> EmbeddedHost:
    """Start a host of our own."""
    from harness_client.embedded import EmbeddedHost, EmbeddedSpec  # noqa: PLC0415 - costs memory others save

    inherited = {*INHERITED_VARIABLES, *map(str.lower, INHERITED_VARIABLES)}
    url, key = environ.get("DEEPSEEK_BASE_URL"), environ.get("DEEPSEEK_API_KEY")
    if demo_model:
        from bridges.demo_model import DemoModel  # noqa: PLC0415 - a server nobody else needs

        url, key = (await stack.enter_async_context(DemoModel())).url, "demo"
    spec = EmbeddedSpec(
        data=config.state.path.absolute().parent / "harness",
        workspace=Path(workspace),
        model_url=url,
        model_key=key,
        environment={name: value for name, value in environ.items() if name in inherited},
    )
    return await stack.enter_async_context(EmbeddedHost(spec))


class _Over(Exception):
    """Ends a task group whose tasks would go on for ever."""


async def converse(
    parts: Parts,
    key: BotKey,
    channel: Channel,
    policy: Policy,
    *,
    settled: Callable[[EventId, Outcome], None],
    inherit: bool = True,
) -> None:
    """Run one bot until its channel comes to its end; what is unfinished then is left to the next start.

    Without ``inherit`` the unfinished work of earlier processes stays as it is. Raises StateError, and the OSError of
    a channel.
    """
    delivery = Delivery(channel, split_lossless, clock=parts.clock)
    failure: OSError | None = None
    try:
        async with asyncio.TaskGroup() as tasks:
            intake = Intake(parts.bot(key, channel, delivery), policy, tasks, settled=settled)
            try:
                if inherit:
                    await intake.inherit()
                await channel.run(intake)
            except OSError as error:  # raised below: a task group would wrap it
                failure = error
            raise _Over
    except* _Over:
        pass
    finally:
        await delivery.close(FAREWELL_SECONDS)
        await channel.close()
    if failure is not None:
        raise failure
