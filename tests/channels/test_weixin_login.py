"""Weixin: every turn a login can take, and where it is kept."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bridges.trusted import UntrustedHost
from bridges.weixin.account import KEPT, Account, Accounts
from bridges.weixin.hosts import Hosts
from bridges.weixin.login import REFRESHES, Failure, Login, LoginFailed, Progress
from bridges.weixin.wire import Wire
from harness_client.clock import SystemClock
from i18n import Key, Language, Words
from tests.bridges.bench import eventually
from tests.bridges.chat_process import PROGRAM, environment
from tests.channels.weixin import platform
from tests.fakes.weixin import FakeWeixin, Fault, Obj

CONFIRMED: Obj = {
    "status": "confirmed",
    "bot_token": "new-token-fake",
    "ilink_bot_id": "bot-9@im.bot",
    "ilink_user_id": "me@im.wechat",
}


class Hurried(SystemClock):
    """Nobody waits."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


@dataclass
class Somebody:
    """A person who types what the test gives them."""

    numbers: list[str] = field(default_factory=list)
    events: list[object] = field(default_factory=list)

    def show(self, address: str) -> None:
        self.events.append(address.rpartition("/")[2])

    def tell(self, progress: Progress) -> None:
        self.events.append(progress)

    def number(self, *, again: bool) -> str:
        self.events.append("again" if again else "number")
        return self.numbers.pop(0)


@pytest.fixture
async def fake() -> AsyncIterator[FakeWeixin]:
    async with platform() as fake:
        yield fake


async def log_in(
    fake: FakeWeixin, *statuses: Obj | str, person: Somebody | None = None, known: tuple[Account, ...] = ()
) -> Account | None:
    fake.logins.extend({"status": each} if isinstance(each, str) else each for each in statuses)
    clock, hosts = Hurried(), Hosts(fake.url)
    async with Wire(hosts.base, "", clock) as wire:
        return await Login(wire, hosts, person or Somebody(), clock, known).run()


async def test_scan_and_confirm(fake: FakeWeixin) -> None:
    person = Somebody()
    account = await log_in(fake, "wait", "scaned", "scaned", {**CONFIRMED, "baseurl": fake.url}, person=person)
    assert account == Account("bot-9@im.bot", "new-token-fake", fake.url, "me@im.wechat")
    assert person.events == ["1", Progress.SCANNED]


async def test_the_platform_is_told_the_newest_tokens_of_this_machine(fake: FakeWeixin) -> None:
    known = tuple(Account(f"bot-{number}", f"token-{number}") for number in range(12))
    assert await log_in(fake, "binded_redirect", known=known) is None
    ((_, body),) = [call for call in fake.calls if call[0] == "get_bot_qrcode"]
    assert body["local_token_list"] == [f"token-{number}" for number in range(11, 1, -1)]


async def test_the_number_on_the_phone_is_asked_until_it_is_right(fake: FakeWeixin) -> None:
    person = Somebody(numbers=["11 ", "22"])
    await log_in(fake, "need_verifycode", "need_verifycode", "scaned", CONFIRMED, person=person)
    assert person.events == ["1", "number", "again", Progress.SCANNED]
    asked = [body.get("verify_code") for call, body in fake.calls if call == "get_qrcode_status"]
    assert asked == [None, "11", "22", None]


async def test_a_blocked_code_is_replaced(fake: FakeWeixin) -> None:
    person = Somebody()
    assert await log_in(fake, "verify_code_blocked", CONFIRMED, person=person)
    assert person.events == ["1", Progress.BLOCKED, "2"]


@pytest.mark.parametrize(("status", "why"), [("expired", Failure.EXPIRED), ("verify_code_blocked", Failure.BLOCKED)])
async def test_codes_are_replaced_three_times_and_no_more(fake: FakeWeixin, status: str, why: Failure) -> None:
    person = Somebody()
    with pytest.raises(LoginFailed) as failed:
        await log_in(fake, status, person=person)
    assert failed.value.why is why
    assert [event for event in person.events if isinstance(event, str) and event.isdecimal()] == ["1", "2", "3", "4"]
    assert fake.count("get_bot_qrcode") == 1 + REFRESHES


async def test_a_redirect_is_followed_on_the_same_machine_only(fake: FakeWeixin) -> None:
    async with platform() as other:
        other.logins.append(CONFIRMED)
        redirect: Obj = {"status": "scaned_but_redirect", "redirect_host": other.url.removeprefix("http://")}
        assert await log_in(fake, redirect)
        assert (fake.count("get_qrcode_status"), other.count("get_qrcode_status")) == (1, 1)


