"""A Dockerfile as data: as much of its language as ours uses, and a refusal of the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

WORDS = {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "HEALTHCHECK", "RUN", "USER", "VOLUME", "WORKDIR"}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its word, its ``--options`` and what is left of the line."""

    word: str
    options: tuple[str, ...]
    rest: str

    def option(self, name: str) -> str | None:
        """Return the value of ``--name=…``."""
        return next((each.removeprefix(f"--{name}=") for each in self.options if each.startswith(f"--{name}=")), None)

    def command(self) -> list[str]:
        """Return the words of the exec form, ``["program", "argument"]``; the shell form is refused."""
        words: list[str] = json.loads(self.rest.removeprefix("CMD "))
        return words


@dataclass(frozen=True, slots=True)
class Stage:
    """What follows one FROM; ``base`` is its image, with arguments filled in."""

    name: str
    base: str
    instructions: Sequence[Instruction]

    def all(self, word: str) -> list[Instruction]:
        """Return the instructions of one word, in order."""
        return [each for each in self.instructions if each.word == word]

    def last(self, word: str) -> Instruction:
        """Return the one that is in force."""
        return self.all(word)[-1]

    def environment(self) -> dict[str, str]:
        """Return what ENV sets."""
        pairs = (pair.partition("=") for each in self.all("ENV") for pair in each.rest.split())
        return {name: value for name, _, value in pairs}


def parse(text: str) -> list[Stage]:
    """Return the stages, the last of which is the image."""
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    arguments: dict[str, str] = {}
    stages: list[tuple[str, str, list[Instruction]]] = []
    for each in (_instruction(line) for line in lines if line.strip()):
        if each.word == "ARG":
            name, _, value = each.rest.partition("=")
            arguments[name] = value
        elif each.word == "FROM":
            base, _, name = each.rest.partition(" AS ")
            filled = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], base)
            stages.append((name or str(len(stages)), filled, []))
        else:
            stages[-1][2].append(each)
    return [Stage(name, base, instructions) for name, base, instructions in stages]


def _instruction(line: str) -> Instruction:
    word, _, rest = line.partition(" ")
    assert word in WORDS, f"not read here: {word}"
    match = re.fullmatch(r"((?:--\S+\s+)*)(.*)", rest.strip())
    assert match
    return Instruction(word, tuple(match[1].split()), match[2])
