"""Nothing secret on any line of any log, however it got there."""

from __future__ import annotations

import asyncio
import base64
import gc
import html
import io
import json
import logging
import re
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from bridges.config import parse
from bridges.log import HIDDEN, MAX_LEARNT, UNTOLD, LoggedReferences, Redactor, logging_to
from bridges.secret import Secret
from commands.model import SenderId
from harness_client.errors import SessionBusy, TimedOut
from harness_client.types import SessionId
from tests.bridges.test_config import FULL, PLACES

CONFIG = parse(FULL.encode(), PLACES)
AWKWARD = {'quote"and\\slash', "back`tick'quote", "tab\tand\nline", "密钥-四个字", "a+b/c=d&e f"}
SECRETS = sorted(CONFIG.secrets() | AWKWARD)
FOREIGN = "some.sdk.transport"


def by_field(secret: str) -> None:
    structlog.get_logger("bridges.x").info(
        "event", field=secret, nested={"inner": [secret]}, url=f"http://h/{secret}/x"
    )


def by_event(secret: str) -> None:
    structlog.get_logger("bridges.x").warning(f"event {secret}")


def by_binding(secret: str) -> None:
    structlog.get_logger("bridges.x").bind(bound=secret).error("event")


def by_context(secret: str) -> None:
    with structlog.contextvars.bound_contextvars(context=secret):
        structlog.get_logger("bridges.x").info("event")


def by_exception(secret: str) -> None:
    try:
        try:
            raise ValueError(secret)
        except ValueError as error:
            raise RuntimeError(f"wrapped {secret}") from error
    except RuntimeError:
        structlog.get_logger("bridges.x").exception("event")


def by_library(secret: str) -> None:
    logging.getLogger(FOREIGN).error("url %s and %r", f"https://h/{quote(secret)}", secret)


def by_library_put_together(secret: str) -> None:
    logging.getLogger(FOREIGN).error(f"update {secret}")


def by_library_level(secret: str) -> None:
    """Write as one does whose logger was given a level, and handlers that pass on."""
    loud = logging.getLogger(f"{FOREIGN}.loud")
    loud.setLevel(logging.DEBUG)
    loud.debug(f"frame {secret}")
    loud.warning("slow")


def by_library_misfit(secret: str) -> None:
    logging.getLogger(FOREIGN).error("%d of %d", secret)  # noqa: PLE1206 - this is the misfit


def by_library_exception(secret: str) -> None:
    try:
        raise OSError(secret)
    except OSError:
        logging.getLogger(FOREIGN).exception("failed")


def by_library_extra(secret: str) -> None:
    logging.getLogger(FOREIGN).error({"payload": secret})


def by_warning(secret: str) -> None:
    warnings.showwarning(secret, UserWarning, "/somewhere/module.py", 7)


def by_uncaught_exception(secret: str) -> None:
    error = ExceptionGroup(secret, [ValueError(secret)])
    sys.excepthook(ExceptionGroup, error, None)


def by_dying_thread(secret: str) -> None:
    def die() -> None:
        raise ValueError(secret)

    thread = threading.Thread(target=die, name=secret)
    thread.start()
    thread.join()


def by_lost_object(secret: str) -> None:
    class Lost:
        def __del__(self) -> None:
            raise ValueError(secret)

    Lost()


def by_lost_task(secret: str) -> None:
    loop = asyncio.new_event_loop()
    loop.call_exception_handler({"message": secret, "exception": ValueError(secret)})
    loop.close()


def by_reference(secret: str) -> None:
    LoggedReferences().record(ValueError(secret), actor=SenderId("ann"), session=SessionId("s"))


OURS = [by_field, by_event, by_binding, by_context]
THEIRS = [
    by_exception, by_library, by_library_put_together, by_library_level, by_library_misfit, by_library_exception,
    by_library_extra, by_warning, by_uncaught_exception, by_dying_thread, by_lost_object, by_lost_task, by_reference,
]  # fmt: skip
"""Ways of what nobody may have looked at: not even what is unknown to the redactor is shown."""


