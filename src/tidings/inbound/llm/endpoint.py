"""An OpenAI-compatible endpoint: one call, in the dialect that the model accepts, within its deadline.

Models are called from here only. TIDINGS_LOCAL_MODEL_ONLY or the option `local_only` forbids calls that leave
this machine; the sandbox on this machine can always be called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import timedelta

import orjson
from pyreqwest.http import Url

from ...model.errors import Misconfigured
from ...wire.http_client import HttpClient, HttpFailure, HttpResponse
from .chat_completions import chat_completion, chat_request
from .dialect import CHAT, RESPONSES, RequestDialect
from .errors import ModelUnavailable
from .http_response import read_response
from .model_call import Completion, ModelCall, ModelFailure, ModelFailureKind
from .prompt import digest
from .responses_api import responses_completion, responses_request
from .settings import ModelSettings, is_loopback

SWITCH = "TIDINGS_LOCAL_MODEL_ONLY"
MAX_ANSWER = 1 << 20
LIST_WITHIN = timedelta(seconds=5)
_APIS = {
    CHAT: ("/chat/completions", chat_request, chat_completion),
    RESPONSES: ("/responses", responses_request, responses_completion),
}


def refuse_forbidden(settings: ModelSettings, environ: Mapping[str, str] | None = None) -> None:
    """Raise Misconfigured if the endpoint is remote but remote calls are forbidden."""
    environ = os.environ if environ is None else environ
    by = SWITCH if environ.get(SWITCH, "0") not in ("", "0") else None
    by = by or ("inbound.model.local_only" if settings.local_only else None)
    if by is not None and not is_loopback(settings.base_url):
        raise Misconfigured(
            f"{by} forbids calls to remote models, but inbound.model.base_url is {settings.base_url}",
            remedy=f"Point base_url at this machine, or remove {by}",
            field="inbound.model.base_url",
        )


class ModelEndpoint:
    """Sends single calls to the endpoint and remembers the dialect of each model."""

    def __init__(self, settings: ModelSettings, *, now: Callable[[], int]) -> None:
        refuse_forbidden(settings)
        self.name = settings.base_url
        self.dialects: dict[str, RequestDialect] = {}  # by model and settings; kept by the model client
        self._settings = settings
        self._now = now
        self._headers = {"content-type": "application/json"}
        if settings.key:
            self._headers["authorization"] = f"Bearer {settings.key}"
        self._http = HttpClient(connect_within=settings.timeout / 3)
        is_responses = settings.api == RESPONSES
        self._initial = RequestDialect(
            api=settings.api if is_responses else CHAT,
            structured=settings.format == "schema",
            effort=settings.reasoning_effort,
            reasons=is_responses,
        )

    async def ask(self, call: ModelCall) -> Completion | ModelFailure:
        """Send one call. While the endpoint rejects a known parameter, try the next dialect; remember the last."""
        refuse_forbidden(self._settings)
        key = digest([call.model, self._settings.api, list(self._initial)])
        dialect = self.dialects.get(key, self._initial)
        tried, left = set[RequestDialect](), self._settings.timeout
        while True:
            tried.add(dialect)
            found, spent = await self._post(call, dialect, left)
            left -= spent
            if isinstance(found, Completion):
                self.dialects[key] = dialect.learned(found.finish, found.content)
                return found
            instead = self._instead(dialect, found, has_tools=bool(call.prompt.tools))
            if instead is None or instead in tried or left <= timedelta():
                if found.kind in (ModelFailureKind.UNFIT, ModelFailureKind.WRONG):
                    self.dialects.pop(key, None)  # the model behind the name may have changed
                else:
                    self.dialects[key] = dialect
                return found
            dialect = instead

    async def shutdown_dates(self) -> Mapping[str, str]:
        """Return the announced shutdown date of each model that has one; raises ModelUnavailable."""
        refuse_forbidden(self._settings)
        try:
            answer = await self._send("GET", "/models", None, min(self._settings.timeout, LIST_WITHIN))
        except HttpFailure as error:
            raise ModelUnavailable(f"{self.name} does not answer: {error}") from None
        if answer.status in (401, 403):
            raise ModelUnavailable(f"{self.name} rejects the key: HTTP {answer.status}")
        try:
            listed = orjson.loads(answer.body_prefix)["data"]
            return {one["id"]: str(one["shutdown_date"]) for one in listed if one.get("shutdown_date")}
        except (AttributeError, LookupError, TypeError, ValueError):
            return {}  # most OpenAI-compatible servers announce no dates

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    def _instead(self, dialect: RequestDialect, found: ModelFailure, *, has_tools: bool) -> RequestDialect | None:
        instead = dialect.instead(found.param, found.message, has_tools=has_tools)
        is_moved = instead is not None and instead.api != dialect.api
        return None if is_moved and self._settings.api != "auto" else instead

    async def _post(
        self, call: ModelCall, dialect: RequestDialect, deadline: timedelta
    ) -> tuple[Completion | ModelFailure, timedelta]:
        path, request, parse = _APIS[dialect.api]
        body = orjson.dumps(request(call, dialect, reasoning_tokens=self._settings.reasoning_tokens))
        try:
            answer = await self._send("POST", path, body, deadline)
        except HttpFailure as error:
            return ModelFailure(ModelFailureKind.LOST, f"no answer: {error}"), deadline
        return read_response(answer, parse, now=self._now(), hide=self._settings.key or ""), answer.elapsed

    async def _send(self, method: str, path: str, body: bytes | None, deadline: timedelta) -> HttpResponse:
        return await self._http.request(
            method,
            Url(f"{self.name}{path}"),
            headers=self._headers,
            body=body,
            deadline=deadline,
            pinned=None,
            max_response_size=MAX_ANSWER,
        )
