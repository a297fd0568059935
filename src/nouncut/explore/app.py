"""The explorer's addresses; see the functions for what each answers."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from nouncut.compute.threads import count_threads
from nouncut.errors import InputError, NouncutError, ParameterError
from nouncut.explore import pictures
from nouncut.explore.columns import label_bytes, position_bytes
from nouncut.explore.described_run import describe_run
from nouncut.explore.edits import describe_edit, read_plan
from nouncut.explore.exporting import export
from nouncut.explore.finding import explain, find_duplicates, find_like, find_suggestions, find_text
from nouncut.explore.page import read_assets, render_page
from nouncut.explore.security import Access, Guard
from nouncut.explore.session import Session, StaleError
from nouncut.report.page import run_title
from nouncut.report.script_data import file_block

Found = TypeVar("Found")
Handler = Callable[[Request], Awaitable[Response]]

_MOST_FOUND = 10_000
_BINARY = "application/octet-stream"
# Pictures stay the same while a run does; a browser asks again after this many seconds.
_PICTURE_AGE = 86_400
_PARAMETER = re.compile(r"`([a-z_]+)(?:=(?:True|\.\.\.))?`")


def make_app(session: Session, access: Access) -> Guard:
    """Return the whole application, which answers the browser with the cookie only."""
    explorer = _Explorer(session)
    routes = [
        Route("/", explorer.page),
        Route("/assets/{name}", explorer.asset),
        Route("/api/run", explorer.run),
        Route("/api/positions", explorer.positions),
        Route("/api/labels", explorer.labels),
        Route("/api/paths", explorer.paths),
        Route("/api/search", explorer.search),
        Route("/api/like", explorer.like),
        Route("/api/duplicates", explorer.duplicates),
        Route("/api/explain", explorer.explain),
        Route("/api/suggestions", explorer.suggestions),
        Route("/api/edit", explorer.edit, methods=["POST"]),
        Route("/api/export", explorer.export, methods=["POST"]),
        Route("/thumbnails/{side}/{row}", explorer.thumbnail),
        Route("/images/{row}", explorer.image),
    ]
    handlers: dict[Any, Any] = {
        NouncutError: _foreseen,
        HTTPException: _refused,
        Exception: _unforeseen,
    }
    return Guard(Starlette(routes=routes, exception_handlers=handlers), access)


class _Explorer:
    """Answers requests about one run."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._assets = read_assets()
        # More threads than cores would only make every picture wait longer.
        self._decoders = CapacityLimiter(count_threads(-1))

    async def page(self, request: Request) -> Response:
        run = (await _in_thread(self._session.view)).run
        counts = {"n_images": run.n_images, "n_all": run.whole.n_images}
        content = {"title": run_title(run), **counts}
        return HTMLResponse(render_page(content))

    async def asset(self, request: Request) -> Response:
        asset = self._assets.get(request.path_params["name"])
        if asset is None:
            raise HTTPException(404)
        return _cached(request, asset.etag, "no-cache") or Response(
            asset.content, media_type=asset.media_type, headers=_tagged(asset.etag, "no-cache")
        )

    async def run(self, request: Request) -> Response:
        def describe() -> dict[str, Any]:
            return describe_run(self._session.view(), self._session.files().folder)

        return _json(await _in_thread(describe))

    async def positions(self, request: Request) -> Response:
        found = await _in_thread(lambda: position_bytes(self._session.view().run))
        return Response(status_code=204) if found is None else Response(found, media_type=_BINARY)

    async def labels(self, request: Request) -> Response:
        view = await _in_thread(self._session.view)
        etag = f'"{view.version}"'
        if (known := _cached(request, etag, "no-cache")) is not None:
            return known
        found = await _in_thread(label_bytes, view.run)
        return Response(found, media_type=_BINARY, headers=_tagged(etag, "no-cache"))

    async def paths(self, request: Request) -> Response:
        start = _query_number(request, "start", 0)

        def block() -> list[str]:
            run = self._session.view().run
            if not 0 <= start < max(1, len(run.assignments)):
                raise InputError(f"There is no image {start}.")
            return list(file_block(run, start, self._session.files().folder)["paths"])

        return _json({"paths": await _in_thread(block)})

    async def search(self, request: Request) -> Response:
        text, n = request.query_params.get("text", ""), _count(request)
        return _json(await _in_thread(find_text, self._session, text, n))

    async def like(self, request: Request) -> Response:
        row, n = _query_number(request, "row"), _count(request)
        return _json(await _in_thread(find_like, self._session, row, n))

    async def duplicates(self, request: Request) -> Response:
        return _json(await _in_thread(find_duplicates, self._session))

    async def explain(self, request: Request) -> Response:
        row = _query_number(request, "row")
        return _json(await _in_thread(explain, self._session, row))

    async def suggestions(self, request: Request) -> Response:
        return _json(await _in_thread(find_suggestions, self._session))

    async def edit(self, request: Request) -> Response:
        wanted = await _body(request)
        return _json(await _in_thread(self._edit, wanted))

    def _edit(self, wanted: dict[str, Any]) -> dict[str, Any]:
        run = self._session.view().run
        plan, version = read_plan(wanted, run), str(wanted.get("version"))
        if wanted.get("preview"):
            return _tried(lambda: describe_edit(*self._session.preview(plan, version), version))
        after = self._session.edit(plan, version)
        return describe_edit(after.run, after.run.edits[-1], after.version)

    async def export(self, request: Request) -> Response:
        wanted = await _body(request)
        return _json(await _in_thread(self._export, wanted))

    def _export(self, wanted: dict[str, Any]) -> dict[str, Any]:
        run = self._session.view().run
        return _tried(lambda: export(run, wanted)) if wanted.get("preview") else export(run, wanted)

    async def thumbnail(self, request: Request) -> Response:
        side, row = _path_number(request, "side"), _path_number(request, "row")
        if side not in pictures.SIDES:
            raise HTTPException(404)
        return await self._picture(request, row, partial(pictures.thumbnail, side=side))

    async def image(self, request: Request) -> Response:
        return await self._picture(request, _path_number(request, "row"), pictures.picture)

    async def _picture(
        self, request: Request, row: int, make: Callable[..., pictures.Picture]
    ) -> Response:
        run = (await _in_thread(self._session.view)).run
        try:
            made = await to_thread.run_sync(lambda: make(run, row), limiter=self._decoders)
        except InputError as error:
            return _error(404, str(error))
        how_long = f"private, max-age={_PICTURE_AGE}"
        return _cached(request, made.etag, how_long) or Response(
            made.content, media_type=made.media_type, headers=_tagged(made.etag, how_long)
        )


