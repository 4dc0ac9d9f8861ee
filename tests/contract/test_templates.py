"""Templates on both databases: versions that never change, repeats, twins, and messages made of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tidings.kernel.clock import ManualClock
from tidings.model.errors import Conflict, Invalid, NotFound, TidingsError
from tidings.model.message import Draft
from tidings.outbound.contacts.service import ContactService
from tidings.outbound.schedules.occurrence_builder import MessageOccurrenceBuilder, Occurrence
from tidings.outbound.templates.service import TemplateService
from tidings.store.port import Store

from .kernel_harness import KernelHarness

BODY: dict[str, Any] = {"name": "welcome", "text": "Hello {{ name }}", "variables": {"name": "text"}}


@pytest.fixture
def templates(store: Store, clock: ManualClock) -> TemplateService:
    """All that may be done with templates."""
    return TemplateService(store, clock)


@pytest.fixture
async def world(store: Store, clock: ManualClock) -> KernelHarness:
    """An engine that sends."""
    return await KernelHarness(store, clock).open()


async def said(templates: TemplateService, place: str, version: int | None = None, /, **values: Any) -> str:
    """What a template says with these values."""
    frozen = await templates.frozen(place, version)
    return str(frozen.compiled.render(values)["text"])


# -- versions


async def test_a_template_is_kept_with_its_variables(templates: TemplateService) -> None:
    """Issue 3, part 5: what was saved is shown, found by name and by id."""
    made = (await templates.create(BODY)).answer

    assert (made["name"], made["version"], made["text"]) == ("welcome", 1, "Hello {{ name }}")
    assert made["variables"]["name"] == {"type": "text", "required": True, "default": None, "example": None}
    assert await templates.show("welcome") == await templates.show(made["id"]) == made


async def test_editing_makes_a_version_and_leaves_those_before(templates: TemplateService) -> None:
    """Issue 3, part 5: who has frozen version 1 keeps its words; no number means the newest."""
    await templates.create(BODY)
    first = await templates.frozen("welcome")
    revised = (await templates.revise("welcome", {"text": "Hi!"})).answer

    assert revised["version"] == 2
    assert first.compiled.render({"name": "Ada"})["text"] == "Hello Ada"
    assert await said(templates, "welcome") == "Hi!"
    assert await said(templates, "welcome", 1, name="Ada") == "Hello Ada"
    assert [item["version"] for item in (await templates.versions("welcome")).items] == [2, 1]


async def test_two_editors_at_once_get_two_versions(templates: TemplateService) -> None:
    """Nobody's words are lost: each version has the text of one of them."""
    await templates.create(BODY)

    made = await asyncio.gather(*(templates.revise("welcome", {"text": f"v{n}"}) for n in range(10)))

    assert sorted(item.answer["version"] for item in made) == list(range(2, 12))
    for item in made:
        kept = await templates.show("welcome", version=item.answer["version"])
        assert kept["text"] == item.answer["text"]


async def test_a_name_is_taken_once(templates: TemplateService) -> None:
    """Twins of different keys: one is made, the others are told; a repeat of theirs is told the same."""
    calls = [templates.create(BODY | {"text": f"{n}"} | {"variables": {}}, key=f"k{n}") for n in range(8)]

    made = await asyncio.gather(*calls, return_exceptions=True)

    assert sum(not isinstance(item, BaseException) for item in made) == 1
    assert all(isinstance(item, Conflict) for item in made if isinstance(item, BaseException))
    loser = next(n for n, item in enumerate(made) if isinstance(item, BaseException))
    with pytest.raises(Conflict, match="already"):
        await templates.create(BODY | {"text": f"{loser}"} | {"variables": {}}, key=f"k{loser}")


async def test_the_same_key_saves_once(templates: TemplateService) -> None:
    """B4: the first answer again, for a template and for a version; another body is refused."""
    first = await templates.create(BODY, key="a")
    again = await templates.create(BODY, key="a")
    edited = await templates.revise("welcome", {"text": "Hi"}, key="b")
    repeated = await templates.revise("welcome", {"text": "Hi"}, key="b")

    assert (first.replayed, again.replayed, repeated.replayed) == (False, True, True)
    assert again.answer["id"] == first.answer["id"]
    assert repeated.answer["version"] == edited.answer["version"] == 2
    with pytest.raises(Invalid, match="another body"):
        await templates.create(BODY | {"text": "other"}, key="a")


