-- Whether a message is, or was, at work as it read before it was changed. Own file: PostgreSQL holds the task meanwhile.
select i.n from inbox i
where i.source = :source and i.platform_id = :original and coalesce(i.edited_text, i.text) is not :text
  and i.deleted_at is null
  and (i.ended = 'done' or exists (select 1 from tasks t where t.id = i.task and t.state in ('processing', 'done')))
