"""Simulated language model with the routes of an OpenAI-compatible server below `/openai/v1`.

Models with OpenAI's names accept what OpenAI's accept. It answers from a script (`POST /sandbox/openai`),
otherwise with the minimal value of the given schema.
Faults apply by the model's name (`throttle-5`) or to the channel `openai`; a fault's code is one of `ERRORS`
or an HTTP status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from tidings.model.errors import Invalid
from tidings.sandbox.faults import FaultKind
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.provider_endpoint import (
    WRONG,
    ProviderMethod,
    ProviderRequest,
    http_status,
    provider_route,
    retry_after,
)
from tidings.sandbox.providers.openai_models import SHUTDOWN_DATES, OpenAIErrorReply, reasoning_tokens, rejection
from tidings.sandbox.responses import SandboxJson, cut_connection, read_command, with_error_response
from tidings.sandbox.simulator import ProviderArrival, SandboxSimulator

CHANNEL = "openai"
MAX_SCRIPT = 1_000
REPLY_FIELDS: Mapping[str, type] = {  # of a scripted reply, besides its answer
    **dict.fromkeys(("refusal", "finish", "for", "when"), str),
    **dict.fromkeys(("tokens_in", "tokens_out", "times"), int),
    **{"tool": dict, "cut": bool},
}


ERRORS: Mapping[str, OpenAIErrorReply] = {
    "invalid_request": OpenAIErrorReply(400, "'messages' and 'model' are required", param="messages"),
    "unsupported_format": OpenAIErrorReply(
        400, "'response_format' of type 'json_schema' is not supported", param="response_format"
    ),
    "unsupported_max_tokens": OpenAIErrorReply(
        400, "'max_tokens' is not supported, use 'max_completion_tokens'", param="max_tokens"
    ),
    "unsupported_stream": OpenAIErrorReply(400, "The sandbox streams nothing", param="stream"),
    "context_length_exceeded": OpenAIErrorReply(400, "The context is too long", param="messages"),
    "invalid_api_key": OpenAIErrorReply(401, "Incorrect API key provided"),
    "model_not_found": OpenAIErrorReply(404, "The model does not exist"),
    "rate_limit_exceeded": OpenAIErrorReply(429, "Rate limit reached", "requests"),
    "insufficient_quota": OpenAIErrorReply(429, "You exceeded your current quota", "insufficient_quota"),
    "server_error": OpenAIErrorReply(500, "The server had an error", "server_error"),
    "overloaded": OpenAIErrorReply(503, "The engine is overloaded", "server_error"),
}

_FAULTS = {
    FaultKind.ERROR: "server_error",
    FaultKind.THROTTLED: "rate_limit_exceeded",
    FaultKind.GONE: "model_not_found",
}


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One scripted reply: to any request, or to one with this schema name and text."""

    content: str | None = None
    refusal: str | None = None
    tool: Mapping[str, Any] | None = None
    finish: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    for_: str = ""
    when: str = ""
    times: int | None = 1  # None: unlimited
    cut: bool = False  # truncate the response

    def fits(self, question: CompletionRequest) -> bool:
        """Return whether it answers this request."""
        return self.when in question.text and self.for_ in ("", question.name)


class CompletionRequest(NamedTuple):
    """A request for a completion: the last user message, and the wanted response format."""

    is_chat: bool  # chat/completions; otherwise responses
    model: str
    text: str
    name: str
    schema: Mapping[str, Any] | None
    length: int
    limit: int | None  # of tokens, including reasoning
    reasoning: int  # tokens


def routes(world: SandboxSimulator) -> Sequence[BaseRoute]:
    """Return the model's routes, and those for scripting it."""
    model = _OpenAIProvider(world)
    method = ProviderMethod(read, model.answer, _refused, _FAULTS)
    return [
        provider_route(world, "/openai/v1/chat/completions", method),
        provider_route(world, "/openai/v1/responses", method),
        Route("/openai/v1/models", _list, methods=["GET"]),
        Route("/sandbox/openai", model.show, methods=["GET"]),
        Route("/sandbox/openai", with_error_response(model.tell), methods=["POST"]),
        Route("/sandbox/openai", model.forget, methods=["DELETE"]),
    ]


def read(asked: ProviderRequest) -> ProviderArrival:
    """Parse a completion request."""
    question = _question(asked)
    problem = None
    if WRONG in asked.headers.get("authorization", "").lower():
        problem = "invalid_api_key"
    elif not question.model or not question.length:
        problem = "invalid_request"
    elif (asked.fields or {}).get("stream") is True:
        problem = "unsupported_stream"
    elif rejection(asked.fields or {}, is_chat=question.is_chat):
        problem = "rejected_parameter"
    arrival = asked.arrival(CHANNEL, question.model, question.text, None, problem, subject=question.name)
    return arrival._replace(to=question.model[:256])


