"""Cases, notices and conversations: what a person is called for, and what was decided about messages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...inbound.workflow.service import WorkflowService
from ...inputs.fields import Field
from ..bodies import CONFLICT, ERROR_RESPONSES, NOT_FOUND, body_schema, json_response, read_fields
from ..query_parameters import STRICT_QUERY, After

CLAIM = {"by": Field("string", "who takes it", "Ada", required=True)}
ANSWER = {"text": Field("string", "what to say to the group", "Which night do you mean?", required=True)}
HANDBACK = {"verdict": Field("string", "what a held message is: related or new", "related")}
CLOSE = {"note": Field("string", "what was done about it", "entered by hand")}


def routes(workflows: WorkflowService) -> APIRouter:
    """Everything under /v1/cases, /v1/notices and /v1/conversations."""
    router = APIRouter(tags=["cases"], responses=ERROR_RESPONSES)
    cases, conversations = workflows.cases, workflows.conversations

    @router.get("/v1/cases", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        state: Annotated[str | None, Query(description="open, claimed, answered or closed")] = None,
        reason: Annotated[str | None, Query(description="only of this reason, such as review")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Cases that are not closed, or in one state, newest first."""
        return json_response(
            (await cases.page(state=state, reason=reason, limit=limit, after=after))._asdict()
        )

    @router.get("/v1/cases/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """One case with the last lines of its conversation."""
        return json_response(await cases.show(id))

    @router.post("/v1/cases/{id}/claim", responses=NOT_FOUND | CONFLICT, openapi_extra=body_schema(CLAIM))
    @requires(OPERATE)
    async def claim(id: str, request: Request) -> Response:
        """Take a case: the bot is silent in its conversation."""
        return json_response(await cases.claim(id, (await read_fields(request, CLAIM))["by"]))

    @router.post("/v1/cases/{id}/answer", responses=NOT_FOUND | CONFLICT, openapi_extra=body_schema(ANSWER))
    @requires(OPERATE)
    async def say(id: str, request: Request) -> Response:
        """Say something to the group in the bot's place."""
        return json_response(await cases.answer(id, (await read_fields(request, ANSWER))["text"]))

    @router.post(
        "/v1/cases/{id}/handback",
        responses=NOT_FOUND | CONFLICT,
        openapi_extra=body_schema(HANDBACK, required=False),
    )
    @requires(OPERATE)
    async def hand_back(id: str, request: Request) -> Response:
        """Give the conversation back to the bot."""
        return json_response(
            await cases.hand_back(id, verdict=(await read_fields(request, HANDBACK)).get("verdict"))
        )

    @router.post(
        "/v1/cases/{id}/close",
        responses=NOT_FOUND | CONFLICT,
        openapi_extra=body_schema(CLOSE, required=False),
    )
    @requires(OPERATE)
    async def close(id: str, request: Request) -> Response:
        """It is dealt with."""
        return json_response(
            await cases.close(id, note=(await read_fields(request, CLOSE)).get("note") or "")
        )

    @router.get("/v1/notices", dependencies=STRICT_QUERY)
    @requires(READ)
    async def notices(limit: int = 50, after: After = None) -> Response:
        """What admins were told, newest first."""
        return json_response((await cases.notices(limit=limit, after=after))._asdict())

    @router.post("/v1/notices/{id}/acknowledge", responses=NOT_FOUND, openapi_extra=body_schema(CLAIM))
    @requires(OPERATE)
    async def acknowledge(id: str, request: Request) -> Response:
        """Somebody has seen it."""
        by = (await read_fields(request, CLAIM))["by"]
        await cases.acknowledge(id, by)
        return json_response({"id": id, "acknowledged_by": by})

    @router.get("/v1/conversations", dependencies=STRICT_QUERY)
    @requires(READ)
    async def list_conversations(limit: int = 50, after: After = None) -> Response:
        """Conversations, the one with the newest message first."""
        return json_response((await conversations.page(limit=limit, after=after))._asdict())

    @router.get("/v1/conversations/{name:path}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show_conversation(name: str, after: After = None) -> Response:
        """One conversation: each message with every step, decision, score and cost."""
        return json_response(await conversations.show(name, after=after))

    return router
