"""Texts that tear easily: surrogates, clusters of every kind, fences, line breaks, controls."""

from __future__ import annotations

from hypothesis import strategies as st

TRICKY = (
    *(
        "👨‍👩‍👧‍👦",
        "🇫🇷",
        "🇫",
        "e\u0301",
        "\u0301",
        "\u200d",
        "😀",
        "字",
        "a",
        " ",
        "\t",
        "\ufe0f",
        "👍🏽",
        "각",
        "ก็",
        "\ud83d",
        "\ude00",
    ),
    *(
        "\n",
        "\r\n",
        "\n\n",
        "```",
        "````",
        "~~~",
        "\n```py\n",
        "\n~~~~\n",
        "\u2028",
        "\x1b[31m",
        "\x1b]0;",
        "\x07",
        "\x9b",
        "\u202e",
    ),
)
PIECES = st.one_of(
    st.sampled_from(TRICKY),
    st.text(max_size=8),
    st.tuples(st.sampled_from(TRICKY), st.sampled_from([2, 5, 30, 500])).map(lambda pair: pair[0] * pair[1]),
)
TEXTS = st.lists(PIECES, max_size=8).map("".join)