class _OpenAIProvider:
    """Replies from its script in order, each as often as it allows."""

    def __init__(self, world: SandboxSimulator) -> None:
        self._world = world
        self._script: tuple[ScriptedReply, ...] = ()

    def answer(self, asked: ProviderRequest, _: ProviderArrival, entry: SandboxEntry) -> Response:
        question = _question(asked)
        line = self._take(question)
        said = (_completion if question.is_chat else _response)(question, _spend(question, line), entry)
        headers = {"x-request-id": f"req_{entry.n}"}
        respond = _TruncatedResponse if line.cut else Response
        return respond(orjson.dumps(said), media_type="application/json", headers=headers)

    async def show(self, _: Request) -> Response:
        return SandboxJson({"script": [_described(line) for line in self._script], "errors": list(ERRORS)})

    async def tell(self, request: Request) -> Response:
        """Add one scripted reply, or a list of them."""
        given = await read_command(request, 'For example {"answer": {"a": 1}}')
        lines = tuple(_line(one) for one in (given if isinstance(given, list) else [given]))
        self._script = (*self._script, *lines)[:MAX_SCRIPT]
        return SandboxJson({"lines": len(self._script)}, status_code=201)

    async def forget(self, _: Request) -> Response:
        forgotten, self._script = len(self._script), ()
        return SandboxJson({"forgotten": forgotten})

    def _take(self, question: CompletionRequest) -> ScriptedReply:
        found = next((line for line in self._script if line.fits(question)), None)
        if found is None:
            return ScriptedReply(content=orjson.dumps(_emptiest(question.schema or {})).decode())
        if found.times is not None:
            left = (replace(found, times=found.times - 1),) if found.times > 1 else ()
            place = self._script.index(found)
            self._script = (*self._script[:place], *left, *self._script[place + 1 :])
        return found


class _TruncatedResponse(Response):
    """Half of an answer, then the connection is cut."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        half = bytes(self.body)[: len(self.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        await cut_connection(receive)


async def _list(request: Request) -> Response:
    if WRONG in request.headers.get("authorization", "").lower():
        return _error("invalid_api_key")
    models = [
        {"id": id_, "object": "model", "created": 1, "owned_by": "sandbox", "shutdown_date": date}
        for id_, date in SHUTDOWN_DATES.items()
    ]
    return SandboxJson({"object": "list", "data": models})


def _question(asked: ProviderRequest) -> CompletionRequest:
    """Parse a request to either API."""
    fields = asked.fields or {}
    is_chat = "input" not in fields
    given = fields.get("messages" if is_chat else "input")
    given = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    form = (
        _table(_table(fields, "response_format"), "json_schema")
        if is_chat
        else _table(_table(fields, "text"), "format")
    )
    said = [_text(one.get("content")) for one in messages if one.get("role") == "user"]
    limits = [fields.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
    return CompletionRequest(
        is_chat,
        asked.text("model"),
        said[-1] if said else "",
        str(form.get("name") or ""),
        _table(form, "schema") or None,
        sum(len(_text(one.get("content"))) for one in messages),
        next((limit for limit in limits if isinstance(limit, int)), None),
        reasoning_tokens(fields),
    )


def _table(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = fields.get(name)
    return found if isinstance(found, dict) else {}


def _spend(question: CompletionRequest, line: ScriptedReply) -> ScriptedReply:
    """Return the reply with its number of tokens, cut off at the limit: reasoning comes first."""
    tokens_in = question.length // 4 + 1 if line.tokens_in is None else line.tokens_in
    content, finish = line.content, line.finish
    room = None if question.limit is None else max(0, question.limit - question.reasoning)
    if content is not None and room is not None and len(content) // 4 + 1 > room:
        content, finish = content[: 4 * room], "length"
    tokens_out = question.reasoning + len(content or "") // 4 + 1
    if finish == "length" and question.limit is not None:
        tokens_out = question.limit
    chosen = tokens_out if line.tokens_out is None else line.tokens_out
    return replace(line, content=content, finish=finish, tokens_in=tokens_in, tokens_out=chosen)


def _text(content: object) -> str:
    """Return a text, or the texts of a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _emptiest(schema: Mapping[str, Any]) -> Any:
    """Return the minimal value of a schema."""
    kinds = schema.get("type", "object")
    kind = "null" if "null" in kinds else kinds if isinstance(kinds, str) else kinds[0]
    if kind != "null" and schema.get("enum"):
        return schema["enum"][0]
    if kind == "object":
        return {name: _emptiest(inner) for name, inner in schema.get("properties", {}).items()}
    least: Mapping[str, Any] = {"array": [], "string": "", "boolean": False, "null": None}
    return least.get(kind, schema.get("minimum", 0))


