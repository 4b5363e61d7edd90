"""``harness-im smoke``: the acceptance of ``/history`` (spec HISTORY 8) for the operator.

:mod:`.lines` is the vocabulary of the report, :mod:`.record` what is known so far, :mod:`.report` how it is told.
:mod:`.simulated` runs on the fakes that ship with the program, :mod:`.live` walks the operator through real bots.
Neither creates a session on a real host, nor calls a model, nor changes what the bots keep.
"""
