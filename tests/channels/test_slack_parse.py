"""Slack payloads and texts, read and written: a table, and the traps by name."""

from __future__ import annotations

import html

import hypothesis
import pytest
from hypothesis import strategies

from bridges.message import AttachmentKind, ChatKey, ChatKind, EventId, InboundMessage, SenderId
from bridges.text.slack_parse import (
    Me,
    Place,
    Said,
    SlashCommand,
    escaped,
    parse_command,
    parse_event,
    place_of,
    read,
    readable,
    with_slash,
)
from commands.catalog import KNOWN
from commands.recognise import Recognised, recognise
from tests.channels.slack import BOT, COMMANDS
from tests.fakes.slack import BOT_ID, BOT_USER, CHANNEL, TEAM, TELLER, Obj, direct
from tests.fakes.slack.payloads import Writer

ME = Me(BOT_USER, BOT_ID)
WRITE = Writer()


def parsed(event: Obj) -> InboundMessage | None:
    found = read(WRITE.event(event))
    assert found is None or isinstance(found, Said)
    return parse_event(found, ME, BOT, COMMANDS) if found else None


def message(text: str, *, kind: str = "im", **more: object) -> InboundMessage:
    found = parsed(WRITE.message(text, kind=kind) | more)
    assert found is not None
    return found


def picked(command: str, text: str = "", *, direct_: bool = True) -> InboundMessage:
    hook = "https://hooks.slack.com/commands/T/1/x"
    body = WRITE.slash(command, text, hook, sender=TELLER, channel="D1", channel_name="directmessage")
    found = read(body)
    assert isinstance(found, SlashCommand)
    return parse_command(found, BOT, direct=direct_)


def test_a_private_message() -> None:
    event = WRITE.message("hello & <you>")
    found = parsed(event)
    assert found is not None
    assert found.id == EventId(f"{TEAM}:{direct()}:{event['ts']}")
    assert (found.kind, found.sender, found.text) == (ChatKind.DIRECT, SenderId(TELLER), "hello & <you>")
    assert found.chat == ChatKey("slack", BOT, direct())
    assert found.addressed
    assert place_of(found.reply_to) == Place(direct())


@pytest.mark.parametrize("kind", ["mpim", "channel", "group", "app_home", None])
def test_whatever_is_not_surely_one_to_one_is_a_group(kind: str | None) -> None:
    found = message("hello", kind="channel", channel_type=kind)
    assert found.kind is ChatKind.GROUP
    assert not found.addressed


def test_threads_of_a_private_chat_are_one_chat_answered_in_the_thread() -> None:
    found = message("hello", thread_ts="1.000001")
    assert found.chat == ChatKey("slack", BOT, direct())
    assert place_of(found.reply_to) == Place(direct(), thread="1.000001")


def test_a_mention_in_a_channel_opens_a_thread_and_a_thread_is_a_chat() -> None:
    first = message("@ThisBot hello", kind="channel")
    ts = first.id.rpartition(":")[2]
    assert place_of(first.reply_to) == Place(CHANNEL, thread=ts)
    later = message("@ThisBot and then", kind="channel", thread_ts=ts)
    assert later.chat == first.chat
    assert place_of(later.reply_to) == Place(CHANNEL, thread=ts)
    assert message("@ThisBot other", kind="channel").chat != first.chat


def test_both_events_of_a_mention_are_one_message() -> None:
    event = WRITE.message("@ThisBot hello", kind="channel")
    assert parsed(event) == parsed(WRITE.mention(event))


@pytest.mark.parametrize("text", ["@ThisBot /history 4", "/history 4 @ThisBot", "  @ThisBot   /history 4"])
def test_the_bots_own_mention_is_removed_wherever_it_stands(text: str) -> None:
    found = message(text, kind="channel")
    assert (found.text, found.addressed) == ("/history 4", True)


def test_another_mention_is_not_ours() -> None:
    found = parsed(WRITE.message("", kind="channel") | {"text": "<@U0OTHER> /history"})
    assert found is not None
    assert not found.addressed
    assert found.text == "@U0OTHER /history"


def test_an_answer_to_the_bots_message_is_addressed_to_it() -> None:
    assert message("and then?", kind="channel", thread_ts="1.1", parent_user_id=BOT_USER).addressed
    assert not message("and then?", kind="channel", thread_ts="1.1", parent_user_id="U0OTHER").addressed


@pytest.mark.parametrize(
    "change",
    [
        {"subtype": "message_changed"},
        {"subtype": "message_deleted"},
        {"subtype": "bot_message"},
        {"subtype": "channel_join"},
        {"subtype": "me_message"},
        {"edited": {"user": TELLER, "ts": "1.1"}},
        {"bot_id": BOT_ID},
        {"user": BOT_USER},
        {"user": None},
    ],
    ids=str,
)
def test_what_is_none_of_its_business(change: Obj) -> None:
    assert parsed(WRITE.message("hello") | change) is None


def test_a_mention_that_came_by_an_edit_is_an_edit() -> None:
    event = WRITE.mention(WRITE.message("@ThisBot hello", kind="channel"))
    assert parsed(event) is not None
    assert parsed(event | {"edited": {"user": TELLER, "ts": "1.2"}}) is None


@pytest.mark.parametrize("subtype", ["thread_broadcast", "file_share"])
def test_what_a_person_says_under_a_subtype(subtype: str) -> None:
    assert message("hello", subtype=subtype).text == "hello"


