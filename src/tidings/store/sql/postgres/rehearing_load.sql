-- Kept messages that are worked through now. Own file: arrays.
select r.task, r.message, t.tenant, t.conversation, t.speaker, t.text, t.heard_at, r.verdict
from rehearings r join hearings t on t.message = r.message where r.task = any(:ids::bigint[])
