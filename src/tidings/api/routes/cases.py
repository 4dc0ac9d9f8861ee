"""Cases for people, notices to admins, and conversations with every decision."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...inbound.workflow.service import WorkflowService
from ...inputs.fields import Field
from ..bodies import json_response, page_response, read_fields
from ..openapi_responses import ERROR_RESPONSES, NOT_FOUND, action_options, body_schema
from ..query_parameters import STRICT_QUERY, After

CLAIM = {"by": Field("string", "name of the person", "Ada", required=True)}
ANSWER = {"text": Field("string", "reply to the group", "Which night do you mean?", required=True)}
HANDBACK = {"verdict": Field("string", "treat the deferred message as related or new", "related")}
CLOSE = {"note": Field("string", "what was done", "entered by hand")}


def routes(workflows: WorkflowService) -> APIRouter:
    """Return the routes under /v1/cases, /v1/notices and /v1/conversations."""
    router = APIRouter(tags=["cases"], responses=ERROR_RESPONSES)
    cases, conversations = workflows.cases, workflows.conversations

    @router.get("/v1/cases", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(
        *,
        state: Annotated[str | None, Query(description="open, claimed, answered or closed.")] = None,
        reason: Annotated[str | None, Query(description="Filter by reason, such as review.")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """List cases, newest first; without `state`, those that are not closed."""
        return page_response(await cases.page(state=state, reason=reason, limit=limit, after=after))

    @router.get("/v1/cases/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """Show one case with the latest messages of its conversation."""
        return json_response(await cases.show(id))

    @router.post("/v1/cases/{id}/claim", **action_options(CLAIM, required=True))
    @requires(OPERATE)
    async def claim(id: str, request: Request) -> Response:
        """Claim a case. The bot stops replying in its conversation."""
        return json_response(await cases.claim(id, (await read_fields(request, CLAIM))["by"]))

    @router.post("/v1/cases/{id}/answer", **action_options(ANSWER, required=True))
    @requires(OPERATE)
    async def answer(id: str, request: Request) -> Response:
        """Reply to the group in place of the bot."""
        return json_response(await cases.answer(id, (await read_fields(request, ANSWER))["text"]))

    @router.post("/v1/cases/{id}/handback", **action_options(HANDBACK))
    @requires(OPERATE)
    async def hand_back(id: str, request: Request) -> Response:
        """Hand the conversation back to the bot."""
        return json_response(await cases.hand_back(id, verdict=(await read_fields(request, HANDBACK)).get("verdict")))

    @router.post("/v1/cases/{id}/close", **action_options(CLOSE))
    @requires(OPERATE)
    async def close(id: str, request: Request) -> Response:
        """Close a case."""
        return json_response(await cases.close(id, note=(await read_fields(request, CLOSE)).get("note") or ""))

    @router.get("/v1/notices", dependencies=STRICT_QUERY)
    @requires(READ)
    async def notices(limit: int = 50, after: After = None) -> Response:
        """List notices to admins, newest first."""
        return page_response(await cases.notices(limit=limit, after=after))

    @router.post("/v1/notices/{id}/acknowledge", responses=NOT_FOUND, openapi_extra=body_schema(CLAIM))
    @requires(OPERATE)
    async def acknowledge(id: str, request: Request) -> Response:
        """Acknowledge a notice."""
        by = (await read_fields(request, CLAIM))["by"]
        await cases.acknowledge(id, by)
        return json_response({"id": id, "acknowledged_by": by})

    @router.get("/v1/conversations", dependencies=STRICT_QUERY)
    @requires(READ)
    async def list_conversations(limit: int = 50, after: After = None) -> Response:
        """List conversations by their latest message, newest first."""
        return page_response(await conversations.page(limit=limit, after=after))

    @router.get("/v1/conversations/{name:path}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show_conversation(name: str, after: After = None) -> Response:
        """Show one conversation: each message with every step, decision, score and cost."""
        return json_response(await conversations.show(name, after=after))

    return router
