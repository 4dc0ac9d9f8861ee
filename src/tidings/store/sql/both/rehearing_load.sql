-- A kept message that is worked through now.
select r.message, r.verdict, t.tenant, t.conversation, t.heard_at, t.speaker, t.text, t.squad
from rehearings r join hearings t on t.message = r.message where r.task = :task
