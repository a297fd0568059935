"""Nobody but the page of the explorer can use it."""

from __future__ import annotations

import json
import socket

import pytest

from nouncut.explore.security import MOST_BODY_BYTES
from nouncut.runs.edit_log import EDITS
from nouncut.runs.run import open_run

ADDRESSES = (
    *("/", "/assets/base.css", "/api/run", "/api/labels", "/api/positions", "/api/paths?start=0"),
    *("/api/search?text=dog", "/api/like?row=0", "/api/duplicates", "/api/explain?row=0"),
    *("/api/suggestions", "/thumbnails/96/0", "/images/0"),
)
RENAME = {"verb": "rename", "group": 0, "name": "mine"}


def test_every_address_answers_its_page(client):
    for address in ADDRESSES:
        assert client.get(address).status == 200, address


@pytest.mark.parametrize("address", ADDRESSES)
def test_without_the_cookie_nothing_is_told(served, address):
    for cookie in ("", "nouncut-1=x", f"{served.access.cookie_name}=wrong", "=;;\x7f", "é"):
        found = served.stranger.get(address, Cookie=cookie)
        assert found.status == 403
        assert served.run.names[0].encode() not in found.body


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost"),
        *("localhost.evil.example:{port}", "127.0.0.1:{port}.evil.example", "0.0.0.0:{port}"),
        *("127.0.0.1:{port}@evil.example", "", "[::2]:{port}", "2130706433:{port}"),
    ],
)
def test_other_hosts_are_refused(served, host):
    """A page whose name was bound to this machine (DNS rebinding) has the name in its requests."""
    host = host.format(port=served.port)
    for client in (served.client, served.stranger):
        assert client.get("/api/run", Host=host).status in (400, 403)
        found = client.get(f"/?token={served.token}", Host=host)
        assert found.status in (400, 403)
        assert "set-cookie" not in found.headers


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_names_of_this_machine_are_hosts(served, name):
    assert served.client.get("/api/run", Host=f"{name}:{served.port}").status == 200


def test_a_token_opens_the_explorer_once(served):
    wrong = served.stranger.get("/?token=wrong")
    assert (wrong.status, served.addresses) == (403, [])
    token = served.token
    found = served.stranger.get(f"/?token={token}")
    assert (found.status, found.headers["location"], found.body) == (303, "/", b"")
    cookie = found.headers["set-cookie"]
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert served.stranger.get("/", Cookie=cookie.split(";")[0]).status == 200
    # Another browser with the same address: it is refused, and the person gets a new one.
    again = served.stranger.get(f"/?token={token}")
    assert again.status == 403
    assert "set-cookie" not in again.headers
    assert served.addresses == [served.access.address]
    assert token not in served.access.address
    # Who has the cookie may use the address again.
    assert served.client.get(f"/?token={token}").status == 303
    assert served.stranger.get(f"/?token={token}").status == 403
    assert len(served.addresses) == 1


def test_tokens_are_taken_at_the_page_only(served):
    for address in (f"/api/run?token={served.token}", f"/assets/base.css?token={served.token}"):
        found = served.stranger.get(address)
        assert found.status == 403
        assert "set-cookie" not in found.headers
    assert served.stranger.post(f"/?token={served.token}", {}).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://localhost:{port}"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Cookie": None},
    ],
)
def test_other_pages_change_nothing(served, client, headers):
    headers = {name: value and value.format(port=served.port) for name, value in headers.items()}
    body = RENAME | {"version": client.version}
    for address in ("/api/edit", "/api/export"):
        assert client.post(address, body, **headers).status == 403
    assert not (served.run.directory / EDITS).exists()
    assert not (served.run.directory / "exports").exists()


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_forms_change_nothing(served, client, kind):
    body = RENAME | {"version": client.version}
    assert client.post("/api/edit", body, Content_Type=kind).status == 415
    assert not (served.run.directory / EDITS).exists()


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_pages_read_nothing(client, site):
    for address in ADDRESSES[1:]:
        assert client.get(address, Sec_Fetch_Site=site).status == 403
    assert client.get("/", Sec_Fetch_Site=site).status == 200  # a link


def test_reading_changes_nothing(served, client):
    before = {path: path.stat().st_mtime_ns for path in served.run.directory.rglob("*")}
    for address in ("/api/edit", "/api/export"):
        for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"):
            origin = f"http://127.0.0.1:{served.port}"
            found = client.send(method, address, Origin=origin, Content_Type="application/json")
            assert found.status == 405
    for address in ADDRESSES[:-2]:
        client.get(address)
    assert {path: path.stat().st_mtime_ns for path in served.run.directory.rglob("*")} == before