def spellings(secret: str) -> set[str]:
    data = secret.encode()
    coded = {base64.b64encode(data).decode().rstrip("="), base64.urlsafe_b64encode(data).decode().rstrip("=")}
    plain = {secret, html.escape(secret), quote_plus(secret), repr(data)[2:-1], quote(secret, safe="").lower()}
    return plain | coded | {quote(secret), quote(secret, safe=""), repr(secret)[1:-1], json.dumps(secret)[1:-1]}


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("way", OURS + THEIRS)
def test_no_secret_reaches_a_log_by_any_way(way: Callable[[str], None], as_json: bool) -> None:
    for secret in SECRETS:
        stream = io.StringIO()
        with logging_to(stream, Redactor(SECRETS), as_json=as_json):
            way(secret)
        text = stream.getvalue()
        assert text.strip()
        assert not [spelling for spelling in spellings(secret) if spelling in text]


@pytest.mark.parametrize("way", OURS)
def test_without_the_redactor_each_way_of_ours_would_show_it(way: Callable[[str], None]) -> None:
    stream = io.StringIO()
    with logging_to(stream, Redactor()):
        way("plainly-visible")
    assert "plainly-visible" in stream.getvalue()


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("way", THEIRS)
def test_what_a_library_or_an_error_says_is_shown_to_nobody(
    way: Callable[[str], None], as_json: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    stream = io.StringIO()
    with logging_to(stream, Redactor(), as_json=as_json):
        way("what somebody wrote")
        gc.collect()
    assert stream.getvalue().strip()
    assert "what somebody wrote" not in stream.getvalue()
    assert "what somebody wrote" not in "".join(capfd.readouterr())


def test_a_library_is_quoted_as_its_source_reads() -> None:
    stream = io.StringIO()
    with logging_to(stream, Redactor(), as_json=True):
        logging.getLogger(FOREIGN).warning("retrying %s in %d s", "https://h", 3)
        logging.getLogger(FOREIGN).warning("%s".replace("s", "d"), 3)
    written, built = map(json.loads, stream.getvalue().splitlines())
    assert written["event"] == "retrying %s in %d s"
    assert written["at"].startswith(f"{Path(__file__).name}:")
    assert built["event"] == UNTOLD


@pytest.mark.parametrize("shown", sorted(spellings("a/ü?&=<'\"\\z ~ä")))
def test_every_spelling_of_a_secret_is_hidden(shown: str) -> None:
    assert Redactor(["a/ü?&=<'\"\\z ~ä"])(f"({shown})") in {f"({HIDDEN})", f"({HIDDEN}=)"}


@pytest.mark.parametrize(
    "text",
    [
        "GET http://127.0.0.1:3080/?token=never-told HTTP/1.1",
        "https://h/x?a=1&access_token=never-told&b=2",
        "Authorization: Bearer never-told",
        "https://api.telegram.org/bot12345:never-told/getMe",
    ],
)
def test_what_looks_like_a_secret_is_hidden_unknown(text: str) -> None:
    assert "never-told" not in Redactor()(text)
    assert HIDDEN in Redactor()(text)


def test_a_token_learnt_later_is_hidden_from_then_on() -> None:
    redact = Redactor()
    assert redact("fetched-token") == "fetched-token"
    redact.hide("fetched-token")
    assert redact("fetched-token") == HIDDEN


def test_a_secret_within_another_is_hidden_whole() -> None:
    assert Redactor(["abcd", "abcdefgh"])("xabcdefghx abcdx") == f"x{HIDDEN}x {HIDDEN}x"


def test_the_redactor_does_not_grow_without_end_and_keeps_what_lasts() -> None:
    redact = Redactor()
    redact.keep(["configured"])
    for number in range(1000, 1100 + MAX_LEARNT):
        redact.hide(f"secret-{number}")
    assert redact(f"secret-1000 secret-{1099 + MAX_LEARNT} configured") == f"secret-1000 {HIDDEN} {HIDDEN}"
    assert len(redact._learnt) == MAX_LEARNT


@given(st.text(min_size=4), st.text(), st.text())
def test_a_known_secret_never_survives(secret: str, before: str, after: str) -> None:
    if secret not in HIDDEN:
        assert secret not in Redactor([secret])(f"{before}{secret}{after}").replace(HIDDEN, "\0")


def test_libraries_speak_from_warning_on_and_we_from_info_on() -> None:
    stream = io.StringIO()
    with logging_to(stream, Redactor()):
        logging.getLogger(FOREIGN).info("a person's message")
        structlog.get_logger("bridges.x").info("ours")
        structlog.get_logger("bridges.x").debug("too much")
        logging.getLogger(FOREIGN).warning("theirs")
    assert re.findall(r"a person's message|ours|too much|theirs", stream.getvalue()) == ["ours", "theirs"]


def test_one_entry_cannot_pass_for_two() -> None:
    stream = io.StringIO()
    with logging_to(stream, Redactor()):
        logging.getLogger(FOREIGN).warning("one\n2026-11-30 [info] forged\x1b[2K\u202e")
    first, *rest = stream.getvalue().splitlines()
    assert "one" in first
    assert all(line.startswith("    ") for line in rest)
    assert not set("\x1b\u202e") & set(stream.getvalue())


def test_json_is_one_object_a_line() -> None:
    stream = io.StringIO()
    with logging_to(stream, Redactor(), as_json=True):
        by_exception("two\nlines")
        logging.getLogger(FOREIGN).warning("theirs %d", 1)
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["event"], first["level"], first["logger"]) == ("event", "error", "bridges.x")
    assert first["exception"].startswith(f"RuntimeError\n  {Path(__file__).name}:")
    assert "\nValueError\n" in first["exception"]
    assert (second["event"], second["level"], second["logger"]) == ("theirs %d", "warning", FOREIGN)


