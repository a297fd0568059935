"""Who may talk to the explorer: only the browser that opened the address with the token.

Other pages in the same browser, other programs and other machines are refused: by the Host header
(DNS rebinding), the cookie, and the Origin of requests that change something.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Row numbers of two million images.
MOST_BODY_BYTES = 16 * 2**20

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_READING = ("GET", "HEAD")
_OPEN_THE_ADDRESS = "Open the address that nouncut explore printed in the terminal."


class Access:
    """The one-time token in the printed address, and the cookie that it is exchanged for.

    `on_used` is called with a new address if somebody opens one that was used before.
    """

    def __init__(self, port: int, on_used: Callable[[str], None] = lambda address: None) -> None:
        self.port = port
        self.cookie_name = f"nouncut-{port}"
        self.cookie = secrets.token_urlsafe(32)
        self._on_used = on_used
        self._token, self._used_token = secrets.token_urlsafe(32), ""

    @property
    def address(self) -> str:
        """The address that opens the explorer once."""
        return f"http://127.0.0.1:{self.port}/?token={self._token}"

    def take(self, token: str) -> bool:
        """Return whether a token opens the explorer; it does so once."""
        if _are_equal(token, self._token):
            self._used_token, self._token = self._token, secrets.token_urlsafe(32)
            return True
        if _are_equal(token, self._used_token):
            self._used_token = ""
            self._on_used(self.address)
        return False

    def has_cookie(self, headers: Headers) -> bool:
        """Return whether a request carries the cookie."""
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            return False
        found = cookies.get(self.cookie_name)
        return found is not None and _are_equal(found.value, self.cookie)


class Guard:
    """ASGI middleware that refuses all requests but those of the explorer's own page."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access
        names = ("127.0.0.1", "localhost", "[::1]")
        self._hosts = {f"{name}:{access.port}" for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have the app answer it."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if refusal is not None:
            await refusal(scope, receive, send_guarded)
        else:
            await self._app(scope, _limited(receive), send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that the app must not see; None if it may."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _refused(
                scope, 403, f"This is not an address of the explorer. {_OPEN_THE_ADDRESS}"
            )
        is_page = scope["path"] == "/"
        site = headers.get("sec-fetch-site", "same-origin")
        # Links may lead to the page; everything else is asked for by the page itself.
        if site not in ("same-origin", "none") and not (is_page and scope["method"] in _READING):
            return _refused(scope, 403, "Another page must not use the explorer.")
        if is_page and scope["method"] in _READING and scope["query_string"]:
            entered = self._entered(scope, headers)
            if entered is not None:
                return entered
        if not self._access.has_cookie(headers):
            return _refused(
                scope, 403, f"This browser may not use the explorer. {_OPEN_THE_ADDRESS}"
            )
        return None if scope["method"] in _READING else self._write_refusal(scope, headers)

    def _entered(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the answer to an address with a token; None if it has none."""
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if not tokens:
            return None
        access = self._access
        if access.has_cookie(headers):
            return RedirectResponse("/", 303)
        if not access.take(tokens[0]):
            return _refused(
                scope,
                403,
                "This address is wrong, or it was used before. Open the last address that nouncut "
                "explore printed in the terminal.",
            )
        response = RedirectResponse("/", 303)
        response.set_cookie(access.cookie_name, access.cookie, httponly=True, samesite="strict")
        return response

    def _write_refusal(self, scope: Scope, headers: Headers) -> Response | None:
        origins = headers.getlist("origin")
        if origins != [f"http://{headers['host'].lower()}"]:
            return _refused(scope, 403, "Another page must not change anything.")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _refused(scope, 415, "The explorer takes JSON only.")
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length) > MOST_BODY_BYTES:
            return _refused(scope, 413, "The request is too long.")
        return None


def _limited(receive: Receive) -> Receive:
    """Return `receive` for bodies up to the limit; some do not tell their length beforehand."""
    n_bytes = 0

    async def limited() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > MOST_BODY_BYTES:
            raise HTTPException(413, "The request is too long.")
        return message

    return limited


def _refused(scope: Scope, status: int, why: str) -> Response:
    if scope["path"] == "/":
        return PlainTextResponse(f"{why}\n", status)
    return JSONResponse({"error": why}, status)


def _are_equal(found: str, expected: str) -> bool:
    """Compare secrets in the same time wherever they differ; nothing equals an empty one."""
    return bool(expected) and secrets.compare_digest(found.encode(), expected.encode())
