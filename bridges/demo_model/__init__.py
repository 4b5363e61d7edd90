"""A model server for whoever has no model: answers on loopback, echoes, and says that it is a demo.

It lives in this layer because it speaks to people, and their words are in :mod:`i18n`. Start at
:mod:`bridges.demo_model.server`; :mod:`bridges.demo_model.script` says how a prompt scripts it.
"""

from bridges.demo_model.script import Step, Tool
from bridges.demo_model.server import DemoModel

__all__ = ["DemoModel", "Step", "Tool"]
