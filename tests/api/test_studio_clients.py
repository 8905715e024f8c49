"""Who may use the server of LangGraph Studio."""

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from leadline.api.studio import OnlyThisMachine, app


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("127.0.0.1", 200),
        ("127.8.0.1", 200),
        ("::1", 200),
        ("::ffff:127.0.0.1", 200),
        ("10.0.0.5", 403),
        ("::ffff:10.0.0.5", 403),
        ("2001:db8::1", 403),
        ("", 403),
    ],
)
async def test_only_this_machine_is_let_in(address: str, status: int) -> None:
    """Whatever it says its Host is: LangGraph's routes know no token."""
    page = Starlette(routes=[Route("/threads", lambda _: PlainTextResponse("all of them"))])
    transport = httpx.ASGITransport(OnlyThisMachine(page), client=(address, 5000))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/threads")
    assert answer.status_code == status
    assert ("all of them" in answer.text) is (status == 200)


async def test_the_server_has_it() -> None:
    """Before it looks at anything else."""
    transport = httpx.ASGITransport(app, client=("10.0.0.5", 5000))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/leadline/health")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden_host")
