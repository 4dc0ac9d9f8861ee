-- Kept messages that are worked through now. Own file: arrays.
select r.task, r.message, t.tenant, t.conversation, t.speaker, t.text, t.sent_at, r.verdict
from message_reruns r join handled_messages t on t.message = r.message where r.task = any(:ids::bigint[])
