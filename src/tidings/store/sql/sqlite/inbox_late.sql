-- Whether a message is, or was, at work as it read before its author changed it. Own file: PostgreSQL holds the task meanwhile.
select i.n from inbox i
where i.source = :source and i.platform_id = :original and i.chat = :chat and (i.sender = :sender or (:sender = '' and :text is null))
  and coalesce(i.edited_text, i.text) is not :text
  and i.deleted_at is null
  and (i.ended = 'done' or exists (select 1 from tasks t where t.id = i.task and t.state in ('processing', 'done')))
