from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from archive.answers import ReadAnswer
from archive.fold import units
from archive.model import EndReason, Host, NodeId, SessionArchive
from archive.problem import BadRequest, Fault
from archive.read import read
from archive.request import Read
from tests.archive.libraries import library, moment, pair, session, summarised

ASTRAL = st.text(st.sampled_from("a中😀\U0002000b\n"), max_size=30)


def pages(asked: Read, *made: SessionArchive) -> list[ReadAnswer]:
    shelves = library(*made)
    found = []
    offset: int | None = asked.offset
    while offset is not None:
        found.append(read(shelves, Read(asked.id, asked.host, offset, asked.limit)))
        assert found[-1].next_offset is None or found[-1].next_offset > found[-1].offset
        offset = found[-1].next_offset
    return found


@given(st.lists(ASTRAL, min_size=1, max_size=3), ASTRAL, st.lists(ASTRAL, max_size=2), st.integers(1, 9))
def test_pages_join_to_the_body_and_its_parts(inputs: list[str], answer: str, later: list[str], limit: int) -> None:
    made = session("s", [pair(0, *inputs, answer=answer, later=later)])
    read_pages = pages(Read(NodeId("s-0"), limit=limit), made)
    assert "".join(page.text for page in read_pages) == "\n\n".join(filter(None, [*inputs, answer, *later]))
    assert all(units(page.text) <= max(limit, 2) for page in read_pages)
    assert all(page.text or len(read_pages) == 1 for page in read_pages)
    for number, text in enumerate(inputs):
        parts = [page.inputs[number].text for page in read_pages if page.inputs is not UNSET]
        assert "".join(parts) == text
    assert "".join(page.answer for page in read_pages if page.answer is not UNSET) == answer
    for number, text in enumerate(later):
        assert "".join(page.later[number] for page in read_pages if page.later is not UNSET) == text


@pytest.mark.parametrize(
    ("offset", "limit", "text", "start", "following"),
    [
        (0, 1, "😀", 0, 2),
        (1, 1, "😀", 0, 2),
        (0, 3, "😀a", 0, 3),
        (2, 2, "a", 2, 3),
        (3, 1, "😀", 3, None),
        (4, 1, "😀", 3, None),
        (5, 1, "", 5, None),
        (99, 1, "", 5, None),
    ],
)
def test_pages_never_cut_a_character(offset: int, limit: int, text: str, start: int, following: int | None) -> None:
    made = session("s", [pair(0, "😀a😀")])
    page = read(library(made), Read(NodeId("s-0"), offset=offset, limit=limit))
    assert (page.text, page.offset, page.next_offset) == (text, start, following)


def test_a_pair_tells_its_parts() -> None:
    made = session("s", [pair(0, "q", "and", answer="part", later=["then"], end=EndReason.ABORTED, at=3)])
    page = read(library(made), Read(NodeId("s-0")))
    assert page.text == "q\n\nand\n\npart\n\nthen"
    assert page.inputs is not UNSET
    assert [(given.origin, given.text, given.at) for given in page.inputs] == [
        ("user", "q", moment(3)),
        ("user", "and", moment(3)),
    ]
    assert (page.answer, page.later, page.end_reason) == ("part", ("then",), EndReason.ABORTED)
    assert (page.kind, page.ready, page.completed) == ("pair", True, False)
    assert (page.start, page.end) == (moment(3), moment(4))
    assert [parent.id for parent in page.parents] == ["s"]
    assert page.children == ()


def test_a_session_is_a_directory_of_pages_of_twenty() -> None:
    made = session("s", [pair(number, f"q{number}", at=number) for number in range(91)], title="T")
    first = read(library(made), Read(NodeId("s")))
    assert (first.kind, first.text, first.next_offset, first.ready) == ("session", "", None, False)
    assert first.inputs is UNSET
    # 91 pairs: one summary of 64, one of 16 on each level below it, two of 4 at the lowest, and three left over
    assert [(child.kind, child.preview) for child in first.children] == [
        ("summary", "q0"), ("summary", "q64"), ("summary", "q80"), ("summary", "q84"),
        ("pair", "q88"), ("pair", "q89"), ("pair", "q90"),
    ]  # fmt: skip


def test_children_come_in_pages_of_twenty() -> None:
    made = session("s", [pair(number, f"q{number}", at=number) for number in range(45)])
    names = tuple(made.nodes)
    made = replace(made, branches=tuple((name,) for name in names))  # 45 beginnings: nothing to group
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = read(library(made), Read(NodeId("s"), children_offset=offset))
        assert len(page.children) <= 20
        seen += [child.id for child in page.children]
        offset = page.next_children_offset
    assert seen == list(names)


def test_a_summary_has_text_only_while_it_is_current() -> None:
    plain = session("s", [pair(number, f"q{number}", at=number) for number in range(4)])
    (child,) = read(library(plain), Read(NodeId("s"))).children
    page = read(library(plain), Read(child.id))
    assert (page.text, page.ready, [below.id for below in page.children]) == ("", False, list(plain.nodes))
    page = read(library(summarised(plain, "short")), Read(child.id))
    assert (page.text, page.ready, page.kind) == ("short 0", True, "summary")
    assert page.source.entry_ids == ("q0", "a3")
    assert [parent.id for parent in page.parents] == ["s"]
    pair_page = read(library(plain), Read(NodeId("s-0")))
    assert [parent.id for parent in pair_page.parents] == [child.id]


def test_ids_that_cannot_be_read() -> None:
    one, other = session("same", [pair(0, "x")]), session("same", [pair(0, "y")], host=Host.DSH)
    with pytest.raises(BadRequest) as caught:
        read(library(one, other), Read(NodeId("absent")))
    assert (caught.value.code, caught.value.parameter) == (Fault.UNKNOWN_ID, "id")
    with pytest.raises(BadRequest) as caught:
        read(library(one, other), Read(NodeId("same-0")))
    assert (caught.value.code, caught.value.parameter) == (Fault.AMBIGUOUS_ID, "host")
    assert caught.value.values == {"hosts": "dsh, pi"}
    assert read(library(one, other), Read(NodeId("same-0"), Host.DSH)).text == "y"
    with pytest.raises(BadRequest):
        read(library(one), Read(NodeId("same-0"), Host.DSH))
