"""The application: the page, its files, and one POST per question, all behind the guard."""

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from psidp.errors import PsidpError
from psidp.present.finite import finite
from psidp.present.web import handlers, schemas
from psidp.present.web.middleware import Guard, error_body
from psidp.present.web.standalone import page, standalone_page
from psidp.present.web.worker import LONGEST, Worker

__all__ = ["create_app"]

STATIC = Path(str(files("psidp.present.web").joinpath("static")))
REFUSED: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.Refusal, "description": "Refused"} for status in (400, 401, 403, 413, 422, 503)
}
MOST_ASKING = 10
"""Requests that one question takes on: those of all questions leave connections for the page."""


def create_app(token: str | None = None, longest: float = LONGEST) -> Guard:
    """The whole application; with a token, only for those who bring it; accounts end after `longest` seconds."""
    app = FastAPI(
        title="psidp",
        version=version("psidp"),
        description="Gaussian differential privacy through one number. Stateless; infinities are the string inf.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    _add_questions(app, Worker(longest))
    _add_page(app)
    _add_refusals(app)
    return Guard(app, token)


def _add_questions(app: FastAPI, worker: Worker) -> None:
    """One POST per question; the body's class is its form, the answer is the library's."""
    _question(app, "explain", schemas.Explain, handlers.answer_explain)
    _question(app, "card", schemas.CardRequest, handlers.answer_card)
    _question(app, "account", schemas.Account, partial(worker.ask, "account"))
    _question(app, "calibrate", schemas.Calibrate, partial(_calibrated, worker))
    _question(app, "audit", schemas.Audit, handlers.answer_audit)


def _calibrated(worker: Worker, asked: dict[str, Any]) -> dict[str, Any]:
    """A run is calibrated in the worker; a query needs no search."""
    return worker.ask("calibrate", asked) if handlers.describes_run(asked) else handlers.answer_calibrate(asked)


def _question(app: FastAPI, name: str, body: type, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Ask on POST /api/name; two at a time are worked on, a few others wait, so that pages still have connections."""
    room, asking = CapacityLimiter(2), 0

    async def handle(asked: Any) -> JSONResponse:
        nonlocal asking
        if asking >= MOST_ASKING:
            raise HTTPException(503, f"too many wait for {name} already: ask again in a while")
        asking += 1
        try:
            return JSONResponse(finite(await to_thread.run_sync(answer, asked.model_dump(), limiter=room)))
        finally:
            asking -= 1

    handle.__annotations__ = {"asked": body, "return": JSONResponse}
    about: dict[str, Any] = {"operation_id": name, "summary": body.__doc__, "responses": REFUSED}
    app.post(f"/api/{name}", response_model=dict[str, Any], **about)(handle)


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def index() -> HTMLResponse:
        return HTMLResponse(page())

    @app.get("/explorer.html", include_in_schema=False)
    async def saved() -> HTMLResponse:
        return HTMLResponse(standalone_page())

    app.mount("/static", StaticFiles(directory=STATIC), name="static")


def _add_refusals(app: FastAPI) -> None:
    """Every error in the one shape, with the library's sentence where there is one."""

    async def refuse(_: Request, refusal: Exception) -> JSONResponse:
        return JSONResponse(error_body(str(refusal)), 422)

    async def malformed(_: Request, refusal: Exception) -> JSONResponse:
        assert isinstance(refusal, RequestValidationError)
        return JSONResponse(error_body(_sentence(refusal)), 422)

    async def other(_: Request, refusal: Exception) -> JSONResponse:
        assert isinstance(refusal, HTTPException)
        return JSONResponse(error_body(f"{refusal.detail}."), refusal.status_code, refusal.headers)

    for kind in (ValueError, TypeError, OverflowError, PsidpError):
        app.add_exception_handler(kind, refuse)
    app.add_exception_handler(RequestValidationError, malformed)
    app.add_exception_handler(HTTPException, other)


def _sentence(refusal: RequestValidationError) -> str:
    """What is wrong with the form of a request, without repeating what was sent."""
    first = refusal.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "float", "int"))[:80]
    return f"{place or 'the request'} is not as the API's description says: {first['msg'].lower()}."