def first_line(served, client, header, *blocks):
    """Post the blocks with one more header; the server must have read all when it answers."""
    head = (
        f"POST /api/edit HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
        f"Origin: http://127.0.0.1:{served.port}\r\nCookie: {client.cookie}\r\n"
        f"Content-Type: application/json\r\n{header}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        for block in (head.encode(), *blocks):
            connection.sendall(block)
        return connection.recv(4096).split(b"\r\n")[0]


@pytest.mark.parametrize("length", [MOST_BODY_BYTES + 1, 10**15])
def test_bodies_are_limited(served, client, length):
    assert b" 413 " in first_line(served, client, f"Content-Length: {length}")


@pytest.mark.parametrize("length", ["1e9", "-1", "2, 3", "9" * 30])
def test_lengths_that_are_no_number_are_refused(served, client, length):
    assert b" 400 " in first_line(served, client, f"Content-Length: {length}")


def test_bodies_of_unknown_length_are_limited(served, client):
    blocks = [b"100000\r\n" + b" " * 0x100000 + b"\r\n"] * (MOST_BODY_BYTES // 0x100000)
    line = first_line(served, client, "Transfer-Encoding: chunked", *blocks, b"1\r\n \r\n")
    assert b" 413 " in line


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b'"x"'])
def test_what_is_no_request_is_refused(client, body):
    for address in ("/api/edit", "/api/export"):
        found = client.post(address, body)
        assert found.status == 400
        assert found.json["error"]


@pytest.mark.parametrize(
    "address",
    [
        *("/assets/..%2fpage.py", "/assets/../page.py", "/assets/%2e%2e/page.py", "/assets/"),
        *("/assets/..%5cpage.py", "/assets/base.css%00", "/assets//etc/passwd", "/assets/x.js"),
        *("/thumbnails/96/..%2f..%2fmanifest.json", "/thumbnails/..%2f96/0", "/thumbnails/97/0"),
        *("/thumbnails/96/0%2f..%2f..", "/thumbnails/96/", "/thumbnails/96/0.webp"),
        *("/images/..%2f..%2fmanifest.json", "/images/%2fetc%2fpasswd", "/images/0%00"),
        *("/images/-1", "/images/24", "/images/1e1", "/images/99999999999999999999", "/images/x"),
        *("/images/٣", "/images/0x1", "/images/ 1", "/thumbnails/96/-1", "/thumbnails/96/24"),
        *("/api", "/api/", "/manifest.json", "/run/manifest.json", "//etc/passwd", "/.env"),
    ],
)
def test_there_is_nothing_but_the_addresses(client, address):
    address = address.replace(" ", "%20").replace("٣", "%D9%A3")
    found = client.get(address)
    assert found.status == 404
    assert "error" in found.json


@pytest.mark.parametrize("row", ["-1", "24", "x", "", "9" * 30, "1.5", "NaN"])
def test_rows_that_do_not_exist_are_refused(client, row):
    for address in ("/api/like?row=", "/api/explain?row=", "/api/paths?start="):
        found = client.get(address + row)
        assert found.status == 400, address
        assert found.json["error"]


def test_answers_forbid_everything_else(client):
    for address in (*ADDRESSES, "/nothing", "/api/like?row=x"):
        found = client.get(address).headers
        policy = found["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert found["x-content-type-options"] == "nosniff"
        assert found["referrer-policy"] == "no-referrer"
        assert found["cross-origin-opener-policy"] == "same-origin"
        assert found["cross-origin-resource-policy"] == "same-origin"
        assert not any(name.startswith("access-control") for name in found)
        assert "server" not in found
        assert "cache-control" in found


def test_names_with_scripts_are_text(served, client):
    assert "<script>" in str(served.run.paths()[0].parent)
    page = client.get("/").body.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    for address in ("/api/run", "/api/paths"):
        found = client.get(address)
        assert found.headers["content-type"] == "application/json"
        assert "alert" in json.dumps(found.json)


def test_only_this_machine_can_connect(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=10):
        pass
    # A server on all interfaces would answer at all loopback addresses of Linux.
    with (
        pytest.raises(ConnectionRefusedError),
        socket.create_connection(("127.0.0.2", served.port), timeout=10),
    ):
        pass


def test_unforeseen_failures_say_nothing_about_the_machine(served, client, monkeypatch):
    from nouncut.explore import app

    def fail(run):
        raise RuntimeError(f"secret {run.directory}")

    monkeypatch.setattr(app, "label_bytes", fail)
    found = client.get("/api/labels")
    assert found.status == 500
    assert "secret" not in found.body.decode()
    assert "Traceback" not in found.body.decode()


def test_the_run_is_as_it_was(served):
    assert open_run(served.run.directory).edits == ()
