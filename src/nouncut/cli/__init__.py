"""The command ``nouncut``, one file per sub-command.

Slow imports happen inside the commands, so that ``nouncut --help`` answers at once.
"""

from nouncut.cli.app import app, main

__all__ = ["app", "main"]
