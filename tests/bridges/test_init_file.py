"""What ``harness-im init`` writes: any text survives, other text stays, and nothing is ever half there."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.cli.setup.draft import Draft, Given, Hidden, Plain, Reference
from bridges.cli.setup.draft import given as read
from bridges.cli.setup.store import Changed, Existing, Plan, _alone, save
from bridges.cli.setup.toml import CannotExtend, extended, quoted, written
from bridges.config import load
from i18n import Language
from tests.bridges.chat_process import SECONDS

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
nasty = st.sampled_from(
    ['"', "'''", '"""', "\\", "\n", "\r\n", "\x00", "\x1f", "\x7f", "\u2028", "\ufeff", "\U0001f600", "# ]"]
)
texts = st.one_of(anything, st.lists(nasty, max_size=6).map("".join))
keys = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)


@given(st.dictionaries(keys, st.one_of(texts, st.lists(texts), st.dictionaries(keys, texts))))
def test_whatever_is_written_is_read_again(entries: dict[str, str | list[str] | dict[str, str]]) -> None:
    assert tomllib.loads(written("[table]", entries)) == {"table": entries}


@given(texts)
def test_a_string_stays_on_its_line(text: str) -> None:
    assert not set(quoted(text)) & set("\n\r\x00\x7f")


@given(token=texts, owner=texts, url=texts)
def test_a_bot_says_what_was_answered(token: str, owner: str, url: str) -> None:
    values: dict[str, Given] = {"token": Hidden(token), "app_id": Plain(owner), "secret": Reference("env", url)}
    draft = Draft("telegram", "ops", values, (owner,), {"api": url})
    (bot,) = tomllib.loads(draft.text())["bot"]
    assert bot == {
        "name": "ops", "channel": "telegram", "token": token, "app_id": owner, "secret": {"env": url},
        "access": {"direct": "pairing", "owners": [owner]}, "endpoints": {"api": url},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ("1:secret", Hidden("1:secret")),
        ("env:NAME", Reference("env", "NAME")),
        ("file:token", Reference("file", "/here/token")),
        ("file:/there/token", Reference("file", "/there/token")),
        ("file:~nobody-of-that-name/x", Reference("file", "/here/~nobody-of-that-name/x")),
        ("env:", Hidden("env:")),
        ("https://host/?token=env:x", Hidden("https://host/?token=env:x")),
    ],
)
def test_an_answer_may_name_a_place(answer: str, meant: Given) -> None:
    assert read(answer, secret=True, folder=Path("/here")) == meant
    assert read(answer, secret=False, folder=Path("/here")) == Plain(answer)


comments = st.from_regex(r"(#[ -~é世]{0,20}|[ \t]*)", fullmatch=True)
names = st.lists(st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True), max_size=3)
ends = st.sampled_from(["\n", "\r\n"])


@settings(max_examples=60)
@given(comments, names, ends, st.booleans())
def test_an_old_text_stays_to_the_letter(comment: str, bots: list[str], end: str, closed: bool) -> None:
    tables = [
        f"[[bot]] {comment}{end}name = '{name}'{end}{comment}{end}[bot.access]{end}owners = ['1']" for name in bots
    ]
    old = end.join([comment, "language = 'zh'", comment, "[state]", 'path = "x"', *tables]) + (end if closed else "")
    new = extended(old, Draft("weixin", "new", {}).text())
    assert new.startswith(old)
    assert [bot["name"] for bot in tomllib.loads(new)["bot"]] == [*bots, "new"]


@pytest.mark.parametrize("old", ["bot = []", "bot = [{ name = 'a' }]", "bot = 1", "[bot]\nname = 'a'"])
def test_what_cannot_be_added_to_is_said_so(old: str) -> None:
    with pytest.raises(CannotExtend):
        extended(old, Draft("weixin", "new", {}).text())


# -- files -------------------------------------------------------------------------------------------------------------


def plan(path: Path, *bots: Draft) -> Plan:
    old = Existing.read(path)
    harness = None if old else Hidden("http://127.0.0.1:1/?token=t")
    return Plan(path, old, old is not None, Language.EN, harness, bots)


def telegram() -> Draft:
    return Draft("telegram", "ops", {"token": Hidden("1:secret")})


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_a_new_file_and_its_secrets_are_for_one_user_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = save(plan(tmp_path / "c.toml", telegram()))
    finally:
        os.umask(before)
    assert everything(tmp_path) == ["c.toml", "secrets/harness-url", "secrets/ops-token"]
    assert {mode(path) for path in (tmp_path / "c.toml", *made)} == {0o600}
    config = load(tmp_path / "c.toml", {})
    assert "1:secret" in config.secrets()