async def test_a_redirect_without_a_host_changes_nothing(fake: FakeWeixin) -> None:
    assert await log_in(fake, "scaned_but_redirect", CONFIRMED)


@pytest.mark.parametrize("host", ["example.org", "user@127.0.0.1", "127.0.0.1/evil?", "127.0.0.1:x"])
async def test_a_strange_redirect_ends_the_login(fake: FakeWeixin, host: str) -> None:
    with pytest.raises(LoginFailed) as failed:
        await log_in(fake, {"status": "scaned_but_redirect", "redirect_host": host})
    assert failed.value.why is Failure.UNTRUSTED


async def test_a_strange_base_address_is_not_stored(fake: FakeWeixin) -> None:
    with pytest.raises(LoginFailed) as failed:
        await log_in(fake, {**CONFIRMED, "baseurl": "https://example.org"})
    assert failed.value.why is Failure.UNTRUSTED


@pytest.mark.parametrize("missing", ["bot_token", "ilink_bot_id"])
async def test_a_yes_without_a_bot_is_none(fake: FakeWeixin, missing: str) -> None:
    with pytest.raises(LoginFailed) as failed:
        await log_in(fake, {**CONFIRMED, missing: None})
    assert failed.value.why is Failure.INCOMPLETE


async def test_polls_that_fail_are_asked_again(fake: FakeWeixin) -> None:
    fake.fail("get_qrcode_status", Fault(status=524), Fault(drop=True), Fault(body=b"<html>"), Fault(ret=-1))
    assert await log_in(fake, CONFIRMED)


@pytest.mark.parametrize("fault", [Fault(status=500), Fault(ret=-1), Fault(body=b"{}"), Fault(drop=True)])
async def test_without_a_code_there_is_no_login(fake: FakeWeixin, fault: Fault) -> None:
    fake.fail("get_bot_qrcode", fault)
    with pytest.raises(LoginFailed) as failed:
        await log_in(fake, "wait")
    assert failed.value.why is Failure.NO_CODE


async def test_a_login_nobody_confirms_ends_by_itself(fake: FakeWeixin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridges.weixin.login.LOGIN_SECONDS", 0.1)
    with pytest.raises(LoginFailed) as failed:
        await log_in(fake, "wait")
    assert failed.value.why is Failure.TIMED_OUT


# -- hosts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["https://ilinkai.weixin.qq.com", "https://sh.ilinkai.weixin.qq.com:443/"])
def test_tencents_own_hosts_are_trusted(url: str) -> None:
    assert Hosts().trusted(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "http://ilinkai.weixin.qq.com", "https://weixin.qq.com.example.org", "https://example.org/.weixin.qq.com",
        "https://evilweixin.qq.com", "https://a:b@ilinkai.weixin.qq.com", "https://ilinkai.weixin.qq.com:8443",
        "https://[::1", "ftp://x.weixin.qq.com", "", "https://127.0.0.1", "https://example.org\\.weixin.qq.com",
        "https://example.org%2f.weixin.qq.com", "https://example.org;.weixin.qq.com", "https://ⓐ.weixin.qq.com",
    ],
)  # fmt: skip
def test_others_are_not(url: str) -> None:
    with pytest.raises(UntrustedHost):
        Hosts().trusted(url)


def test_the_operators_address_takes_the_place_of_tencents() -> None:
    hosts = Hosts("http://127.0.0.1:8081/")
    assert hosts.base == "http://127.0.0.1:8081"
    assert hosts.redirected("127.0.0.1:9") == "http://127.0.0.1:9"
    with pytest.raises(UntrustedHost):
        hosts.trusted("https://ilinkai.weixin.qq.com")


# -- the file ----------------------------------------------------------------------------------------------------------


def test_a_login_is_stored_for_this_user_only(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path / "data")
    assert accounts.read() == ()
    assert accounts.find(None) is None
    accounts.save(Account("a", "token-a"))
    accounts.save(Account("b", "token-b"))
    assert stat.S_IMODE(accounts.path.stat().st_mode) == 0o600
    assert [entry.name for entry in accounts.folder.iterdir()] == [accounts.path.name]
    found = accounts.find(None)
    assert found == Account("b", "token-b"), "the newest"
    assert accounts.find("a") == Account("a", "token-a")
    assert accounts.find("c") is None
    assert "token" not in repr(found)


def test_a_new_login_takes_the_place_of_the_old_one_and_old_bots_go(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path)
    for number in range(KEPT + 2):
        accounts.save(Account(f"bot-{number}", "old"))
    accounts.save(Account("bot-5", "new"))
    assert len(accounts.read()) == KEPT
    assert accounts.read()[-1] == Account("bot-5", "new")


