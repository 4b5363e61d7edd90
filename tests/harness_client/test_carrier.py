"""Bodies, statuses and lower exceptions: everything ends in one error tree, and nothing of the body shows."""

from __future__ import annotations

import asyncio
import gzip
import json
from unittest import mock

import aiohttp
import pytest
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from harness_client import carrier
from harness_client.carrier import BODY_LIMIT, Carrier, HostRefused, decode, mapped, parse, unwrap
from harness_client.client import HarnessClient
from harness_client.errors import (
    Code,
    Conflict,
    Forbidden,
    HarnessError,
    HostFault,
    Malformed,
    Refused,
    SessionBusy,
    SessionNotFound,
    TimedOut,
    TooLarge,
    Unauthorized,
    Unreachable,
    Unsupported,
    WrongHost,
    refusal,
)
from harness_client.types import RequestId, SessionId, TextPart
from tests.fakes.harness import FakeHarness, How
from tests.harness_client.conftest import connect

CANARY = "canary-of-a-secret-body"

INFO = aiohttp.RequestInfo(URL("http://h/"), "POST", CIMultiDictProxy(CIMultiDict()), URL("http://h/"))
KEY = mock.Mock(host="h", port=1, ssl=None)
LOWER: list[tuple[Exception, type[HarnessError]]] = [
    (TimeoutError(CANARY), TimedOut),
    (aiohttp.ServerTimeoutError(CANARY), TimedOut),
    (aiohttp.SocketTimeoutError(CANARY), TimedOut),
    (aiohttp.ConnectionTimeoutError(CANARY), TimedOut),
    (aiohttp.ClientConnectorError(KEY, OSError(CANARY)), Unreachable),
    (aiohttp.ClientConnectorDNSError(KEY, OSError(CANARY)), Unreachable),
    (aiohttp.ClientConnectorSSLError(KEY, OSError(CANARY)), Unreachable),
    (aiohttp.ClientConnectorCertificateError(KEY, ValueError(CANARY)), Unreachable),
    (aiohttp.ClientOSError(CANARY), Unreachable),
    (aiohttp.ClientConnectionError(CANARY), Unreachable),
    (aiohttp.ClientConnectionResetError(CANARY), Unreachable),
    (aiohttp.ServerDisconnectedError(CANARY), Unreachable),
    (aiohttp.ServerFingerprintMismatch(b"a", b"b", "h", 1), Unreachable),
    (aiohttp.ClientPayloadError(CANARY), Unreachable),
    (aiohttp.ClientResponseError(INFO, (), message=CANARY), Malformed),
    (aiohttp.ContentTypeError(INFO, (), message=CANARY), Malformed),
    (aiohttp.TooManyRedirects(INFO, (), message=CANARY), Malformed),
    (aiohttp.InvalidURL(CANARY), Malformed),
    (aiohttp.ClientError(CANARY), Malformed),
    (aiohttp.client_exceptions.UploadAbortedError(CANARY), Malformed),
    (ConnectionResetError(CANARY), Unreachable),
    (BrokenPipeError(CANARY), Unreachable),
    (OSError(CANARY), Unreachable),
    (ValueError(CANARY), Malformed),
]


@pytest.mark.parametrize(("lower", "error"), LOWER, ids=lambda each: type(each).__name__)
def test_every_lower_exception_becomes_one_of_ours(lower: Exception, error: type[HarnessError]) -> None:
    with pytest.raises(error) as raised, mapped("call"):
        raise lower
    assert type(raised.value) is error
    assert str(raised.value) == f"call: {type(lower).__name__}"
    assert raised.value.__cause__ is lower