def test_the_process_is_left_as_it_was() -> None:
    root = logging.getLogger()
    before = (root.handlers[:], root.level, sys.excepthook, logging.getLogger("bridges").level)
    with logging_to(io.StringIO(), Redactor()):
        assert root.handlers != before[0]
    assert (root.handlers[:], root.level, sys.excepthook, logging.getLogger("bridges").level) == before


def test_a_reference_leads_to_the_cause_and_to_no_message() -> None:
    stream = io.StringIO()
    with logging_to(stream, Redactor(), as_json=True):
        try:
            try:
                raise TimeoutError("the person wrote: hello")
            except TimeoutError as error:
                raise TimedOut("the person wrote: hello") from error
        except TimedOut as error:
            reference = LoggedReferences().record(error, actor=SenderId("ann"), session=SessionId("session-1"))
    assert re.fullmatch(r"H-[2-9A-Z]{6}", reference)
    entry = json.loads(stream.getvalue())
    assert (entry["reference"], entry["actor"], entry["session"]) == (reference, "ann", "session-1")
    assert entry["cause"] == "TimedOut[timed-out] <- TimeoutError"
    assert entry["at"].startswith(f"{Path(__file__).name}:")
    assert "hello" not in stream.getvalue()


def test_a_refusal_is_logged_with_the_hosts_own_code() -> None:
    stream = io.StringIO()
    with logging_to(stream, Redactor(), as_json=True):
        LoggedReferences().record(SessionBusy("no", reason="agent/busy"), actor=SenderId("ann"), session=None)
    assert json.loads(stream.getvalue())["cause"] == "SessionBusy[session-busy agent/busy]"


def test_references_do_not_repeat() -> None:
    with logging_to(io.StringIO(), Redactor()):
        record = LoggedReferences().record
        minted = {record(ValueError(), actor=SenderId("ann"), session=None) for _ in range(200)}
    assert len(minted) == 200


def test_a_secret_shows_itself_in_no_form() -> None:
    secret = Secret("obviously-fake")
    assert "obviously-fake" not in f"{secret} {secret!r} {[secret]} {vars(Secret)}"