def test_files_of_every_kind_are_attachments() -> None:
    types = {
        "image/png": AttachmentKind.IMAGE,
        "video/mp4": AttachmentKind.VIDEO,
        "audio/mp4": AttachmentKind.AUDIO,
        "application/pdf": AttachmentKind.FILE,
        None: AttachmentKind.FILE,
    }
    files = [{"mimetype": kind, "name": "n", "size": 3, "url_private": "https://files.slack.com/f"} for kind in types]
    found = message("/history", subtype="file_share", files=[*files, {"id": "F1", "mode": "hidden_by_limit"}])
    assert [each.kind for each in found.attachments] == [*types.values(), AttachmentKind.FILE]
    assert found.attachments[0].handle == "https://files.slack.com/f"
    assert found.attachments[-1].handle == ""


def test_lists_that_are_not_there_are_empty() -> None:
    found = message("hello", files=None, attachments=None)
    assert (found.attachments, found.quoted) == ((), False)


def test_an_app_of_a_whole_organisation_hears_what_names_no_workspace() -> None:
    found = read(WRITE.event(WRITE.message("hello")) | {"team_id": None, "enterprise_id": "E0FAKE"})
    assert isinstance(found, Said)
    assert parse_event(found, ME, BOT, COMMANDS) is not None


def test_a_shared_message_quotes() -> None:
    assert message("see", attachments=[{"is_share": True, "text": "other words"}]).quoted
    assert not message("see", attachments=[{"title": "a preview"}]).quoted


# -- commands ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        " /history 4",
        "\u3000/history 4",
        "!history 4",
        " !HISTORY 4",
        "！history 4",
        "\u2067!history 4",
        "\u202b\u00a0！history 4",
    ],
)
def test_three_ways_to_type_a_command(text: str) -> None:
    assert recognise(message(text).text, KNOWN) == Recognised("history", "4")


@pytest.mark.parametrize(
    "text", ["!important", "!history2", "!history-1", "! history", "hi !history", "!历史", "!!new"]
)
def test_a_mark_that_is_no_command_stays(text: str) -> None:
    assert message(text).text == text


def test_a_glued_mark_is_left_to_the_recognition() -> None:
    assert with_slash("!history。", COMMANDS) == "/history。"


@pytest.mark.parametrize(("text", "wanted"), [("4", "/history 4"), ("", "/history"), ("a &lt;b&gt;", "/history a <b>")])
def test_a_picked_command_reads_as_if_typed(text: str, wanted: str) -> None:
    found = picked("/history", text)
    assert (found.text, found.kind, found.addressed) == (wanted, ChatKind.DIRECT, True)
    assert place_of(found.reply_to) == Place("D1")


def test_a_command_picked_elsewhere_is_answered_at_its_own_address() -> None:
    found = picked("/history", direct_=False)
    assert found.kind is ChatKind.GROUP
    assert place_of(found.reply_to) == Place("D1", hook="https://hooks.slack.com/commands/T/1/x")


def test_a_pick_without_an_address_is_answered_where_it_was_picked() -> None:
    body = WRITE.slash("/help", "", "", sender=TELLER, channel="D1", channel_name="directmessage")
    del body["response_url"], body["team_id"]
    found = read(body)
    assert isinstance(found, SlashCommand)
    for direct_ in (True, False):
        assert place_of(parse_command(found, BOT, direct=direct_).reply_to) == Place("D1")


def test_each_pick_is_one_event() -> None:
    assert picked("/history").id != picked("/history").id


# -- text --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("a &amp;lt; b", "a &lt; b"),
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"),
        ("<@U1>", "@U1"),
        ("<@U1|ann>", "@ann"),
        ("<#C1|general> <#C2> <#C3|>", "#general #C2 #C3"),
        ("<!here> <!channel|channel> <!subteam^S1|@team> <!subteam^S1>", "@here channel @team @S1"),
        ("<!date^1392734382^{date}|Feb 18>", "Feb 18"),
        ("<https://example.org/a?b=1&amp;c=2>", "https://example.org/a?b=1&c=2"),
        ("<http://example.org|example.org> <http://example.org/|example.org>", "example.org example.org"),
        ("<https://example.org|here>", "here (https://example.org)"),
        ("<mailto:a@example.org|a@example.org>", "a@example.org"),
        ("<b>not Slack's</b>", "<b>not Slack's</b>"),
        ("", ""),
    ],
)
def test_text_reads_as_the_person_saw_it(raw: str, seen: str) -> None:
    assert readable(raw) == seen


@pytest.mark.parametrize(
    "text", ["<!channel> <!here> <@U1> <#C1>", "a & b &amp; c", "<https://example.org|click>", "x < y > z", "\n \t"]
)
def test_nothing_in_our_text_is_live(text: str) -> None:
    sent = escaped(text)
    assert "<" not in sent
    assert ">" not in sent
    assert html.unescape(sent) == text
    assert readable(sent) == text


@hypothesis.given(strategies.text())
def test_every_text_reads_back_as_it_was_written(text: str) -> None:
    assert readable(escaped(text)) == text


def test_a_payload_that_makes_no_sense_raises() -> None:
    with pytest.raises(ValueError, match="str"):
        read(WRITE.event(WRITE.message("hello") | {"ts": 7}))
    with pytest.raises(ValueError, match="channel"):
        read({"event": {"type": "message", "ts": "1.1"}})