def test_every_client_exception_of_aiohttp_is_listed() -> None:
    def below(kind: type[Exception]) -> set[type[Exception]]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    public = {kind for kind in below(aiohttp.ClientError) if kind.__module__.startswith("aiohttp.client_exc")}
    # Redirects are never followed and proxies never used; a refused handshake is told by its status.
    unused = {"ClientHttpProxyError", "ClientProxyConnectionError", "WSServerHandshakeError"}
    unused |= {"InvalidUrlClientError", "RedirectClientError", "NonHttpUrlClientError", "ServerConnectionError"}
    unused |= {"InvalidUrlRedirectClientError", "NonHttpUrlRedirectClientError", "ClientSSLError", "WSMessageTypeError"}
    unused |= {"UnixClientConnectorError"}
    listed = {type(lower) for lower, _ in LOWER}
    assert {kind.__name__ for kind in public - listed} - unused == set()


def test_ours_pass_through_and_a_quiet_mapping_keeps_no_cause() -> None:
    with pytest.raises(Forbidden), mapped("call"):
        raise Forbidden("x")
    with pytest.raises(Unreachable) as raised, mapped("call", quiet=True):
        raise OSError(CANARY)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("session-not-found", SessionNotFound),
        ("session/not-found", SessionNotFound),
        ("session/agent-busy", SessionBusy),
        ("session/writer-held", SessionBusy),
        ("session-conflict", Conflict),
        ("session/conflict", Conflict),
        ("gateway/invocation-unavailable", Unsupported),
        ("title-invalid", Refused),
        ("gateway/internal", Refused),
    ],
)
def test_the_hosts_own_codes(reason: str, error: type[HarnessError]) -> None:
    made = refusal(reason, "call")
    assert type(made) is error
    if isinstance(made, Refused):
        assert made.reason == reason


@pytest.mark.parametrize("reason", ["", "a b", "x" * 65, "密", f"{CANARY}\n"])
def test_a_code_that_is_none_is_not_repeated(reason: str) -> None:
    made = refusal(reason, "call")
    assert isinstance(made, Refused)
    assert made.reason == "unrecognised"
    assert CANARY not in str(made)


def test_every_code_belongs_to_one_error() -> None:
    tree: set[type[HarnessError]] = {Unreachable, TimedOut, Unauthorized, Forbidden, Unsupported, WrongHost}
    tree |= {Malformed, TooLarge, Refused, SessionNotFound, SessionBusy, Conflict}
    assert sorted(kind.code for kind in tree) == sorted(Code)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (201, Malformed),
        (302, Malformed),
        (400, Malformed),
        (401, Unauthorized),
        (403, Forbidden),
        (404, Unsupported),
        (413, TooLarge),
        (415, Malformed),
        (500, HostFault),
        (502, Unreachable),
        (503, Unreachable),
        (504, Unreachable),
    ],
)
async def test_statuses(modern: FakeHarness, status: int, error: type[HarnessError]) -> None:
    modern.fail("session/list", status=status, body=CANARY.encode())
    async with connect(modern) as client:
        with pytest.raises(error) as raised:
            await client.sessions()
    assert CANARY not in str(raised.value)


ENVELOPE = b'{"type":"server-response","rpcId":"x","result":'
BOMB = gzip.compress(b" " * (64 * 2**20))


@pytest.mark.parametrize(
    ("how", "error"),
    [
        (How(body=b"{}", content_type="text/html"), Malformed),
        (How(body=b""), Malformed),
        (How(body=f'{{"{CANARY}'.encode()), Malformed),
        (How(body=b"\xff\xfe"), Malformed),
        (How(body=b"[" * 100_000), Malformed),
        (How(body=b"{} {}"), Malformed),
        (How(body=b"NaN"), Malformed),
        (How(body=b"[]"), Malformed),
        (How(body=b'{"type":"other","rpcId":"x","result":{"ok":true}}'), Malformed),
        (How(body=ENVELOPE + b'{"ok":1}}'), Malformed),
        (How(body=ENVELOPE + b'{"ok":false}}'), Malformed),
        (How(body=ENVELOPE + b'{"ok":false,"error":{"code":5}}}'), Malformed),
        (How(body=ENVELOPE + b'{"ok":true}}'), Malformed),
        (How(value={"items": [{"sessionId": 5}]}), Malformed),
        (How(value={"items": CANARY}), Malformed),
        (How(drop="before"), Unreachable),
        (How(drop="mid"), Unreachable),
        (How(body=b" " * (BODY_LIMIT + 1)), TooLarge),
        (How(body=BOMB, headers={"Content-Encoding": "gzip"}), TooLarge),
        (How(body=b"no gzip at all", headers={"Content-Encoding": "gzip"}), Malformed),
    ],
)
async def test_bodies(modern: FakeHarness, how: How, error: type[HarnessError]) -> None:
    modern.fail("session/list", **how)
    async with connect(modern) as client:
        with pytest.raises(HarnessError) as raised:
            await client.sessions()
    assert type(raised.value) is error
    assert CANARY not in str(raised.value)


