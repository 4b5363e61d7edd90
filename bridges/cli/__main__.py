"""``python -m bridges.cli``: the same as ``harness-im``."""

from bridges.cli import main

main(prog_name="harness-im")
