"""An S3 server on loopback for the tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

KEYS = {"key": "tester", "secret": "secret"}


@contextmanager
def s3_server() -> Iterator[dict[str, Any]]:
    """Start a server; return what fsspec needs to use it."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield KEYS | {"endpoint_url": f"http://{host}:{port}"}
    finally:
        server.stop()


def refuse(options: dict[str, Any], after: str) -> None:
    """Let the server refuse unknown keys after a number of requests; "inf" for never."""
    address = f"{options['endpoint_url']}/moto-api/reset-auth"
    headers = {"Content-Type": "application/octet-stream"}
    urlopen(Request(address, data=after.encode(), method="POST", headers=headers)).read()