def _tried(preview: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return a preview, or why there is none: that is an answer to the question."""
    try:
        return preview()
    except StaleError:
        raise
    except NouncutError as error:
        return {"problem": _said(error)}


async def _in_thread(work: Callable[..., Found], *arguments: Any) -> Found:
    return await to_thread.run_sync(lambda: work(*arguments))


async def _body(request: Request) -> dict[str, Any]:
    try:
        wanted = json.loads(await request.body())
    except (ValueError, RecursionError):
        wanted = None
    if not isinstance(wanted, dict):
        raise ParameterError("The request is not JSON that the explorer understands.")
    return wanted


def _json(content: Any) -> Response:
    return JSONResponse(content)


def _error(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status)


def _tagged(etag: str, how_long: str) -> dict[str, str]:
    return {"ETag": etag, "Cache-Control": how_long}


def _cached(request: Request, etag: str, how_long: str) -> Response | None:
    """Return that nothing has changed, if the browser has this version already."""
    known = [one.strip() for one in request.headers.get("if-none-match", "").split(",")]
    return Response(status_code=304, headers=_tagged(etag, how_long)) if etag in known else None


def _query_number(request: Request, name: str, default: int | None = None) -> int:
    text = request.query_params.get(name)
    if text is None and default is not None:
        return default
    number = _whole(text or "")
    if number is None:
        raise ParameterError(f"The request needs a number: {name}.")
    return number


def _count(request: Request) -> int:
    return max(1, min(_query_number(request, "n", 200), _MOST_FOUND))


def _path_number(request: Request, name: str) -> int:
    number = _whole(request.path_params[name])
    if number is None:
        raise HTTPException(404)
    return number


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _foreseen(request: Request, error: Exception) -> Response:
    return _error(409 if isinstance(error, StaleError) else 400, _said(error))


def _said(error: Exception) -> str:
    """Return a message for the page; parameters are in backticks, with Python's values."""
    return _PARAMETER.sub(r"\1", str(error))


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = error.detail
    if detail == HTTPStatus(error.status_code).phrase:
        detail = "There is nothing at this address." if error.status_code == 404 else detail
    return _error(error.status_code, detail)


def _unforeseen(request: Request, error: Exception) -> Response:
    return _error(500, "The explorer failed unexpectedly. The terminal says more.")
