"""The command ``nouncut``, one file per sub-command.

Slow imports happen inside the commands, so that ``nouncut --help`` answers at once.
"""

import sys
from typing import NoReturn

from nouncut.compute.memory import free_address_space, is_memory_error
from nouncut.errors import LowMemoryError

__all__ = ["main"]

# Address space of the libraries of a run on two cores. With less, some of them end the process
# without an exception.
_LIBRARIES = 1.2e9


def main() -> None:
    """Run the command, unless its libraries do not fit into the memory that it may use."""
    try:
        space = free_address_space()
        if space is not None and space < _LIBRARIES:
            _refuse(f"needs at least {_LIBRARIES / 1e9} GB, but may use only {space / 1e9:.2f} GB")
        from nouncut.cli.app import main as run
    except (ImportError, MemoryError) as error:
        if not is_memory_error(error):
            raise
        _refuse("has too little memory to start")
    run()


def _refuse(why: str) -> NoReturn:
    remedy = "Raise the limit on its memory, for instance with: ulimit -v unlimited"
    sys.stderr.write(f"nouncut: This process {why}. {remedy}\n")
    raise SystemExit(LowMemoryError.exit_code)