async def test_a_body_of_exactly_the_limit_is_taken(modern: FakeHarness) -> None:
    body = ENVELOPE + b'{"ok":true,"value":{"items":[]}}}'
    modern.fail("session/list", body=body + b" " * (BODY_LIMIT - len(body)))
    async with connect(modern) as client:
        assert await client.sessions() == ()


async def test_a_gzipped_body_is_read(modern: FakeHarness) -> None:
    body = gzip.compress(ENVELOPE + b'{"ok":true,"value":{"items":[]}}}')
    modern.fail("session/list", body=body, headers={"Content-Encoding": "gzip"})
    async with connect(modern) as client:
        assert await client.sessions() == ()


async def test_a_body_that_drips_is_cut_by_the_callers_deadline(modern: FakeHarness) -> None:
    stuck = asyncio.Event()
    modern.fail("session/list", drip=stuck, drip_bytes=10)
    async with connect(modern) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.sessions()
        modern.heal()
        assert await client.sessions() == ()


async def test_a_prompt_whose_answer_is_lost_is_not_sent_again(host: FakeHarness, client: HarnessClient) -> None:
    session = await client.create_session()
    for method in ("session.prompt", "session/prompt"):
        host.fail(method, drop="before", effect=True)
    with pytest.raises(Unreachable):
        await client.prompt(session, [TextPart("once")], request=RequestId("r"))
    await host.settle()
    assert [call.name[-6:] for call in host.calls].count("prompt") == 1


async def test_a_refusal_without_words_is_a_refusal() -> None:
    with pytest.raises(HostRefused) as refused:
        unwrap({"type": "server-response", "result": {"ok": False, "error": {"code": "x"}}}, "call")
    assert (refused.value.error.code, refused.value.error.message) == ("x", "")


async def test_parse_takes_what_json_takes() -> None:
    value = {"a": [1, {"b": [[{"c": "\ud83d"}], {}, []]}], "d": None, "e": 1.5, "f": {"g": {"h": {"i": [0]}}}}
    assert await parse(json.dumps(value).encode()) == value
    assert await parse(b"5") == 5


def test_decode_names_the_place_and_never_the_value() -> None:
    with pytest.raises(Malformed, match="Expected `int`") as raised:
        decode([CANARY], list[int], "call")
    assert CANARY not in str(raised.value)
    assert raised.value.__cause__ is None


async def test_a_socket_upgrade_that_is_refused(modern: FakeHarness) -> None:
    for status, error in ((403, Forbidden), (404, Unsupported), (500, Malformed), (204, Malformed)):
        modern.heal()
        modern.fail("remote.mux", status=status)
        async with connect(modern) as client:
            with pytest.raises(error):
                async with client.follow(SessionId(modern.session().id)):
                    pass


async def test_the_connection_is_given_up_before_the_host_gives_it_up() -> None:
    assert carrier.KEEPALIVE_SECONDS < 5
    made = Carrier(mock.Mock(base="http://127.0.0.1:1"))
    connector = made._http.connector
    assert isinstance(connector, aiohttp.TCPConnector)
    assert connector._keepalive_timeout == carrier.KEEPALIVE_SECONDS
    await made.close()
