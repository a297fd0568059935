"""The command ``nouncut``: one file per sub-command.

Nothing here computes. Whatever is slow to import is imported when a command needs it, so that
``nouncut --help`` answers at once.
"""

from nouncut.cli.app import app, main

__all__ = ["app", "main"]
