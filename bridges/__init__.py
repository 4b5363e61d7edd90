"""The outermost layer: nine channels, the terminal, and the wiring.

A channel turns platform events into messages and carries replies back; everything else of a conversation happens
once, here. Start at :mod:`bridges.message` (the vocabulary), then :mod:`bridges.intake` (the one inbound path) and
:mod:`bridges.app` (where all parts meet).
"""
