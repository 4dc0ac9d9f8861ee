"""Messages from WhatsApp Cloud: judged by a foreign parser, filed under the right source and person."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from pywa.client import WhatsApp
from pywa.types.base_update import RawUpdate
from pywa.types.message import DeletedMessage, EditedMessage, Message
from pywa.types.message_status import MessageStatus
from pywa.types.system import PhoneNumberChange

from tidings.inbound.domain import IncomingKind, IncomingMessage
from tidings.inbound.sources import twilio, whatsapp_cloud
from tidings.inbound.sources.settings import SourceSettings
from tidings.inbound.webhooks import InboundWebhooks
from tidings.kernel.clock import ManualClock
from tidings.model.time import SECOND
from tidings.sandbox.group_chats import GroupChats, _meta, parse_chat_message
from tidings.sandbox.receipts import RECEIPT_KINDS, ReceiptOrigin, whatsapp_cloud_receipt
from tidings.sandbox.whatsapp_webhooks import user_id_of
from tidings.store.port import Step, Store

from .inbox_node import InboxNode

ANN, USER_ID, NUMBER = "+15551234567", "US.13491208655302741918", "106540352242922"
AT = 1_760_000_000 * SECOND
SOURCE = SourceSettings("wa", "whatsapp_cloud", channel="main")
CLIENT = WhatsApp(phone_id=NUMBER, token="token")


def webhook(sender: str = ANN, *, n: int = 7, account: str = NUMBER, at: int = AT, **said: Any) -> dict[str, Any]:
    """The sandbox's webhook for what a person does."""
    chats = GroupChats()
    chats.add(parse_chat_message({"channel": "whatsapp_cloud", "chat": "1", "sender": "1"}, chats, n=1, at=at))
    given = {"channel": "whatsapp_cloud", "chat": sender, "sender": sender, "name": "Ann", "text": "hi", **said}
    return _meta(parse_chat_message(given, chats, n=n, at=at), account)


def update(payload: dict[str, Any] | bytes) -> RawUpdate:
    """A webhook as pywa gets it."""
    raw = payload if isinstance(payload, bytes) else orjson.dumps(payload)
    return RawUpdate(raw, hmac_header=None, update_hash="x")


def read(payload: dict[str, Any]) -> IncomingMessage:
    """The only message of a webhook."""
    (one,) = whatsapp_cloud.incoming(SOURCE, payload)
    return one


# -- the sandbox, judged by pywa


@pytest.mark.parametrize("sender", [ANN, USER_ID])
def test_pywa_reads_every_message_webhook_of_the_sandbox(sender: str) -> None:
    """With the number that received it and the person's user id; the phone number may be missing."""
    said = Message.from_update(CLIENT, update(webhook(sender, reply_to="wamid.X")))
    edited = EditedMessage.from_update(CLIENT, update(webhook(sender, edits=1, text="hello")))
    deleted = DeletedMessage.from_update(CLIENT, update(webhook(sender, deletes=1)))
    in_group = Message.from_update(CLIENT, update(webhook(sender, chat="Y2FwaV9ncm91cDox")))

    assert (said.text, said.metadata.phone_number_id) == ("hi", NUMBER)
    assert (said.from_user.bsuid, said.from_user.wa_id) == (
        (user_id_of(ANN), "15551234567") if sender == ANN else (USER_ID, None)
    )
    assert said.reply_to_message is not None and said.reply_to_message.id == "wamid.X"
    assert (edited.original_message_id, edited.message.text) == ("wamid.said.1", "hello")
    assert deleted.original_message_id == "wamid.said.1"
    assert in_group.chat.id == "Y2FwaV9ncm91cDox"


def test_pywa_reads_changes_of_number_and_statuses_of_the_sandbox() -> None:
    """Statuses have contacts and our id; a failure has its code."""
    change = PhoneNumberChange.from_update(CLIENT, update(webhook(becomes="+15557654321")))
    assert (change.old_wa_id, change.new_wa_id) == ("15551234567", "15557654321")
    for to in (ANN, USER_ID):
        for what in RECEIPT_KINDS:
            origin = ReceiptOrigin("whatsapp_cloud", NUMBER, "wamid.1", to, "http://x", "secret", "0190-a1")
            call = whatsapp_cloud_receipt(origin, what, 131050 if what == "failed" else None, AT)
            status = MessageStatus.from_update(CLIENT, update(call.body))
            assert (status.status, status.tracker, status.metadata.phone_number_id) == (what, "0190-a1", NUMBER)
            assert status.from_user.bsuid == user_id_of(to)
            assert (status.error is not None and status.error.code == 131050) == (what == "failed")


