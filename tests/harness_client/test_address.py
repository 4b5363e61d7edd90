"""The line a host prints, and everything that is not one."""

from __future__ import annotations

import pytest

from harness_client.address import Address

TOKEN = "fake-token-Zm9v_-"


@pytest.mark.parametrize(
    ("printed", "base"),
    [
        (f"http://127.0.0.1:3080/?token={TOKEN}", "http://127.0.0.1:3080"),
        (f"dsh web: http://127.0.0.1:3080/?token={TOKEN}\n", "http://127.0.0.1:3080"),
        (f"  https://Harness.Example/?token={TOKEN}#/sessions", "https://harness.example"),
        (f"http://[::1]:8080?token={TOKEN}&theme=dark", "http://[::1]:8080"),
    ],
)
def test_the_printed_line_is_split(printed: str, base: str) -> None:
    assert Address.parse(printed) == Address(base, TOKEN)
    assert Address.parse(printed, TOKEN) == Address(base, TOKEN)


@pytest.mark.parametrize(
    "printed", ["http://localhost:3080", "http://localhost:3080/", "dsh web: http://localhost:3080"]
)
def test_a_bare_address_takes_its_token_from_beside(printed: str) -> None:
    assert Address.parse(printed) == Address("http://localhost:3080", None)
    assert Address.parse(printed, f" {TOKEN}\n") == Address("http://localhost:3080", TOKEN)


def test_the_authority_stays_as_written_for_the_login_is_bound_to_it() -> None:
    assert Address.parse("http://localhost:80/").base != Address.parse("http://127.0.0.1:80/").base


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "dsh web:",
        "127.0.0.1:3080",
        "localhost:3080",
        "ftp://127.0.0.1/",
        "http://",
        "http://:3080/",
        "http://127.0.0.1:port/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:0/",
        "http://[::1/",
        "http://127.0.0.1/connect?token=x",
        "http://127.0.0.1 evil/",
        "http://user@127.0.0.1/",
        "http://:secret@127.0.0.1/",
    ],
)
@pytest.mark.parametrize("given", [None, TOKEN])
def test_what_is_no_address_is_refused_without_quoting_it(printed: str, given: str | None) -> None:
    with pytest.raises(ValueError, match="the host's address") as refused:
        Address.parse(printed + f"?token={TOKEN}" if printed and "?" not in printed else printed, given)
    assert TOKEN not in str(refused.value)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("given", ["", "  ", "another"])
def test_two_tokens_or_an_empty_one_are_refused(given: str) -> None:
    with pytest.raises(ValueError, match="token") as refused:
        Address.parse(f"http://127.0.0.1:3080/?token={TOKEN}", given)
    assert TOKEN not in str(refused.value)


def test_the_token_is_in_no_repr() -> None:
    address = Address.parse(f"http://127.0.0.1:3080/?token={TOKEN}")
    assert TOKEN not in repr(address)
    assert TOKEN not in f"{address}"
