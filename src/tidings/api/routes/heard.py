"""Where platforms call with what was said: they cannot show our key, so their signature is the key."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from ...access.rules import OPEN, allowed
from ...inbound.desk import InboundDesk
from ...inbound.intake import NotTaken
from ...inbound.sources.port import Call, NotGenuine
from ...model.errors import StoreUnavailable
from ..bodies import MISSING, UNSIGNED, answer
from ..errors import Malformed, Unauthorised

PATH = "/inbound/{source}"


def routes(desk: InboundDesk) -> APIRouter:
    """The address of each source that is called."""
    router = APIRouter(tags=["call-backs"], responses=MISSING | UNSIGNED)

    @router.post(PATH)
    @allowed(OPEN)
    async def take(source: str, request: Request) -> Response:
        """Something was said. Answered when it is durable; the same once more changes nothing."""
        try:
            call = Call(dict(request.headers), dict(request.query_params), await request.body())
            taken = await desk.listening.call(source, call)
        except ClientDisconnect:
            raise Malformed("the request broke off", remedy="send it again") from None
        except NotGenuine as error:
            remedy = "sign it, or give the address its key, with the secret of this source"
            raise Unauthorised(str(error), remedy=remedy) from None
        except NotTaken as error:
            raise StoreUnavailable(str(error), remedy="send it again; nothing is lost") from None
        return answer({"taken": taken.handled + taken.ended, "known": taken.known})

    return router
