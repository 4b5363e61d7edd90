"""No reply is ever over its budget, and no text is ever torn."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import iter_graphemes

from commands.budget import Limits, fit, open_fence, prefix, split, truncate, utf16_length
from commands.cleaning import clean, is_invisible
from commands.history import render
from harness_client.events import File, Image, Text
from harness_client.transcript import Message, Role
from harness_client.types import SessionId
from harness_client.window import Window
from i18n import Key, Language, Words
from tests.property.texts import TEXTS

MARKS = st.sampled_from(["（已截断）", "(truncated)"])


def units(text: str) -> int:
    """UTF-16 units, counted by hand."""
    return sum(2 if ord(char) > 0xFFFF else 1 for char in text)


def borders(text: str) -> set[int]:
    """Where a text may be cut."""
    found, at = {0}, 0
    for cluster in iter_graphemes(text):
        at += len(cluster)
        found.add(at)
    return found


@given(TEXTS)
def test_lengths(text: str) -> None:
    assert utf16_length(text) == units(text)


@given(TEXTS, st.integers(0, 60))
def test_a_prefix_is_the_longest_that_fits_and_tears_nothing(text: str, limit: int) -> None:
    kept = prefix(text, limit)
    assert text.startswith(kept)
    assert units(kept) <= limit
    fitting = [border for border in borders(text) if units(text[:border]) <= limit]
    if max(fitting) > 0:
        assert len(kept) == max(fitting)
    else:
        assert len(kept) == max(n for n in range(len(text) + 1) if units(text[:n]) <= limit)


@given(TEXTS, st.integers(2, 1_800))
def test_the_splitter_loses_nothing(text: str, limit: int) -> None:
    segments = split(text, limit)
    assert "".join(segments) == text
    assert all(0 < units(segment) <= limit for segment in segments)
    allowed, at = borders(text), 0
    for segment in segments[:-1]:
        at += len(segment)
        if at not in allowed:
            begins, ends = max(b for b in allowed if b < at), min(b for b in allowed if b > at)
            assert units(text[begins:ends]) > limit


@given(TEXTS, st.integers(0, 600), MARKS)
def test_a_cut_body_keeps_its_limit(body: str, limit: int, mark: str) -> None:
    cut = truncate(body, limit, mark)
    assert units(cut) <= limit
    if units(body) <= limit:
        assert cut == body
        return
    fence = open_fence(cut)
    assert fence is None
    kept, found, closing = cut.rpartition(mark)
    if found:
        assert body.startswith(kept)
        assert kept == kept.rstrip()
        assert not closing.strip("`~\n")


@given(
    st.lists(TEXTS.map(lambda text: text[:600]), max_size=5),
    MARKS,
    st.builds(Limits, st.integers(0, 600), st.integers(0, 900), st.integers(2, 900), st.integers(1, 4)),
)
@settings(max_examples=50)
def test_fitting_ends_within_whatever_limits(bodies: list[str], mark: str, limits: Limits) -> None:
    def compose(left: Sequence[str], dropped: int) -> str:
        return "\n\n".join(["header", *left, str(dropped)])

    reply = fit(bodies, mark, compose, limits)
    assert units(reply) <= limits.reply
    assert len(split(reply, limits.segment)) <= limits.segments


BLOCKS = st.lists(st.one_of(TEXTS.map(Text), st.just(Image()), st.just(File())), max_size=4).map(tuple)
MESSAGES = st.lists(st.builds(Message, st.just(0), st.sampled_from(Role), BLOCKS), max_size=5).map(tuple)


@given(MESSAGES, st.booleans(), st.booleans(), st.sampled_from(Language), TEXTS)
@settings(max_examples=60)
def test_every_reply_keeps_every_limit(
    messages: tuple[Message, ...], more: bool, running: bool, language: Language, session: str
) -> None:
    segments = render(Window(messages, more, running), SessionId(session), 5, Words(language))
    whole = "".join(segments)
    assert 1 <= len(segments) <= 3
    assert all(segment.strip() and units(segment) <= 1_800 for segment in segments)
    assert units(whole) <= 3_000
    whole.encode("utf-8")  # well-formed: no half of a pair is left
    assert whole.count(Words(language)(Key.HISTORY_USER)) >= sum(m.role is Role.USER for m in messages)


@given(TEXTS)
def test_cleaned_text_acts_on_no_screen(text: str) -> None:
    safe = clean(text)
    assert clean(safe) == safe
    assert not any((ord(c) < 0x20 and c not in "\t\n") or 0x7F <= ord(c) < 0xA0 for c in safe)
    assert not any(c in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029" for c in safe)
    assert not any(0xD800 <= ord(c) < 0xE000 for c in safe)
    if safe and not is_invisible(safe):
        lines = safe.split("\n")
        assert lines[0].strip()
        assert lines[-1].strip()
