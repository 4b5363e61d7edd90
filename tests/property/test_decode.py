"""The walking decoder reads what json reads, however its text is cut into pieces."""

from __future__ import annotations

import json
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from harness_client import decode
from harness_client.decode import loads
from harness_client.errors import Malformed

KEYS = st.text(st.characters(codec="utf-8"), max_size=4)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.integers(1, 40), st.integers(0, 40), st.sampled_from([None, 1]))
def test_values_come_back(value: object, piece: int, long: int, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    with patch.object(decode, "_PIECE", piece + 12), patch.object(decode, "_LONG", long):
        assert json.dumps(loads(text.encode()), sort_keys=True) == json.dumps(value, sort_keys=True)


@given(JSON, st.data())
def test_a_piece_of_json_is_refused_or_json(value: object, data: st.DataObject) -> None:
    body = json.dumps(value).encode()
    torn = body[: data.draw(st.integers(0, len(body)))] + data.draw(st.binary(max_size=3))
    with patch.object(decode, "_PIECE", 16):
        try:
            read = loads(torn)
        except Malformed:
            return
    assert read == json.loads(torn)
