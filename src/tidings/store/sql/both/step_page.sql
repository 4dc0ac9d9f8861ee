-- What happened in a conversation beside its messages, oldest first.
select id, tenant, conversation, workflow, message, at, what, facts
from steps where tenant = :tenant and conversation = :conversation and id > cast(:after as bigint) order by id limit :limit
