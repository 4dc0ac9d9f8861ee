-- Something that happened in a conversation beside its messages.
insert into steps (tenant, conversation, workflow, message, at, what, facts)
values (:tenant, :conversation, :workflow, :message, :at, :what, :facts)
