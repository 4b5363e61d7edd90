"""Print every figure of the README: ``python -m tests.perf``. Five minutes; exit code 1 when one is missed."""

from __future__ import annotations

import asyncio
import sys

from tests.perf import archive, channels, feishu, history, pages, program
from tests.perf.host import serve
from tests.perf.measure import machine


async def main() -> int:
    """Measure one after the other; nothing else runs meanwhile but the fake hosts."""
    write = sys.stdout.write
    write(f"measured on {machine()}\n")
    missed = 0
    async with serve() as hosts:
        for part in (
            await history.figures(hosts.dialogues),
            await pages.figures(hosts.big),
            [program.start_to_help(), *await program.memory_of_chat(hosts.dialogues)],
            await channels.figures(hosts.dialogues),
            await feishu.figures(),
        ):
            for figure in part:
                write(f"{figure}\n")
                missed += figure.value > figure.reach
    figures, table = await asyncio.to_thread(archive.figures)
    write("\n".join([*map(str, figures), *table, ""]))
    missed += sum(figure.value > figure.reach for figure in figures)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