async def test_a_bad_template_is_refused_and_nothing_is_kept(templates: TemplateService) -> None:
    """Issue 3, bad input: an unknown variable, a bomb and plain nonsense change nothing."""
    for text in ("{{ nam }}", "{% for i in range(10) %}x{% endfor %}", "{{ name", ""):
        with pytest.raises(Invalid):
            await templates.create(BODY | {"text": text})

    assert (await templates.page()).items == []


async def test_lists_go_on_where_they_ended(templates: TemplateService) -> None:
    """A page ends with the place of the next; retired ones are shown on request only."""
    for name in ("a", "b", "c"):
        await templates.create({"name": name, "text": "x"})
    await templates.retire("b")

    page = await templates.page(limit=1)
    rest = await templates.page(after=page.next)

    assert [item["name"] for item in [*page.items, *rest.items]] == ["a", "c"]
    assert [item["name"] for item in (await templates.page(retired=True)).items] == ["a", "b", "c"]
    assert [i["version"] for i in (await templates.versions("a", limit=1)).items] == [1]


async def test_a_retired_template_is_not_used_and_can_come_back(templates: TemplateService) -> None:
    """Nothing new is made of it, nothing of it is lost."""
    await templates.create(BODY)
    shown = await templates.retire("welcome")

    assert shown["retired_at"] is not None
    for use in (templates.frozen("welcome"), templates.revise("welcome", {"text": "x"})):
        with pytest.raises(Conflict, match="retired"):
            await use
    assert (await templates.restore("welcome"))["retired_at"] is None
    assert await said(templates, "welcome", name="Ada") == "Hello Ada"


async def test_what_is_not_there_is_said(templates: TemplateService) -> None:
    """A name, or a version, that does not exist."""
    await templates.create(BODY)

    with pytest.raises(NotFound, match="no template 'welcom'"):
        await templates.frozen("welcom")
    for version in (0, 2, -1, 1 << 40):
        with pytest.raises(NotFound, match="no version"):
            await templates.frozen("welcome", version)


async def test_another_tenant_sees_none_of_it(templates: TemplateService) -> None:
    """A name belongs to its tenant, and so does an id."""
    made = (await templates.create(BODY)).answer

    for place in ("welcome", made["id"]):
        with pytest.raises(NotFound):
            await templates.show(place, tenant="other")
    assert (await templates.create(BODY, tenant="other")).answer["id"] != made["id"]


# -- messages made of them


async def test_a_message_is_rendered_when_it_is_accepted(world: KernelHarness) -> None:
    """Design 4: accept renders; what is edited later does not change what was accepted."""
    await world.messages.templates.create(BODY)
    id_ = await world.send(text="", template="welcome", variables={"name": "Ada"})
    await world.messages.templates.revise("welcome", {"text": "Changed"})

    await world.step()

    assert (await world.show(id_))["text"] == "Hello Ada"
    assert [message.text for message in world.channel.sent] == ["Hello Ada"]


async def test_a_missing_variable_is_refused_before_anything_is_sent(world: KernelHarness) -> None:
    """Issue 3, part 5: named, and no message exists."""
    await world.messages.templates.create(BODY)

    with pytest.raises(Invalid, match="'name' is missing") as error:
        await world.send(text="", template="welcome")

    assert error.value.field == "variables.name"
    assert (await world.messages.page()).items == []


async def test_a_repeated_message_gets_its_first_answer_though_the_template_is_gone(world: KernelHarness) -> None:
    """B4: the key is looked up before anything is judged."""
    await world.messages.templates.create(BODY)
    draft = Draft("main", "ada", template="welcome", variables={"name": "Ada"})
    first = await world.messages.accept(draft, key="k")
    await world.messages.templates.retire("welcome")

    again = await world.messages.accept(draft, key="k")

    assert (again.id, again.replayed) == (first.id, True)


