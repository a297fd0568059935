"""A hub on this machine: repositories in a folder, served as the hub's client expects them.

Run by path from conftest.py.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class _Hub(BaseHTTPRequestHandler):
    """Answers for the repositories in `root` and notes what it was asked for."""

    root: Path
    downloaded: list[str]
    is_broken = False

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def _answer(self, with_body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(/revision/[^/]+|/tree/.+)?", path):
            self._describe(self.root / found[1], is_tree="tree" in (found[2] or ""))
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
            self._send_file(self.root / found[1] / found[2], with_body)
        else:
            self._send(404, b"", with_body)

    def _describe(self, folder: Path, is_tree: bool) -> None:
        if not folder.is_dir():
            self._send(404, b"", True, {"X-Error-Code": "RepoNotFound"})
            return
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        names = [(path.relative_to(folder).as_posix(), path.stat().st_size) for path in files]
        if is_tree:
            answer: object = [
                {"type": "file", "path": name, "size": size, "oid": "0" * 40}
                for name, size in names
            ]
        else:
            siblings = [{"rfilename": name, "size": size} for name, size in names]
            answer = {"id": folder.name, "sha": COMMIT, "siblings": siblings}
        self._send(200, json.dumps(answer).encode(), True, {"Content-Type": "application/json"})

    def _send_file(self, path: Path, with_body: bool) -> None:
        if self.is_broken and with_body:
            self._send(500, b"", with_body)
        elif path.is_file():
            data = path.read_bytes()
            if with_body:
                self.downloaded.append(path.relative_to(self.root).as_posix())
            etag = hashlib.sha256(data).hexdigest()
            self._send(200, data, with_body, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})
        else:
            self._send(404, b"", with_body, {"X-Error-Code": "EntryNotFound"})

    def _send(
        self, status: int, data: bytes, with_body: bool, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(data)


@contextmanager
def serve(root: Path) -> Iterator[SimpleNamespace]:
    """Serve repositories; `downloaded` lists the files that were sent."""
    root.mkdir(parents=True, exist_ok=True)
    handler = type("Hub", (_Hub,), {"root": root, "downloaded": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        yield SimpleNamespace(root=root, address=address, handler=handler)
        server.shutdown()
        thread.join()
