-- A message was worked through. No row back: it had been before.
insert into hearings (message, tenant, conversation, squad, workflow, decision, reason, held, at, heard_at, speaker, text, facts)
values (:message, :tenant, :conversation, :squad, :workflow, :decision, :reason, :held, :at, :heard_at, :speaker, :text, :facts)
on conflict do nothing returning n