# -- our reader


def sample(kind: str, content: Any, **message: Any) -> dict[str, Any]:
    """A webhook by the types of the platform."""
    one = {"from": "15551234567", "from_user_id": USER_ID, "id": "wamid.1", "timestamp": "1760000000", "type": kind}
    value = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "15550001111", "phone_number_id": NUMBER},
        "contacts": [{"profile": {"name": "Ann"}, "wa_id": "15551234567", "user_id": USER_ID}],
        "messages": [{name: v for name, v in {**one, kind: content, **message}.items() if v is not None}],
    }
    return {"entry": [{"id": "1", "changes": [{"field": "messages", "value": value}]}]}


MESSAGE, SYSTEM = IncomingKind.MESSAGE, IncomingKind.SYSTEM


@pytest.mark.parametrize(
    ("kind", "content", "text", "what"),
    [
        ("text", {"body": "hi"}, "hi", MESSAGE),
        ("document", {"id": "1", "caption": "the bill"}, "the bill", MESSAGE),
        ("button", {"text": "Yes", "payload": "y"}, "Yes", MESSAGE),
        ("interactive", {"type": "button_reply", "button_reply": {"id": "1", "title": "Yes"}}, "Yes", MESSAGE),
        ("interactive", {"type": "list_reply", "list_reply": {"id": "1", "title": "Night"}}, "Night", MESSAGE),
        (
            "interactive",
            {"type": "nfm_reply", "nfm_reply": {"name": "flow", "body": "Sent", "response_json": '{"day":"sat"}'}},
            '{"day":"sat"}',
            MESSAGE,
        ),
        ("reaction", {"message_id": "wamid.0", "emoji": "👍"}, "👍", SYSTEM),
        ("unsupported", {"type": "poll"}, "", SYSTEM),
        ("system", {"type": "customer_identity_changed", "body": "x changed"}, "x changed", SYSTEM),
    ],
)
def test_each_type_of_message_is_read(kind: str, content: Any, text: str, what: IncomingKind) -> None:
    """Texts, captions, labels of buttons and answers to flows are texts; the platform's own words are not."""
    one = read(sample(kind, content))

    assert (one.text, one.kind, one.sender, one.conversation) == (text, what, ANN, ANN)
    assert (one.user_id, one.account, one.name) == (USER_ID, NUMBER, "Ann")


def test_a_sender_without_a_number_has_the_user_id_and_one_without_any_id_is_alone() -> None:
    """Two people never share an empty sender."""
    hidden = read(sample("text", {"body": "hi"}, **{"from": None}))
    by_contact = read(sample("text", {"body": "hi"}, **{"from": None, "from_user_id": None}))
    assert (hidden.sender, hidden.conversation, by_contact.sender) == (USER_ID, USER_ID, USER_ID)
    nobody = sample("text", {"body": "hi"}, **{"from": None, "from_user_id": None})
    nobody["entry"][0]["changes"][0]["value"]["contacts"] = []
    first = read(nobody)
    nobody["entry"][0]["changes"][0]["value"]["messages"][0]["id"] = "wamid.2"
    assert first.sender and first.sender != read(nobody).sender


def test_edits_and_deletions_are_not_new_messages() -> None:
    """Each names its original; without one it is the platform's word."""
    edit = {"original_message_id": "wamid.0", "message": {"type": "text", "text": {"body": "new"}}}
    edited, deleted = read(sample("edit", edit)), read(sample("revoke", {"original_message_id": "wamid.0"}))

    assert (edited.kind, edited.original, edited.text) == (IncomingKind.EDIT, "wamid.0", "new")
    assert (deleted.kind, deleted.original, deleted.text) == (IncomingKind.DELETE, "wamid.0", "")
    assert read(sample("edit", {})).kind is SYSTEM
    assert read(sample("revoke", None)).kind is SYSTEM