def _arguments(tool: Mapping[str, Any]) -> str:
    arguments = tool.get("arguments", {})
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()


def _completion(question: CompletionRequest, line: ScriptedReply, entry: SandboxEntry) -> dict[str, Any]:
    tool = None
    if line.tool is not None:
        function = {"name": str(line.tool.get("name")), "arguments": _arguments(line.tool)}
        tool = [{"id": f"call_{entry.n}", "type": "function", "function": function}]
    tokens_in, tokens_out = line.tokens_in or 0, line.tokens_out or 0
    message = {"role": "assistant", "content": line.content, "refusal": line.refusal, "tool_calls": tool}
    finish = line.finish or ("tool_calls" if tool else "stop")
    return {
        "id": f"chatcmpl-{entry.n}",
        "object": "chat.completion",
        "created": entry.at // 1_000_000,
        "model": question.model,
        "system_fingerprint": "fp_sandbox",
        "choices": [{"index": 0, "finish_reason": finish, "logprobs": None, "message": message}],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
            "completion_tokens_details": {"reasoning_tokens": min(question.reasoning, tokens_out)},
        },
    }


def _response(question: CompletionRequest, line: ScriptedReply, entry: SandboxEntry) -> dict[str, Any]:
    tokens_in, tokens_out = line.tokens_in or 0, line.tokens_out or 0
    output: list[dict[str, Any]] = []
    if question.reasoning:
        output.append({"type": "reasoning", "id": f"rs_{entry.n}", "summary": []})
    part: dict[str, Any] = {"type": "output_text", "text": line.content, "annotations": []}
    if line.refusal:
        part = {"type": "refusal", "refusal": line.refusal}
    if line.content or line.refusal:
        said = {"type": "message", "id": f"msg_{entry.n}", "role": "assistant", "status": "completed"}
        output.append({**said, "content": [part]})
    if line.tool is not None:
        named = {"name": str(line.tool.get("name")), "arguments": _arguments(line.tool), "call_id": f"call_{entry.n}"}
        output.append({"type": "function_call", "id": f"fc_{entry.n}", "status": "completed", **named})
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    incomplete = {"reason": reasons[line.finish]} if line.finish in reasons else None
    return {
        "id": f"resp_{entry.n}",
        "object": "response",
        "created_at": entry.at // 1_000_000,
        "status": "incomplete" if incomplete else "completed",
        "incomplete_details": incomplete,
        "error": None,
        "model": question.model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": tokens_in,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": tokens_out,
            "output_tokens_details": {"reasoning_tokens": min(question.reasoning, tokens_out)},
            "total_tokens": tokens_in + tokens_out,
        },
    }


def _refused(asked: ProviderRequest, entry: SandboxEntry, code: str) -> Response:
    rejected = None
    if entry.did is FaultKind.INVALID:
        rejected = rejection(asked.fields or {}, is_chat=_question(asked).is_chat)
    return _error(code, rejected, retry_after(entry))


def _error(code: str, error: OpenAIErrorReply | None = None, headers: Mapping[str, str] | None = None) -> Response:
    unlisted = OpenAIErrorReply(http_status(code) or 400, "Simulated error")
    error = error or ERRORS.get(code, unlisted)._replace(code=code)
    body = {"message": error.message, "type": error.type, "param": error.param, "code": error.code}
    return SandboxJson({"error": body}, status_code=error.status, headers=headers)


def _line(told: object) -> ScriptedReply:
    """Parse a scripted reply; raises Invalid."""
    if not isinstance(told, dict):
        raise Invalid("A reply must be a JSON object", remedy='For example {"answer": {"is_request": true}}')
    given: dict[str, Any] = {
        name: value for name, value in told.items() if name != "answer" and (value is not None or name == "times")
    }
    for name, value in given.items():
        kind = REPLY_FIELDS.get(name)
        if kind is None:
            raise Invalid(f"Unknown field {name!r}", remedy=f"Use answer, {', '.join(REPLY_FIELDS)}", field=name)
        is_negative = isinstance(value, int) and value < 0
        if value is not None and (type(value) is not kind or is_negative):
            raise Invalid(f"{name} must be of type {kind.__name__}", remedy="Omit it for the default", field=name)
    given["for_"] = given.pop("for", "")
    answer = told.get("answer")
    content = answer if answer is None or isinstance(answer, str) else orjson.dumps(answer).decode()
    return ScriptedReply(content=content, **given)


def _described(line: ScriptedReply) -> dict[str, Any]:
    shown = {"answer": line.content, "refusal": line.refusal, "tool": line.tool, "for": line.for_ or None}
    return {**shown, "when": line.when or None, "times": line.times, "cut": line.cut}
