"""The wheel, installed by itself: it brings the simulated platforms, and the acceptance runs from it alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from bridges.cli.smoking.lines import CHANNELS, Item
from tests.guards.sources import ROOT

pytestmark = pytest.mark.timeout(600)


def do(*command: str | Path, folder: Path, code: int = 0) -> str:
    """Run a command far from the source, with nothing of ours on its path; return what it printed."""
    variables = {"HOME": str(folder), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "PIP_NO_INDEX": "1"}
    # A bound of its own: what hangs must not outlive the test.
    done = subprocess.run(  # noqa: S603 - the test's own commands
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the sources: a build writes beside them."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info"))
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet")
    do(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source, folder=folder)
    (made,) = folder.glob("harness_im-*.whl")
    return made


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install it in an environment of its own, where the packages of this one are found as well."""
    place = tmp_path_factory.mktemp("installed")
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    site = Path(do(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=place).strip())
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "--quiet")
    do(*pip, "--no-deps", wheel, folder=place)
    # As a folder only: the lines of its own .pth files, the one of our sources among them, are not run.
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place / "bin" / "harness-im"


def test_it_holds_the_fakes_and_the_table_once_and_no_other_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [Path(name) for name in archive.namelist() if name.startswith("tests/")]
    parts = (ROOT / "tests" / part for part in ("contract", "fakes"))
    assert set(names) == {path.relative_to(ROOT) for part in parts for path in part.rglob("*.py")}
    assert len(names) == len(set(names))


def test_the_acceptance_runs_from_it_on_all_nine_channels(program: Path, tmp_path: Path) -> None:
    where = do(
        program.with_name("python"),
        "-c",
        "import bridges, tests.contract as shipped; print(bridges.__file__, shipped.__file__)",
        folder=tmp_path,
    )
    assert str(ROOT) not in where
    out = do(program, "smoke", "--simulated", "--language", "en", "--report", tmp_path / "report", folder=tmp_path)
    (file,) = (tmp_path / "report").glob("*.json")
    lines = [line for line in json.loads(file.read_text("utf-8"))["lines"] if line["marked"] == "simulated"]
    assert {(line["channel"], line["item"]) for line in lines} == {
        (name, item) for name in CHANNELS for item in Item if item is not Item.CONNECT
    }
    assert {line["why"] for line in lines if line["result"] != "pass"} <= {"platform"}
    assert sum(line["result"] == "pass" for line in lines) > len(CHANNELS) * 13
    assert str(file.with_suffix(".md")) in out


def test_without_an_sdk_its_channel_is_listed_as_not_done(program: Path, tmp_path: Path) -> None:
    (site,) = (program.parents[1] / "lib").glob("python*/site-packages")
    (site / "without.pth").write_text("import sys; sys.modules['telegram'] = None\n")
    try:
        options = ("--channel", "telegram", "--channel", "wecom", "--language", "en", "--report", tmp_path / "report")
        out = do(program, "smoke", "--simulated", *options, folder=tmp_path, code=3)
    finally:
        (site / "without.pth").unlink()
    assert f"telegram: 0 passed, 0 failed, {len(Item) - 1} not done" in out
    assert "the platform's SDK is not installed" in out
    assert "wecom: 15 passed" in out