def test_twilio_messages_are_read() -> None:
    """SMS by number; WhatsApp by number or user id, with the prefix taken off."""
    source = SourceSettings("sms", "twilio", channel="sms")
    form = {"MessageSid": "SM1", "From": ANN, "Body": "hi", "NumMedia": "2", "SmsStatus": "received"}
    (sms,) = twilio.incoming(source, form)
    (hidden,) = twilio.incoming(source, {**form, "From": f"whatsapp:{USER_ID}", "ExternalUserId": USER_ID})
    assert (sms.id, sms.sender, sms.conversation, sms.text, sms.attachments) == ("SM1", ANN, ANN, "hi", 2)
    assert (hidden.sender, hidden.user_id) == (USER_ID, USER_ID)
    assert twilio.incoming(source, {**form, "From": ""}) == twilio.incoming(source, {}) == []


# -- in the inbox


@pytest.fixture
async def world(store: Store, clock: ManualClock) -> InboxNode:
    """A node with Ann on the roster, by her number."""
    made = await InboxNode(store, clock).open()
    await made.roster.put({"sender": ANN, "name": "Ann", "squad": "42"})
    return made


def listening(world: InboxNode, *sources: SourceSettings) -> InboundWebhooks:
    """The webhooks of these sources."""
    return InboundWebhooks(world.clock, world.intake, {source.name: source for source in sources})


async def test_a_person_who_hides_the_number_stays_the_same_person(world: InboxNode) -> None:
    """A message with both ids teaches which belongs together; edits by either id find their message."""
    ears, at, user_id = listening(world, SOURCE), world.second(), user_id_of(ANN)
    for payload in (
        webhook(user_id, n=10, at=at, text="who am I?"),
        webhook(ANN, n=11, at=at, text="with my number"),
        webhook(user_id, n=12, at=at, text="without it"),
        webhook(USER_ID, n=13, at=at, text="a stranger"),
    ):
        await ears.heard("main", {NUMBER: "main"}, payload)

    rows = await world.all()
    assert [(row["conversation"], row["sender"], row["state"]) for row in rows] == [
        (f"wa/{user_id}", user_id, "skipped"),
        (f"wa/{ANN}", ANN, "pending"),
        (f"wa/{ANN}", ANN, "received"),
        (f"wa/{USER_ID}", USER_ID, "skipped"),
    ]


async def test_a_new_number_or_user_id_is_recorded_and_keeps_its_opt_outs(world: InboxNode) -> None:
    """An admin is told whom to change; what the person refused before is still refused."""
    out = '[{"address":"+15551234567","channel":"main","reason":"sent STOP","evidence":"inbox 1"}]'
    await world.store.write([Step("suppression_add", {"rows": out, "tenant": "default"})])
    ears, at = listening(world, SOURCE), world.second()
    await ears.heard("main", {NUMBER: "main"}, webhook(ANN, n=20, at=at, becomes="+15557654321"))
    await ears.heard("main", {NUMBER: "main"}, webhook(user_id_of("+15557654321"), n=21, at=at, text="me again"))

    rows = await world.store.read("suppression_find", address="+15557654321", tenant="default")
    assert [(row["channel"], row["evidence"]) for row in rows] == [("main", "inbox 1")]
    (notice,) = world.notices
    assert notice.type == "inbox.identity_changed"
    assert "from +15551234567 to +15557654321" in notice.problem and "roster" in notice.remedy
    changed, again = await world.all()
    assert (changed["kind"], changed["state"], changed["text"]) == (
        "system", "skipped", "User changed from +15551234567 to +15557654321",
    )  # fmt: skip
    assert again["sender"] == "+15557654321", "the new user id belongs to the new number"


async def test_each_message_goes_to_the_source_of_the_number_that_received_it(world: InboxNode) -> None:
    """Several numbers of one app share an address; an unknown number is recorded with what to do (D1)."""
    first, second = SOURCE, SourceSettings("shop", "whatsapp_cloud", channel="shop")
    ears, at = listening(world, first, second), world.second()
    accounts = {NUMBER: "main", "222222222": "shop", "333333333": "quiet"}
    for n, account in enumerate([NUMBER, "222222222", "333333333", "444444444"], 30):
        for _ in range(2):
            await ears.heard("main", accounts, webhook(ANN, n=n, at=at, account=account))

    rows = await world.all()
    assert [(row["source"], row["state"], row["reason"]) for row in rows] == [
        ("wa", "pending", None),
        ("shop", "pending", None),
        ("wa", "skipped", "sent to 333333333, which no source has"),
        ("wa", "skipped", "sent to 444444444, which no source has"),
    ]
    with pytest.raises(Exception, match="configure its number"):
        await world.inbox.retry(rows[-1]["id"])
