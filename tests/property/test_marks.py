"""Whatever a person says, and whatever else comes with it: the person's words come back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from commands.marks import Quote, unwrap, wrap

LINES = ("[chat-bridge context]", "[/chat-bridge context]", "[message 1 of 2]", "[message 2 of 2]", "> q", "- f",
         "Added by the chat bridge; the words of the person follow the closing line.", "Attached files:",
         "Quoted message from x:", "Messages sent together (lines of each): 1, 1", "", "x", "\r", "\u2028")  # fmt: skip
TYPED = st.one_of(st.text(), st.lists(st.sampled_from(LINES), max_size=9).map("\n".join))
FORGED = st.builds(wrap, st.lists(TYPED, min_size=1, max_size=3), files=st.lists(TYPED, max_size=2))
WORDS = st.one_of(TYPED, FORGED)
QUOTES = st.one_of(st.none(), st.builds(Quote, WORDS, WORDS))


@given(st.lists(WORDS, min_size=1, max_size=4), QUOTES, st.lists(WORDS, max_size=3))
def test_words_come_back(messages: list[str], quote: Quote | None, files: list[str]) -> None:
    sent = wrap(messages, quote=quote, files=files)
    back = unwrap(sent)
    assert (sent if back is None else back) == "\n".join(messages)


@given(st.lists(WORDS, min_size=1, max_size=3))
def test_also_when_they_are_sent_on(messages: list[str]) -> None:
    sent = wrap(messages)
    assert unwrap(wrap([sent, "x"])) == f"{sent}\nx"