async def test_a_schedule_takes_the_newest_version_each_time_or_the_one_it_names(world: KernelHarness) -> None:
    """A8: what an occurrence makes is rendered then; a retired template is told as the reason."""
    maker = MessageOccurrenceBuilder(world.messages)
    body = {"channel": "main", "to": "ada", "template": "round", "variables": {"n": 7}}
    await world.messages.templates.create({"name": "round", "text": "One {{ n }}", "variables": {"n": "number"}})
    await world.messages.templates.revise("round", {"text": "Two {{ n }}", "variables": {"n": "number"}})
    occasion = Occurrence("s", world.clock.now(), world.clock.now())

    newest = await maker.prepare(body, occasion)
    named = await maker.prepare(body | {"template_version": 1}, occasion)
    await world.messages.templates.retire("round")

    assert [making.rows[0][6] for making in (newest, named)] == ['{"text":"Two 7"}', '{"text":"One 7"}']
    with pytest.raises(Conflict, match="'round' is retired"):
        await maker.prepare(body, occasion)


async def test_a_bulk_call_renders_each_line_and_reports_the_bad_one(world: KernelHarness) -> None:
    """One line without its variable is told; the others are accepted, all of the same version."""
    await world.messages.templates.create(BODY)

    async def drafts() -> AsyncIterator[tuple[int, Draft | TidingsError]]:
        for number, values in enumerate([{"name": "Ada"}, {}, {"name": "Bo"}], 1):
            yield number, Draft("main", f"to{number}", template="welcome", variables=values)

    lines = [line async for chunk in world.messages.accept_many(drafts()) for line in chunk]

    assert [line.error is None for line in lines] == [True, False, True]
    texts = {item["to"]: item["text"] for item in (await world.messages.page()).items}
    assert texts == {"to1": "Hello Ada", "to3": "Hello Bo"}


async def test_a_template_knows_the_contact_behind_the_address(store: Store, world: KernelHarness) -> None:
    """Name, language and zone of whoever has that address on that channel; nobody else's."""
    await ContactService(store, world.clock, world.channels).create(
        {
            "name": "Bea",
            "addresses": {"main": "bea"},
            "timezone": "Asia/Kathmandu",
            "language": "de",
            "tags": ["vip"],
            "attributes": {"city": "Pokhara"},
        }
    )
    await world.messages.templates.create(
        {
            "name": "visit",
            "text": "{{ contact.name }} in {{ contact.attributes.city }}: {{ at|date('full') }} {{ at|time }}"
            "{% if 'vip' in contact.tags %}!{% endif %}",
            "variables": {"at": "date"},
        }
    )
    values = {"at": "2027-01-15T20:00:00Z"}

    id_ = await world.send(to="bea", text="", template="visit", variables=values)

    assert (await world.show(id_))["text"] == "Bea in Pokhara: Samstag, 16. Januar 2027 01:45!"
    with pytest.raises(Invalid, match="'name' is not defined"):
        await world.send(to="stranger", text="", template="visit", variables=values)


async def test_a_preview_says_what_would_be_sent(templates: TemplateService) -> None:
    """Issue 3, part 5: with a sample contact, with examples, and without saving."""
    body = {"text": "{{ contact.name }}: {{ n|number(2) }}", "variables": {"n": {"type": "number", "example": 1234}}}
    await templates.create({"name": "bill", **body})

    alone = await templates.preview("bill", {})
    told = await templates.preview("bill", {"contact": {"name": "Uwe", "language": "de"}, "variables": {"n": 5}})
    unsaved = await templates.trial({"template": body})

    assert (alone["text"], alone["examples"]) == ("Ada Example: 1,234.00", ["n"])
    assert (told["text"], told["examples"], told["contact"]["name"]) == ("Uwe: 5,00", [], "Uwe")
    assert unsaved["text"] == alone["text"]
    with pytest.raises(Invalid, match="time zone"):
        await templates.preview("bill", {"contact": {"timezone": "Mars/Base"}})
