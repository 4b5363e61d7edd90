"""The steps of the Dockerfile without a container runtime: one bubblewrap sandbox a step, on this machine's system.

A stage is a folder that is the root of its sandboxes. The base image is what this machine has: ``/usr`` is its own,
readable only, and ``/usr/local`` a fresh environment with pip of the Python that runs here. Needs root, to give files
to the user of the image.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.shipping.dockerfile import Instruction, Stage

BASE_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
TO_PACKAGES = ("PIP_CERT", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "SSL_CERT_FILE", "HTTP_PROXY", "HTTPS_PROXY")
"""What a step may know of how this machine reaches packages."""


class Sandbox:
    """The steps of one stage, run in ``root``; ``stages`` are the ones before it, ``context`` is what COPY copies."""

    def __init__(self, stage: Stage, root: Path, context: Path, stages: Mapping[str, Path], cache: Path) -> None:
        self.root = root
        self._stage = stage
        self._context = context
        self._stages = stages
        self._cache = cache
        self._local = root.with_name(f"{root.name}-usr-local")
        self._folder = "/"

    def build(self) -> None:
        """Run the steps; raises CalledProcessError for one that fails."""
        for name in ("etc", "opt", "root", "tmp", "usr", "var/lib", "proc", "dev"):
            (self.root / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            if Path("/", name).exists():
                (self.root / name).symlink_to(f"usr/{name}")
        shutil.copytree("/etc", self.root / "etc", symlinks=True, dirs_exist_ok=True)
        (self.root / sys.base_prefix.lstrip("/")).mkdir(parents=True, exist_ok=True)
        self._local.mkdir()
        # Made in its place, which its scripts name.
        self._run(Instruction("RUN", (), f"{sys.base_prefix}/bin/python3 -m venv /usr/local"))
        for step in self._stage.instructions:
            self._do(step)

    def _do(self, step: Instruction) -> None:
        match step.word:
            case "WORKDIR":
                self._folder = step.rest
                self._inside(step.rest).mkdir(parents=True, exist_ok=True)
            case "RUN":
                print(f"-- {self._stage.name}: {step.rest}", flush=True)
                self._run(step)
            case "COPY":
                *sources, target = step.rest.split()
                origin = step.option("from")
                for source in sources:
                    self._copy(self._stages[origin] / source.lstrip("/") if origin else self._context / source, target)

    def _run(self, step: Instruction) -> None:
        environ = {name: value for name, value in os.environ.items() if name in TO_PACKAGES}
        binds: list[str] = []
        if mount := step.option("mount"):
            target = dict(pair.split("=") for pair in mount.split(","))["target"]
            self._inside(target).mkdir(parents=True, exist_ok=True)
            binds = ["--bind", str(self._cache), target]
        command = ["sh", "-ec", step.rest]
        environ |= {"PATH": BASE_PATH, "HOME": "/root", "PIP_ROOT_USER_ACTION": "ignore", "PIP_QUIET": "1"}
        subprocess.run(self._around(command, environ, "--bind", binds), check=True, timeout=900)  # noqa: S603 - our own steps

    def _copy(self, source: Path, target: str) -> None:
        place = self._inside(os.path.join(self._folder, target))  # noqa: PTH118 - a path of the sandbox, not of ours
        if source.is_dir():
            shutil.copytree(source, place, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        elif target.endswith("/") or target == ".":
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)
        else:
            shutil.copy2(source, place)

    def _inside(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def _around(self, command: Sequence[str], environ: Mapping[str, str], root: str, binds: Sequence[str]) -> list[str]:
        return [
            *("bwrap", "--die-with-parent", "--unshare-pid", "--as-pid-1", "--unshare-ipc", "--unshare-uts"),
            *(root, str(self.root), "/", "--ro-bind", "/usr", "/usr", root, str(self._local), "/usr/local"),
            *("--ro-bind", sys.base_prefix, sys.base_prefix, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),  # noqa: S108 - the sandbox's own
            *binds,
            *("--chdir", self._folder, "--clearenv"),
            *(word for name, value in environ.items() for word in ("--setenv", name, value)),
            *command,
        ]

    def command(self, words: Sequence[str], mounts: Mapping[str, Path], *, information: int | None = None) -> list[str]:
        """Return how to run ``words`` as the image would: its user without any right, a root that nobody can write to.

        ``mounts`` are folders from outside, writable as far as their owner is the user.
        """
        user, _, group = self._stage.last("USER").rest.partition(":")
        rights = (
            f"setpriv --reuid {user} --regid {group} --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all"
        )
        environ = self._stage.environment() | {"HOME": self._folder}
        binds = [word for place, folder in mounts.items() for word in ("--bind", str(folder), place)]
        told = [] if information is None else ["--info-fd", str(information)]
        around = self._around([*shlex.split(rights), *words], environ, "--ro-bind", [*binds])
        return [around[0], *told, *around[1:]]


def start(sandbox: Sandbox, words: Sequence[str], mounts: Mapping[str, Path]) -> tuple[subprocess.Popen[str], int]:
    """Start the entry point; return the sandbox's process, and the pid of the program, which is 1 inside."""
    read, write = os.pipe()
    with os.fdopen(read) as information:
        child = subprocess.Popen(  # noqa: S603 - our own image
            sandbox.command(words, mounts, information=write), pass_fds=(write,), stdout=subprocess.PIPE, text=True
        )
        os.close(write)
        pid: int = json.loads("".join(iter(lambda: information.read(1), "}")) + "}")["child-pid"]
    return child, pid


def stop(pid: int) -> None:
    """Do what a container runtime does first."""
    os.kill(pid, signal.SIGTERM)
