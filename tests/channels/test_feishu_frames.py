"""Feishu: one link inside the process of the SDK: its bounds, its pace, and the frames it reads."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace

import pytest

from bridges.channels import Surroundings, build
from bridges.config import Api, Feishu, Identifier
from bridges.feishu import sdk
from bridges.feishu.channel import FeishuChannel
from bridges.feishu.pipe import UNANSWERED, Ended, Event, Open, Report, Why
from bridges.feishu.rest import Rest
from bridges.secret import Secret
from tests.bridges.bench import eventually
from tests.channels.around import MemoryCursors
from tests.channels.test_feishu_sdk import NOWHERE, python
from tests.fakes.clock import FakeClock
from tests.fakes.feishu.frame import CONTROL, DATA, Frame


async def test_events_that_wait_for_us_are_bounded() -> None:
    reports: list[Report] = []
    waiting_link = sdk.Link(NOWHERE, reports.append)
    waiting = [asyncio.create_task(waiting_link.taken(b"{}")) for _ in range(UNANSWERED)]
    await eventually(lambda: len(reports) == UNANSWERED)
    assert await waiting_link.taken(b"{}") is False
    for report in reports:
        assert isinstance(report, Event)
        waiting_link.answer(report.number, taken=True)
    assert await asyncio.gather(*waiting) == [True] * UNANSWERED
    assert len(reports) == UNANSWERED


class Insecure:
    """As much of the SDK as a link needs to learn where to connect, and that is in the clear."""

    class ClientException(Exception):
        code = 0

    class ServerException(Exception):
        code = 0

    class Client:
        def __init__(self, *args: object, **more: object) -> None:
            self._cache = SimpleNamespace(_cron=SimpleNamespace(cancel=lambda: None))

        def _get_conn_url(self) -> str:
            return "ws://127.0.0.1:1/ws?device_id=1&service_id=1"

        async def _connect(self) -> None:
            raise AssertionError("connected in the clear")

        async def _disconnect(self) -> None:
            pass


@pytest.mark.parametrize(
    ("asked", "kept"),
    [(None, 60), (0, 60), (9_999_999, 60), (float("inf"), 60), (30, 30), (0.001, 10), (-1, 10)],
)
async def test_the_pace_of_pings_is_clamped(asked: float | None, kept: float) -> None:
    client = sdk._client(Insecure, sdk.Link(NOWHERE, lambda report: None))
    client._configure(SimpleNamespace(PingInterval=asked))
    assert client._ping_interval == kept


async def test_a_link_in_the_clear_is_refused_where_the_platform_speaks_tls() -> None:
    reports: list[Report] = []
    order = Open(1, "cli_0123456789abcdef", "feishu-app-secret-fake", "https://open.feishu.cn")
    await sdk.Link(order, reports.append).run(Insecure)
    assert reports == [Ended(1, Why.LOST, "ConnectionRefusedError")]


async def test_events_of_a_link_that_ended_wait_for_nothing() -> None:
    ended = sdk.Link(Open(1, "a", "b", "https://open.feishu.cn"), lambda report: None)
    waiting = asyncio.create_task(ended.taken(b"{}"))
    await asyncio.sleep(0)
    await ended.run(Insecure)
    assert await waiting is False


DOMAINS = """
import asyncio, sys
from types import SimpleNamespace
from bridges.feishu import sdk
from bridges.feishu.pipe import Open

def post(url, **more):
    print(url)
    raise OSError

async def main():
    module = sdk.load()
    module.loop = asyncio.get_running_loop()
    module.requests = SimpleNamespace(post=post)
    for domain in sys.stdin.read().split():
        order = Open(1, "cli_0123456789abcdef", "feishu-app-secret-fake", domain)
        await sdk.Link(order, lambda report: None).run(module)

asyncio.run(main())
"""


async def test_feishu_and_lark_are_asked_each_at_its_own_domain() -> None:
    domains = []
    for endpoints in (Api(), Api(api="https://open.larksuite.com")):
        secret = Secret("feishu-app-secret-fake")
        table = Feishu(name="ops", app_id=Identifier("cli_1"), app_secret=secret, endpoints=endpoints)
        channel = build(table, Surroundings(MemoryCursors(), FakeClock(), lambda _: None))
        assert isinstance(channel, FeishuChannel)
        rest = Rest(channel._application, FakeClock(), lambda _: None)
        domains.append(rest._url("/bot/v3/info", ()).removesuffix("/open-apis/bot/v3/info"))
        await rest.close()
    assert domains == ["https://open.feishu.cn", "https://open.larksuite.com"]
    asked = python(DOMAINS, input=" ".join(domains)).split()
    assert asked == [f"{domain}/callback/ws/endpoint" for domain in domains]


FRAMES = """
import sys
from bridges.feishu.sdk import load
load()
from lark_oapi.ws.pb.pbbp2_pb2 import Frame
for line in sys.stdin:
    frame = Frame()
    frame.ParseFromString(bytes.fromhex(line))
    print(frame.SerializeToString().hex())
"""


def test_the_frames_of_the_fake_are_those_of_the_sdk() -> None:
    chance = random.Random(7)

    def text() -> str:
        return "".join(
            chr(chance.choice([chance.randrange(32, 127), chance.randrange(0x4E00, 0x9FFF)])) for _ in range(9)
        )

    frames = [
        Frame(
            chance.choice([CONTROL, DATA]),
            {text(): text() for _ in range(chance.randrange(9))},
            chance.randbytes(chance.randrange(1, 3_000)),
            service=chance.randrange(2**31),
            seq=chance.randrange(2**64),
            log=chance.randrange(2**64),
        )
        for _ in range(200)
    ]
    said = python(FRAMES, input="\n".join(frame.encode().hex() for frame in frames))
    assert [Frame.decode(bytes.fromhex(each)) for each in said.split()] == frames


@pytest.mark.parametrize("data", [b"", b"\x08", b"\x2a\x05a", b"\x0b", b"\xff" * 12])
def test_the_fake_takes_no_broken_frame(data: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        Frame.decode(data)
