-- A message was worked through. No row back: it had been before.
insert into handled_messages (message, tenant, conversation, squad, workflow, decision, reason, deferred, at, sent_at, speaker, text, facts)
values (:message, :tenant, :conversation, :squad, :workflow, :decision, :reason, :deferred, :at, :sent_at, :speaker, :text, :facts)
on conflict do nothing returning n
