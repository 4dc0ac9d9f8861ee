-- Whether a message is, or was, at work as it read before its author changed it. Own file: its task is held meanwhile, so that nobody begins
-- with the old text unseen; before the inbox's own row, in the order of a settle.
with held as materialized (
  select state from tasks where id = (select task from inbox where source = :source and platform_id = :original) for update)
select i.n from inbox i
where i.source = :source and i.platform_id = :original and i.chat = :chat
  and (i.sender = :sender or (:sender = '' and cast(:text as text) is null))
  and coalesce(i.edited_text, i.text) is distinct from cast(:text as text)
  and i.deleted_at is null and (i.ended = 'done' or exists (select 1 from held where state in ('processing', 'done')))
