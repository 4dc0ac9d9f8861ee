-- Kept messages that are worked through now. Own file: a list goes in as an array in memory.
select r.task, r.message, t.tenant, t.conversation, t.speaker, t.text, t.heard_at, r.verdict
from rehearings r join hearings t on t.message = r.message where r.task in (select value from carray(:ids))
