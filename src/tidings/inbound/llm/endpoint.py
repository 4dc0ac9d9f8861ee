"""An OpenAI-compatible endpoint: one call, in whichever dialect it takes, within its deadline.

The only place from which a model is called,
so here is the switch that forbids it (TIDINGS_LOCAL_MODEL_ONLY, or
the option `forbid`). This machine itself may always be called: the sandbox lives there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from pyreqwest.http import Url

from ...model.errors import Misconfigured
from ...wire.http_client import HttpClient, HttpFailure
from .chat_completions import (
    Completion,
    ModelCall,
    ModelFailure,
    ModelFailureKind,
    RequestDialect,
    read_response,
    request_body,
)
from .settings import ModelSettings, is_loopback

SWITCH = "TIDINGS_LOCAL_MODEL_ONLY"
MAX_ANSWER = 1 << 20
_DIALECTS = 3  # that are tried before an endpoint's refusal counts


def refuse_forbidden(settings: ModelSettings, environ: Mapping[str, str] | None = None) -> None:
    """Raises Misconfigured when a real model would be called although that is forbidden."""
    environ = os.environ if environ is None else environ
    by = (
        SWITCH
        if environ.get(SWITCH, "0") not in ("", "0")
        else "inbound.model.forbid"
        if settings.forbid
        else None
    )
    if by is not None and not is_loopback(settings.base_url):
        raise Misconfigured(
            f"{by} forbids calls to real models, but inbound.model.base_url is {settings.base_url}",
            remedy=f"Point base_url at this machine, or take {by} away",
            field="inbound.model.base_url",
        )


class ModelEndpoint:
    """Calls made one by one; what they mean for others is decided elsewhere."""

    def __init__(self, settings: ModelSettings, *, now: Callable[[], int]) -> None:
        refuse_forbidden(settings)
        self.name = settings.base_url
        self._settings = settings
        self._now = now
        self._url = Url(f"{settings.base_url}/chat/completions")
        self._headers = {"content-type": "application/json"}
        if settings.key:
            self._headers["authorization"] = f"Bearer {settings.key}"
        self._http = HttpClient(connect_within=settings.timeout / 3)
        self._shape = RequestDialect(structured=settings.format == "schema")

    async def ask(self, call: ModelCall) -> Completion | ModelFailure:
        """Ask once. An endpoint that does not know our dialect is asked again in another, and remembered."""
        refuse_forbidden(self._settings)
        for _ in range(_DIALECTS):
            shape = self._shape
            found = await self._post(request_body(call, shape), shape)
            if isinstance(found, Completion) or found.instead is None:
                return found
            self._shape = found.instead
        return found

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.close()

    async def _post(self, request: bytes, shape: RequestDialect) -> Completion | ModelFailure:
        try:
            answer = await self._http.post(
                self._url,
                headers=self._headers,
                body=request,
                deadline=self._settings.timeout,
                pinned=None,
                max_response_size=MAX_ANSWER,
            )
        except HttpFailure as error:
            return ModelFailure(ModelFailureKind.LOST, f"no answer: {error}")
        return read_response(answer, shape, now=self._now(), hide=self._settings.key or "")
