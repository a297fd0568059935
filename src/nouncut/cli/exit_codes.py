"""How the command ends: exit codes, and errors in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from nouncut.compute.memory import is_memory_error
from nouncut.errors import LowMemoryError, NouncutError, describe_error
from nouncut.runs.settings import declarations

INTERRUPTED = 130
HELP = (
    "Exit codes: 0 done; 1 failed unexpectedly; 2 an option is wrong; 3 the input cannot be used "
    "(no images, no such file, no run); 4 the model cannot be had; 5 the output cannot be written "
    "(no room, no permission, another run at work); 6 too little memory; 130 interrupted."
)
_MORE_MEMORY = (
    "Close other programs, raise the limit of the process (ulimit -v unlimited) or of its "
    "container, or take fewer images."
)
# Parameters that have another name on the command line.
_OTHER_FLAGS = {"program": "--for", "file_names": "--without-names", "groups": "--group"}
_PARAMETER = re.compile(r"`([a-z_]+)(?:=(?:True|\.\.\.))?`")


def for_command_line(message: str) -> str:
    """Replace parameters in backticks by options."""
    flags = {name: declaration.flags[0] for name, declaration in declarations().items()}
    flags |= _OTHER_FLAGS
    return _PARAMETER.sub(
        lambda found: flags.get(found[1], "--" + found[1].replace("_", "-")), message
    )


@contextmanager
def explained_errors(resume: str | None = None) -> Iterator[None]:
    """Turn foreseen errors into a sentence and an exit code; others keep their traceback."""
    from nouncut.cli.console import complain

    try:
        yield
    except KeyboardInterrupt:
        complain("Interrupted." if resume is None else f"Interrupted. {resume}")
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        is_short = _is_short_of_memory(error)
        if not isinstance(error, NouncutError) and not is_short:
            raise
        known = error if isinstance(error, NouncutError) else None
        if known is None or (is_short and not isinstance(known, LowMemoryError)):
            known = LowMemoryError(f"Not enough memory ({describe_error(error)}). {_MORE_MEMORY}")
        complain(for_command_line(str(known)))
        raise SystemExit(known.exit_code) from error


def _is_short_of_memory(error: BaseException | None) -> bool:
    """Tell whether an error, or what caused it, is that there is no memory left."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if is_memory_error(error):
            return True
        seen.append(error)
        error = error.__cause__
    return False
