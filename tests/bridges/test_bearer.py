"""An access token: fetched once for all who ask, renewed before its end, replaced once when it was refused."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from bridges.bearer import Bearer, Grant
from tests.fakes.clock import FakeClock


class Issuer:
    """Gives tokens 1, 2, …, each for so many seconds."""

    def __init__(self, seconds: float = 7_200) -> None:
        self.seconds = seconds
        self.hidden: list[str] = []
        self.clock = FakeClock()
        self.broken = False
        self._numbers = itertools.count(1)
        self.bearer = Bearer(self._fetch, self.clock, self.hidden.append, early=50)

    async def _fetch(self) -> Grant:
        await asyncio.sleep(0)
        if self.broken:
            raise ConnectionError
        return Grant(str(next(self._numbers)), self.seconds)


async def test_all_who_ask_at_once_get_one_token() -> None:
    issuer = Issuer()
    assert set(await asyncio.gather(*(issuer.bearer.get() for _ in range(20)))) == {"1"}
    assert issuer.hidden == ["1"]


@pytest.mark.parametrize(("seconds", "renewed"), [(7_200, 7_150), (100, 50), (60, 30), (0, 0)])
async def test_it_is_renewed_early_and_a_short_one_at_half_its_life(seconds: float, renewed: float) -> None:
    issuer = Issuer(seconds)
    assert await issuer.bearer.get() == "1"
    if renewed:
        await issuer.clock.advance(renewed - 0.1)
        assert await issuer.bearer.get() == "1"
        await issuer.clock.advance(0.1)
    assert await issuer.bearer.get() == "2"


async def test_a_refused_token_is_replaced_once_however_many_were_refused_with_it() -> None:
    issuer = Issuer()
    old = await issuer.bearer.get()
    for _ in range(3):
        issuer.bearer.forget(old)
        assert await issuer.bearer.get() == "2"


async def test_a_fetch_that_fails_is_tried_by_the_next_who_asks() -> None:
    issuer = Issuer()
    issuer.broken = True
    with pytest.raises(ConnectionError):
        await issuer.bearer.get()
    issuer.broken = False
    assert await issuer.bearer.get() == "1"