@pytest.mark.parametrize("content", [b"", b"{", b"[7]", b"\xff", b'[{"id": "secret-id"}]'])
def test_a_damaged_file_is_neither_read_nor_overwritten(tmp_path: Path, content: bytes) -> None:
    accounts = Accounts(tmp_path)
    accounts.path.write_bytes(content)
    with pytest.raises(OSError, match="damaged") as error:
        accounts.save(Account("a", "b"))
    assert "secret" not in str(error.value)
    assert accounts.path.read_bytes() == content


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = Accounts(tmp_path)
    accounts.save(Account("a", "old"))

    def full(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        accounts.save(Account("a", "new"))
    assert accounts.read() == (Account("a", "old"),)
    assert len(list(tmp_path.iterdir())) == 1


# -- the command -------------------------------------------------------------------------------------------------------


async def started(fake: FakeWeixin, folder: Path) -> asyncio.subprocess.Process:
    config = folder / "config.toml"
    config.write_text(
        f'language = "en"\n[state]\npath = "{folder / "state.db"}"\n'
        f'[[bot]]\nname = "me"\nchannel = "weixin"\n[bot.endpoints]\napi = "{fake.url}"\n'
    )
    return await asyncio.create_subprocess_exec(
        *(PROGRAM, "login", "weixin", "--config", str(config)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(folder),
    )


async def command(fake: FakeWeixin, folder: Path, typed: str = "") -> tuple[int, str, str]:
    process = await started(fake, folder)
    out, err = await asyncio.wait_for(process.communicate(typed.encode()), 30)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_the_command_shows_the_code_asks_the_number_and_stores_the_login(
    fake: FakeWeixin, tmp_path: Path
) -> None:
    fake.logins.extend([{"status": "need_verifycode"}, CONFIRMED])
    status, out, err = await command(fake, tmp_path, "42\n")
    say = Words(Language.EN)
    assert (status, err) == (0, "")
    assert "▀" in out or "█" in out, "the QR code"
    assert say(Key.LOGIN_SCAN, address="https://login.weixin.qq.com/fake/1") in out
    assert say(Key.LOGIN_NUMBER) in out
    path = tmp_path / "weixin-accounts.json"
    assert say(Key.LOGIN_DONE, account="bot-9@im.bot", user="me@im.wechat", path=path) in out
    assert json.loads(path.read_text())[0]["token"] == CONFIRMED["bot_token"]
    assert "new-token-fake" not in out


async def test_the_command_says_why_nothing_came_of_it(fake: FakeWeixin, tmp_path: Path) -> None:
    fake.fail("get_bot_qrcode", Fault(status=500))
    assert await command(fake, tmp_path) == (1, "", Words(Language.EN)(Key.LOGIN_NO_CODE) + "\n")
    (tmp_path / "weixin-accounts.json").write_text("{")
    status, _, err = await command(fake, tmp_path)
    assert (status, "damaged" in err) == (1, True)


async def test_the_command_without_anybody_to_ask_ends(fake: FakeWeixin, tmp_path: Path) -> None:
    fake.logins.append({"status": "need_verifycode"})
    assert (await command(fake, tmp_path))[0] == 130
    assert not (tmp_path / "weixin-accounts.json").exists()


async def test_nothing_the_platform_says_draws_on_the_terminal(fake: FakeWeixin, tmp_path: Path) -> None:
    fake.qr_address = "https://login.weixin.qq.com/\x1b[2J" + "x" * 5_000
    fake.logins.append({**CONFIRMED, "ilink_user_id": "me\x1b]0;gone\x07\r"})
    status, out, err = await command(fake, tmp_path)
    assert (status, err) == (0, "")
    assert "x" * 5_000 in out, "a link, where no code holds so much"
    assert not {"\x1b", "\x07", "\r"} & set(out)


async def test_a_login_that_is_broken_off_leaves_nothing_behind(fake: FakeWeixin, tmp_path: Path) -> None:
    fake.logins.append({"status": "wait"})
    process = await started(fake, tmp_path)
    await eventually(lambda: fake.count("get_qrcode_status") > 0, 20)
    process.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, err) == (130, b"")
    assert b"Traceback" not in out
    assert [path.name for path in tmp_path.iterdir() if "weixin" in path.name] == []


async def test_a_file_of_logins_that_cannot_be_read_is_told_before_anybody_scans(
    fake: FakeWeixin, tmp_path: Path
) -> None:
    (tmp_path / "weixin-accounts.json").mkdir()
    status, out, err = await command(fake, tmp_path)
    assert (status, out) == (1, "")
    assert "Is a directory" in err
    assert not fake.calls
