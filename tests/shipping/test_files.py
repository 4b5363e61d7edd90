"""What an operator installs from: the Dockerfile and the unit say what the program says."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path, PurePosixPath

import pytest

from bridges.cli import main
from bridges.cli.running import END_SECONDS, MISUSED, READY_SECONDS
from bridges.config import APP, VARIABLE
from harness_client.embedded import READY_WITHIN
from tests.docs.pages import ENTRIES, code, read
from tests.guards.sources import ROOT, texts
from tests.shipping.dockerfile import Stage, parse

UNIT = "scripts/systemd/harness-im.service"
LOOSEST = 20
"""Exposure that is let pass, in tenths, by systemd-analyze; the unit has 14."""


@pytest.fixture
def stages() -> list[Stage]:
    return parse(texts()["Dockerfile"])


def copied(stages: list[Stage]) -> set[str]:
    return {
        source
        for stage in stages
        for step in stage.all("COPY")
        if step.option("from") is None
        for source in step.rest.split()[:-1]
    }


def test_the_image_has_every_package_and_takes_nothing_else(stages: list[Stage]) -> None:
    include = tomllib.loads(texts()["pyproject.toml"])["tool"]["setuptools"]["packages"]["find"]["include"]
    files = {"LICENSE", "README.md", "pyproject.toml", "requirements/service.txt"}
    packages = {name.rstrip(".*").replace(".", "/") for name in include} - {"tests"} | {"tests/__init__.py"}
    assert copied(stages) == packages | files


def test_nothing_but_what_is_copied_is_sent_to_the_builder(stages: list[Stage]) -> None:
    first, *lines = [line for line in texts()[".dockerignore"].splitlines() if not line.startswith("#")]
    assert first == "*"
    assert {line.removeprefix("!") for line in lines if line.startswith("!")} == copied(stages)


def test_the_image_runs_the_program_itself_and_as_nobody_of_importance(stages: list[Stage]) -> None:
    image = stages[-1]
    user, _, group = image.last("USER").rest.partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert image.last("ENTRYPOINT").command() == ["harness-im"], "without a shell that would keep SIGTERM to itself"
    (run,) = image.last("CMD").command()
    program, health = image.last("HEALTHCHECK").command()
    assert program == "harness-im"
    assert {run, health} <= main.commands.keys()
    assert {stage.base for stage in stages} == {image.base}, "an interpreter that was built against"


def test_the_image_finds_its_configuration_and_keeps_its_state_in_the_volume(stages: list[Stage]) -> None:
    image = stages[-1]
    environment = image.environment()
    assert VARIABLE in environment
    assert str(PurePosixPath(environment["XDG_DATA_HOME"], APP)) == image.last("VOLUME").rest


def test_every_package_that_is_installed_is_pinned(stages: list[Stage]) -> None:
    installs = [step.rest for step in stages[0].all("RUN") if " install " in step.rest]
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert {"--no-deps", "--no-build-isolation"} <= set(installs[1].split())


def settings(section: str) -> dict[str, list[str]]:
    """Return the settings of a section of the unit; one may be there several times."""
    body = re.split(r"^\[(\w+)\]$", texts()[UNIT], flags=re.MULTILINE)
    found: dict[str, list[str]] = {}
    for line in body[body.index(section) + 1].splitlines():
        name, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


@pytest.mark.parametrize("page", ENTRIES.values())
def test_what_the_readmes_install_with_is_tried(page: str) -> None:
    """By ``.ci/run``, in a clone and a home of its own: no test may install from an index."""
    shown = [command for command in code(read(page)) if command.startswith(("pipx ", "uv "))]
    tried = (ROOT / ".ci" / "run").read_text("utf-8")
    assert len(shown) == 2
    for command in shown:
        assert re.search(".*".join(map(re.escape, command.split())), tried), command


def test_the_unit_knows_the_program() -> None:
    service = settings("Service")
    (start,) = service["ExecStart"]
    program, command = start.split()
    assert PurePosixPath(program).name == "harness-im"
    assert command in main.commands
    environment = dict(pair.split("=") for pair in service["Environment"][0].split())
    assert VARIABLE in environment
    assert str(PurePosixPath(environment["XDG_DATA_HOME"], APP)) == f"/var/lib/{service['StateDirectory'][0]}"
    assert service["Type"] == ["notify-reload"]
    assert float(service["WatchdogSec"][0]) >= 10
    assert float(service["TimeoutStopSec"][0]) > END_SECONDS
    assert float(service["TimeoutStartSec"][0]) > READY_WITHIN + READY_SECONDS
    assert service["RestartPreventExitStatus"] == [str(MISUSED)]


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with a program that is there."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze on this machine to judge the unit")
    file = tmp_path / "harness-im.service"
    file.write_text(texts()[UNIT].replace("/opt/harness-im/bin/harness-im", "/bin/true"))
    return file


def analyze(*arguments: str) -> tuple[int, str]:
    command = [str(shutil.which("systemd-analyze")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)  # noqa: S603 - the system's own tool
    return done.returncode, done.stdout + done.stderr


def test_systemd_takes_the_unit(unit: Path) -> None:
    code, said = analyze("verify", "--man=no", str(unit))
    # Before 253 there was no notify-reload; whatever else it says of this file is a fault.
    complaints = [line for line in said.splitlines() if unit.name in line and "ignoring: notify-reload" not in line]
    assert (code, complaints) == (0, [])


def test_the_unit_gives_the_program_little_to_break(unit: Path) -> None:
    code, said = analyze("security", "--offline=yes", f"--threshold={LOOSEST}", "--no-pager", str(unit))
    assert code == 0, said