def test_a_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real" / "kept.toml"
    real.parent.mkdir()
    real.write_text("language = 'en' # mine\n")
    link = tmp_path / "c.toml"
    link.symlink_to(real)
    save(plan(link, telegram()))
    assert link.is_symlink()
    assert real.read_text().startswith("language = 'en' # mine\n")
    assert mode(real) == 0o600
    assert everything(real.parent) == ["kept.toml", "secrets/ops-token"]
    assert "1:secret" in load(link, {}).secrets()


def test_a_link_to_nothing_is_filled_where_it_points(tmp_path: Path) -> None:
    link = tmp_path / "c.toml"
    link.symlink_to(tmp_path / "later.toml")
    save(plan(link, telegram()))
    assert link.is_symlink()
    assert (tmp_path / "later.toml").is_file()


def test_no_file_of_a_secret_is_ever_written_over(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "ops-token").write_text("of another program")
    (secrets / "ops-token-2").symlink_to(tmp_path / "elsewhere")
    save(plan(tmp_path / "c.toml", telegram()))
    assert (secrets / "ops-token").read_text() == "of another program"
    assert not (tmp_path / "elsewhere").exists()
    assert (secrets / "ops-token-3").read_text() == "1:secret"
    assert "1:secret" in load(tmp_path / "c.toml", {}).secrets()


def test_a_file_that_changed_meanwhile_stays_as_it_became(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    absent = plan(file, telegram())
    file.write_text("# somebody was faster\n")
    with pytest.raises(Changed):
        save(absent)
    before = plan(file, telegram())
    file.write_text("# and again\n")
    with pytest.raises(Changed):
        save(before)
    assert file.read_text() == "# and again\n"
    assert everything(tmp_path) == ["c.toml"]


@pytest.mark.parametrize("nth", range(1, 9))
@pytest.mark.parametrize("there", [False, True])
def test_a_disk_that_fails_leaves_the_old_state(
    nth: int, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, old = tmp_path / "c.toml", "# old\n"
    if there:
        file.write_text(old)
    made, calls, fsync = plan(file, telegram()), 0, os.fsync

    def failing(fd: int) -> None:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise OSError("no space left")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", failing)
    try:
        save(made)
    except OSError:
        new = file.exists() and file.read_text() != old
        named = [path for path in everything(tmp_path) if path.startswith("secrets")]
        assert bool(named) is new, "a secret's file stays exactly when the configuration names it"
        if not new:
            assert everything(tmp_path) == (["c.toml"] if there else [])
    else:
        assert nth > calls
    if file.exists():
        load(file, {})


_KILLED = """
import os, sys
from pathlib import Path
from tests.bridges.test_init_file import OLD, plan, telegram
from bridges.cli.setup.store import save

left = 0

def dying(real):
    def call(*args, **kwargs):
        global left
        left -= 1
        if not left:
            os._exit(9)
        return real(*args, **kwargs)
    return call

for name in ("open", "fsync", "mkdir", "link", "replace", "unlink"):
    setattr(os, name, dying(getattr(os, name)))
for nth in range(1, 100):
    file = Path(sys.argv[1], str(nth), "c.toml")
    left = 0
    file.parent.mkdir()
    if sys.argv[2] == "True":
        file.write_text(OLD)
    child = os.fork()
    if not child:
        left = nth
        save(plan(file, telegram()))
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        sys.exit(0)
sys.exit(1)
"""
OLD = "language = 'en' # old\n"


@pytest.mark.parametrize("there", [False, True])
def test_a_kill_between_any_two_steps_leaves_old_or_new(there: bool, tmp_path: Path) -> None:
    subprocess.run(  # noqa: S603 - the program above, in a process that has no threads to fork
        [sys.executable, "-c", _KILLED, str(tmp_path), str(there)],
        cwd=Path(__file__).parents[2],
        timeout=SECONDS,
        check=True,
    )
    seen = set()
    for folder in tmp_path.iterdir():
        file = folder / "c.toml"
        if file.exists():
            load(file, {})
        seen.add(file.exists() and file.read_text() != OLD)
    assert len(list(tmp_path.iterdir())) > 10
    assert seen == {False, True}


def test_two_that_write_at_once_do_not_lose_a_bot(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('language = "en"\n')
    old = Existing.read(file)
    plan = Plan(file, old, True, Language.EN, None, [Draft("weixin", "me", {})])
    with _alone(tmp_path), pytest.raises(Changed):
        save(plan)
    assert file.read_text() == 'language = "en"\n'
    save(plan)
    assert [bot.name for bot in load(file, {}).bots] == ["me"]
