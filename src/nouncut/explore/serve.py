"""The server: on this machine's loopback address only, until Ctrl+C."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread

import uvicorn

from nouncut.errors import OutputError, describe_error
from nouncut.explore.app import make_app
from nouncut.explore.security import Access
from nouncut.explore.session import Session

_LOOPBACK = "127.0.0.1"
# Requests that are under way get this many seconds to end.
_PATIENCE = 2
# A browser keeps its connections while a person looks at pictures.
_KEPT_ALIVE = 60


def serve_run(
    directory: Path, port: int = 0, *, browser: bool = True, say: Callable[[str], None] = print
) -> None:
    """Serve a run until the user presses Ctrl+C; port 0 is a free one."""
    session = Session(directory)
    with listen(port) as listening:
        access = Access(
            listening.getsockname()[1],
            lambda address: say(f"The address before was used already. A new one: {address}"),
        )
        server = make_server(session, access)
        session.warm_up()
        say(f"Open {access.address}")
        say("Nothing leaves this machine. Press Ctrl+C to stop.")
        if browser:
            # The socket listens already, so the browser waits until the server answers.
            Thread(target=webbrowser.open, args=(access.address,), daemon=True).start()
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listening])


def make_server(session: Session, access: Access) -> uvicorn.Server:
    """Return a server of a run."""
    config = uvicorn.Config(
        make_app(session, access),
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEPT_ALIVE,
        timeout_graceful_shutdown=_PATIENCE,
    )
    return uvicorn.Server(config)


def listen(port: int) -> socket.socket:
    """Return a socket that listens on this machine only; port 0 is a free one."""
    # With the protocol named, asyncio sends small answers at once (TCP_NODELAY).
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((_LOOPBACK, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise OutputError(
            f"The explorer cannot use port {port} ({describe_error(error)}). Choose another "
            "`port`, or leave it out to get a free one."
        ) from error
    return listening
