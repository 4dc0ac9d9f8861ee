"""Cases, notices and conversations: what a person is called for, and what was decided about messages."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.rules import OPERATE, READ, allowed
from ...inbound.workflow.building import Workflows
from ...reading.fields import Field
from ..bodies import CONFLICT, MISSING, PROBLEMS, answer, read_fields, takes
from ..queries import CHECKED, After

CLAIM = {"by": Field("string", "who takes it", "Ada", required=True)}
ANSWER = {"text": Field("string", "what to say to the group", "Which night do you mean?", required=True)}
HANDBACK = {"verdict": Field("string", "what a held message is: related or new", "related")}
CLOSE = {"note": Field("string", "what was done about it", "entered by hand")}


def routes(workflows: Workflows) -> APIRouter:
    """Everything under /v1/cases, /v1/notices and /v1/conversations."""
    router = APIRouter(tags=["cases"], responses=PROBLEMS)
    cases, conversations = workflows.cases, workflows.conversations

    @router.get("/v1/cases", dependencies=CHECKED)
    @allowed(READ)
    async def page(
        *,
        state: Annotated[str | None, Query(description="open, claimed, answered or closed")] = None,
        reason: Annotated[str | None, Query(description="only of this reason, such as review")] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Cases that are not closed, or in one state, newest first."""
        return answer((await cases.page(state=state, reason=reason, limit=limit, after=after))._asdict())

    @router.get("/v1/cases/{id}", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def show(id: str) -> Response:
        """One case with the last lines of its conversation."""
        return answer(await cases.show(id))

    @router.post("/v1/cases/{id}/claim", responses=MISSING | CONFLICT, openapi_extra=takes(CLAIM))
    @allowed(OPERATE)
    async def claim(id: str, request: Request) -> Response:
        """Take a case: the bot is silent in its conversation."""
        return answer(await cases.claim(id, (await read_fields(request, CLAIM))["by"]))

    @router.post("/v1/cases/{id}/answer", responses=MISSING | CONFLICT, openapi_extra=takes(ANSWER))
    @allowed(OPERATE)
    async def say(id: str, request: Request) -> Response:
        """Say something to the group in the bot's place."""
        return answer(await cases.answer(id, (await read_fields(request, ANSWER))["text"]))

    @router.post(
        "/v1/cases/{id}/handback", responses=MISSING | CONFLICT, openapi_extra=takes(HANDBACK, required=False)
    )
    @allowed(OPERATE)
    async def hand_back(id: str, request: Request) -> Response:
        """Give the conversation back to the bot."""
        return answer(
            await cases.hand_back(id, verdict=(await read_fields(request, HANDBACK)).get("verdict"))
        )

    @router.post(
        "/v1/cases/{id}/close", responses=MISSING | CONFLICT, openapi_extra=takes(CLOSE, required=False)
    )
    @allowed(OPERATE)
    async def close(id: str, request: Request) -> Response:
        """It is dealt with."""
        return answer(await cases.close(id, note=(await read_fields(request, CLOSE)).get("note") or ""))

    @router.get("/v1/notices", dependencies=CHECKED)
    @allowed(READ)
    async def notices(limit: int = 50, after: After = None) -> Response:
        """What admins were told, newest first."""
        return answer((await cases.notices(limit=limit, after=after))._asdict())

    @router.post("/v1/notices/{id}/acknowledge", responses=MISSING, openapi_extra=takes(CLAIM))
    @allowed(OPERATE)
    async def acknowledge(id: str, request: Request) -> Response:
        """Somebody has seen it."""
        by = (await read_fields(request, CLAIM))["by"]
        await cases.acknowledge(id, by)
        return answer({"id": id, "acknowledged_by": by})

    @router.get("/v1/conversations", dependencies=CHECKED)
    @allowed(READ)
    async def list_conversations(limit: int = 50, after: After = None) -> Response:
        """Conversations, the one with the newest message first."""
        return answer((await conversations.page(limit=limit, after=after))._asdict())

    @router.get("/v1/conversations/{name:path}", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def show_conversation(name: str, after: After = None) -> Response:
        """One conversation: each message with every step, decision, score and cost."""
        return answer(await conversations.show(name, after=after))

    return router
