"""Values of template variables mean nothing in the markup of a channel, unless the author says so (S11)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tidings.config import ChannelSettings

from ..acceptance.harness import CHANNELS, AppHarness, house

BOT = "123456:abcdefghijklmnop"
EVIL = "<img src=x onerror=\"alert(1)\"> & 'more' *bold* _it_ [a](http://evil.example) @everyone <!channel> <@1>"
LINK = "http://evil.example"
CONFIGURED = {
    **CHANNELS,
    "mail": ChannelSettings("email", {"host": "127.0.0.1", "sender": "a@example.org", "security": "none"}),
    "slack": ChannelSettings("slack", {"token": "xoxb-1-2"}),
    "discord": ChannelSettings("discord", {"webhook_id": "1", "webhook_token": "t"}),
    "telegram": ChannelSettings("telegram", {"token": BOT, "parse_mode": "HTML"}),
    "plain": ChannelSettings("telegram", {"token": BOT}),
}


@pytest.fixture(params=["sqlite", "postgres"])
async def home(request: pytest.FixtureRequest) -> AsyncIterator[AppHarness]:
    """An engine with one channel of each markup, on both databases."""
    url = request.getfixturevalue(f"{request.param}_url")
    async with house(url, channels=CONFIGURED) as made:
        yield made


async def said(home: AppHarness, channel: str, to: str, template: dict[str, Any], **variables: Any) -> dict[str, Any]:
    """A message of a template, as it was made durable; a preview says the same."""
    declared = {name: "text" for name in variables}
    body = {"name": "t", "variables": declared, **template}
    made = await home.http.post("/v1/templates", json=body)
    assert made.status_code == 201, made.text
    message = {"channel": channel, "to": to, "template": "t", "variables": variables, "in": "1h"}
    answer = await home.http.post("/v1/messages", json=message)
    assert answer.status_code == 201, answer.text
    shown = await home.show(answer.json()["id"])
    tried = {"channel": channel, "variables": variables}
    previewed = (await home.http.post("/v1/templates/t/preview", json=tried)).json()
    assert [previewed[name] for name in ("text", "subject", "data")] == [
        shown[name] for name in ("text", "subject", "data")
    ]
    return shown


async def test_a_value_cannot_add_a_tag_to_an_html_mail(home: AppHarness) -> None:
    """Medium 5: the HTML part is escaped, quotes included; text and subject say the same plainly."""
    page = '<p title="{{ name }}">Dear <b>{{ name }}</b> {{ name | safe }}</p>'
    template = {"text": "Dear {{ name }}", "subject": "For {{ name }}", "data": {"html": page}}
    shown = await said(home, "mail", "ada@example.org", template, name='<a href="x">&')

    escaped = "&lt;a href=&quot;x&quot;&gt;&amp;"
    assert shown["data"]["html"] == f'<p title="{escaped}">Dear <b>{escaped}</b> <a href="x">&</p>'
    assert (shown["text"], shown["subject"]) == ('Dear <a href="x">&', 'For <a href="x">&')


async def test_a_value_cannot_call_a_channel_or_hide_a_link_in_slack(home: AppHarness) -> None:
    """Medium 5: & < > in mrkdwn; plain texts and addresses stay as they are, what the author wrote, too."""
    blocks = [
        {"type": "section", "text": {"type": "mrkdwn", "text": "*{{ name }}*"}},
        {"type": "header", "text": {"type": "plain_text", "text": "{{ name }}"}},
        {"type": "image", "image_url": "https://e.org/?a=1&b={{ name }}", "alt_text": "x"},
    ]
    template = {"text": "<!here> *{{ name }}* {{ name | safe }}", "data": {"blocks": blocks}}
    shown = await said(home, "slack", "C0123", template, name="<!channel> & <http://e|bank>")

    escaped = "&lt;!channel&gt; &amp; &lt;http://e|bank&gt;"
    assert shown["text"] == f"<!here> *{escaped}* <!channel> & <http://e|bank>"
    section, header, image = shown["data"]["blocks"]
    assert section["text"]["text"] == f"*{escaped}*"
    assert header["text"]["text"] == "<!channel> & <http://e|bank>"
    assert image["image_url"] == "https://e.org/?a=1&b=<!channel> & <http://e|bank>"


async def test_a_value_calls_nobody_in_discord(home: AppHarness) -> None:
    """Medium 5: @everyone, @here, people, roles, channels, links under other words; addresses stay whole."""
    template = {"text": "@here {{ who }} {{ who | safe }}", "data": {"embeds": [{"description": "{{ who }}"}]}}
    who = "@everyone @here <@1> <@&2> <#3> [bank](http://e) ada@example.org 1<2"
    shown = await said(home, "discord", "default", template, who=who)

    quiet = who.replace("@e", "@\u200be").replace("@h", "@\u200bh").replace("<@", "<\u200b@")
    quiet = quiet.replace("<#", "<\u200b#").replace("](", "]\u200b(").replace("ada@\u200b", "ada@")
    assert shown["text"] == f"@here {quiet} {who}"
    assert shown["data"]["embeds"][0]["description"] == quiet


@pytest.mark.parametrize(
    ("channel", "mode", "escaped"),
    [
        ("telegram", None, "&lt;b&gt;1.5*_ &amp; &quot;x&quot;"),
        ("telegram", {"parse_mode": "MarkdownV2"}, '<b\\>1\\.5\\*\\_ & "x"'),
        ("telegram", {"parse_mode": "Markdown"}, '<b>1.5\\*\\_ & "x"'),
        ("telegram", {"parse_mode": None}, '<b>1.5*_ & "x"'),
        ("plain", None, '<b>1.5*_ & "x"'),
        ("plain", {"parse_mode": "HTML"}, "&lt;b&gt;1.5*_ &amp; &quot;x&quot;"),
        ("plain", {"parse_mode": "{{ mode }}"}, "&lt;b&gt;1.5*_ &amp; &quot;x&quot;"),
    ],
)
async def test_a_value_is_escaped_for_the_parse_mode_of_telegram(
    home: AppHarness, channel: str, mode: dict[str, Any] | None, escaped: str
) -> None:
    """Medium 5: by the message's own mode, or the channel's; without a mode nothing is changed."""
    given = {"x": '<b>1.5*_ & "x"'} | ({"mode": "HTML"} if mode == {"parse_mode": "{{ mode }}"} else {})
    shown = await said(home, channel, "42", {"text": "<i>*{{ x }}", "data": mode}, **given)

    assert shown["text"] == f"<i>*{escaped}"


async def test_channels_without_markup_get_values_as_they_are(home: AppHarness) -> None:
    """Medium 5: text channels are unchanged, and `| safe` changes nothing there."""
    shown = await said(home, "out", "ada", {"text": "{{ x }} {{ x | safe | upper }}"}, x="<b>&")

    assert shown["text"] == "<b>& <B>&"


async def test_what_is_joined_or_changed_after_safe_is_escaped_again(home: AppHarness) -> None:
    """Medium 5: only a value that comes out of `| safe` itself goes in as it is."""
    page = '{{ (x | safe) ~ x }} {{ x | safe | upper }} {{ x | default(">") | safe }} {{ "<" }}'
    template = {"text": "", "data": {"html": page}}
    shown = await said(home, "mail", "ada@example.org", template, x="<")

    assert shown["data"]["html"] == "&lt;&lt; &lt; < &lt;"


async def test_broadcasts_escape_each_recipients_values(home: AppHarness) -> None:
    """Medium 5: the other way by which templates become messages; contacts' names are values, too."""
    template = {"name": "t", "text": "x", "data": {"html": "<b>{{ name }}</b>"}, "variables": {"name": "text"}}
    await home.http.post("/v1/templates", json=template)
    people = [{"address": "ada@example.org", "variables": {"name": "<i>"}}]
    plan = {"name": "b", "channel": "mail", "template": "t", "addresses": people}
    made = await home.http.post("/v1/broadcasts", json=plan)
    assert made.status_code in (200, 201, 202), made.text
    await home.act()

    found = [one for one in await home.everything() if one["to"] == "ada@example.org"]
    assert [(await home.show(one["id"]))["data"]["html"] for one in found] == ["<b>&lt;i&gt;</b>"]


async def test_the_caps_of_a_rendering_hold_for_what_escaping_adds(home: AppHarness) -> None:
    """S11: a value that grows by being escaped counts as long as it gets."""
    body = {"name": "t", "text": "", "data": {"html": "{{ x }}"}, "variables": {"x": "text"}}
    await home.http.post("/v1/templates", json=body)
    message = {"channel": "mail", "to": "a@example.org", "template": "t", "variables": {"x": '"' * 60_000}}
    answer = await home.http.post("/v1/messages", json=message)

    assert answer.status_code == 413 and "characters" in answer.text
