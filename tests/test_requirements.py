"""The pinned packages: enough for pyproject.toml, each with its hashes, from no named place."""

from __future__ import annotations

import re
import tomllib
from typing import get_args

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from bridges.config import AnyBot
from tests.guards.sources import texts

PROJECT = tomllib.loads(texts()["pyproject.toml"])
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
RUN = [*PROJECT["project"]["dependencies"], *EXTRAS["embedded"], *PROJECT["build-system"]["requires"]]
SERVICE = [*PROJECT["project"]["dependencies"], *EXTRAS["mcp"], *PROJECT["build-system"]["requires"]]
SERVICE += [line for name, lines in EXTRAS.items() if name in EXTRAS["channels"][0] for line in lines]
ALL = [*RUN, *(line for lines in EXTRAS.values() for line in lines), *PROJECT["dependency-groups"]["dev"]]


def pins(name: str) -> dict[str, set[Version]]:
    """Versions by package; more than one where markers tell platforms apart."""
    found: dict[str, set[Version]] = {}
    for line in re.sub(r"\\\n", "", texts()[f"requirements/{name}.txt"]).splitlines():
        requirement = Requirement(line.split("--hash", maxsplit=1)[0].strip())
        (specifier,) = requirement.specifier
        assert specifier.operator == "=="
        assert re.findall(r"--hash=sha256:[0-9a-f]{64}\b", line), line
        found.setdefault(canonicalize_name(requirement.name), set()).add(Version(specifier.version))
    return found


@pytest.mark.parametrize(("name", "needed"), [("run", RUN), ("service", SERVICE), ("all", ALL)])
def test_pins_satisfy_the_project(name: str, needed: list[str]) -> None:
    pinned = pins(name)
    for requirement in map(Requirement, needed):
        if requirement.name == PROJECT["project"]["name"]:
            continue
        versions = pinned[canonicalize_name(requirement.name)]
        assert all(requirement.specifier.contains(version) for version in versions), requirement


def test_all_sets_agree() -> None:
    run, service, everything = pins("run"), pins("service"), pins("all")
    assert run.items() <= everything.items()
    assert service.items() <= everything.items()


def test_no_channel_is_missing_from_the_extra_of_all_channels() -> None:
    tables = {union.__struct_config__.tag for union in get_args(AnyBot)}
    assert {name for name in tables if name in EXTRAS} == set(
        re.findall(r"\w+", EXTRAS["channels"][0].partition("[")[2])
    )


def test_a_service_brings_no_tool_of_the_tests_and_no_host() -> None:
    service = pins("service")
    others = [*PROJECT["dependency-groups"]["dev"], *EXTRAS["embedded"]]
    assert not [each for each in map(Requirement, others) if canonicalize_name(each.name) in service]


@pytest.mark.parametrize("name", ["run", "service", "all"])
def test_pins_name_no_place_to_fetch_from(name: str) -> None:
    assert not re.search(r"://|^\s*-", texts()[f"requirements/{name}.txt"].replace("--hash", ""), re.MULTILINE)
