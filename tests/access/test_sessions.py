"""Sessions and live streams end with what opened them; cookies stay on https (S1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from ..acceptance.harness import KEY, house
from ..acceptance.program import run, serving
from ..time_limits import Limit

HERE = {"sec-fetch-site": "same-origin", "accept": "text/html"}


@pytest.mark.parametrize(
    ("public_url", "is_secure"),
    [("https://tidings.example.com", True), ("http://tidings.example.com", False), (None, False)],
)
async def test_the_session_cookie_is_secure_when_the_public_url_is_https(
    sqlite_url: str, public_url: str | None, is_secure: bool
) -> None:
    """The proxy speaks TLS, the engine plain HTTP: only the setting knows."""
    async with house(sqlite_url, api_keys=(KEY,), public_url=public_url) as home:
        signed = await home.http.post("/sign-in", data={"key": KEY})
        left = await home.http.post("/sign-out")
        for answer in (signed, left):
            attributes = answer.headers["set-cookie"].lower().split("; ")
            assert ("secure" in attributes) is is_secure
            assert "httponly" in attributes and "samesite=lax" in attributes


@pytest.mark.parametrize("database", ["sqlite_url", "postgres_url"])
async def test_sessions_end_when_their_key_is_rotated(request: pytest.FixtureRequest, database: str) -> None:
    """The old secret opens for its overlap, a session that it opened does not."""
    async with house(request.getfixturevalue(database), api_keys=(KEY,)) as home:
        home.http.headers["x-api-key"] = KEY
        made = (await home.http.post("/v1/keys", json={"name": "ada", "role": "viewer"})).json()
        async with home.client(**HERE) as browser:
            await browser.post("/sign-in", data={"key": made["key"]})
            assert (await browser.get("/messages")).status_code == 200
            assert (await home.http.post(f"/v1/keys/{made['id']}/rotate")).status_code == 200
            assert (await browser.get("/messages")).status_code == 303
        old = await home.client(**{"x-api-key": made["key"]}).get("/v1/messages")
        assert old.status_code == 200


class Stream:
    """A live page as a browser holds it open."""

    def __init__(self, url: str, cookies: httpx.Cookies | None = None, headers: dict[str, str] | None = None) -> None:
        self.http = httpx.Client(base_url=url, cookies=cookies, headers=headers, timeout=10)
        self._open = self.http.stream("GET", "/live")

    def __enter__(self) -> Stream:
        self._answer = self._open.__enter__()
        assert self._answer.headers["content-type"].startswith("text/event-stream"), self._answer.status_code
        self._pieces = self._answer.iter_raw()
        next(self._pieces)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.__exit__(None, None, None)
        self.http.close()

    def ends_within(self, seconds: float) -> bool:
        """Read on until it ends, or until it is clear that it does not."""
        limit = Limit(seconds)
        while not limit.is_over():
            if next(self._pieces, None) is None:
                return not limit.is_over()
        return False


def signed_in(url: str, key: str) -> httpx.Cookies:
    """A browser's cookies."""
    with httpx.Client(base_url=url) as http:
        assert http.post("/sign-in", data={"key": key}).headers["location"] == "/"
        return http.cookies


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize("how", ["revoke", "rotate"])
def test_live_streams_end_within_a_second_of_their_key(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, how: str
) -> None:
    """Revoked or rotated by another process: streams of the key's sessions end, others go on."""
    words = ("--database", request.getfixturevalue("postgres_url")) if database == "postgres" else ()
    env = {"TIDINGS_API_KEYS": KEY}
    with serving(tmp_path, *words, env=env) as served:
        url = served.address("dashboard")
        body: dict[str, Any] = {"name": "ada", "role": "viewer"}
        made = httpx.post(f"{url}/v1/keys", json=body, headers={"x-api-key": KEY}).json()
        cookies = signed_in(url, made["key"])
        with Stream(url, cookies) as ours, Stream(url, headers={"x-api-key": KEY}) as theirs:
            assert run("keys", how, made["id"], *words, env=env, folder=tmp_path).returncode == 0
            assert ours.ends_within(1.5)  # a second, and the way of the news
            assert next(theirs._pieces)
        assert httpx.get(f"{url}/messages", cookies=cookies).status_code in (303, 401)


async def test_the_form_of_the_sign_in_is_small(sqlite_url: str) -> None:
    """Whoever has no key yet cannot make the engine read much."""
    async with house(sqlite_url, api_keys=(KEY,)) as home:
        many = "&".join(f"f{number}=x" for number in range(100_000)) + f"&key={KEY}"
        few = "&".join(f"f{number}=x" for number in range(50)) + f"&key={KEY}"
        form = {"content-type": "application/x-www-form-urlencoded"}
        assert (await home.http.post("/sign-in", content=many, headers=form)).status_code == 413
        assert (await home.http.post("/sign-in", content=few, headers=form)).status_code == 422
        fields = "&".join(f"f{number}=x" for number in range(1000))
        home.http.headers["x-api-key"] = KEY
        assert (await home.http.post("/messages", content=fields, headers=form)).status_code == 422
