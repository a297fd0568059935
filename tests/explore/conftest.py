from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from nouncut.explore.security import Access
from nouncut.explore.serve import listen, make_server
from nouncut.explore.session import Session
from nouncut.runs.run import Run


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Talks to a real server over a socket, with any headers."""

    def __init__(self, port: int, cookie: str = "") -> None:
        self.port, self.cookie = port, cookie

    def send(self, method: str, path: str, body: Any = None, **headers: str | None) -> Answer:
        """Send a request; None leaves a header out, and names have underscores."""
        known = {"Cookie": self.cookie or None}
        if method == "POST":
            known |= {
                "Origin": f"http://127.0.0.1:{self.port}",
                "Content-Type": "application/json",
            }
            body = body if isinstance(body, bytes) else json.dumps(body)
        known |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host="Host" in known)
        for name, value in known.items():
            if value is not None:
                connection.putheader(name, value)
        if body is not None:
            body = body.encode() if isinstance(body, str) else body
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, content)

    def get(self, path: str, **headers: str | None) -> Answer:
        return self.send("GET", path, **headers)

    def post(self, path: str, body: Any, **headers: str | None) -> Answer:
        return self.send("POST", path, body, **headers)

    @property
    def version(self) -> str:
        return str(self.get("/api/run").json["version"])

    def edit(self, **fields: Any) -> Answer:
        return self.post("/api/edit", {"version": self.version} | fields)


class Served(NamedTuple):
    run: Run
    port: int
    access: Access
    addresses: list[str]

    @property
    def token(self) -> str:
        return urlsplit(self.access.address).query.removeprefix("token=")

    @property
    def stranger(self) -> Client:
        return Client(self.port)

    @property
    def client(self) -> Client:
        return Client(self.port, f"{self.access.cookie_name}={self.access.cookie}")


@contextmanager
def serving(run: Run) -> Iterator[Served]:
    addresses: list[str] = []
    with listen(0) as socket:
        access = Access(socket.getsockname()[1], addresses.append)
        server = make_server(Session(run.directory), access)
        # On a slow machine, what is cut off would leave a transport open.
        server.config.timeout_graceful_shutdown = 60
        thread = Thread(target=server.run, kwargs={"sockets": [socket]})
        thread.start()
        try:
            yield Served(run, access.port, access, addresses)
        finally:
            server.should_exit = True
            thread.join(120)
            assert not thread.is_alive()


@pytest.fixture(scope="session")
def serve():
    return serving


@pytest.fixture(scope="module")
def served(make_run, tmp_path_factory) -> Iterator[Served]:
    """Serve one small run to all tests of a module."""
    folder: Path = tmp_path_factory.mktemp("explored")
    with serving(make_run(folder / "run", photos=folder / "<script>alert(1)")) as found:
        yield found


@pytest.fixture
def client(served) -> Client:
    return served.client
