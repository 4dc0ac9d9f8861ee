-- A new broadcast of the group that group_add has just created. Own file: the last number of a sequence.
insert into broadcasts (group_id, id, tenant, name, channel, xref, starts, content, template, template_version, options,
  schedule, occurrence, accepted_at, scheduled_at, changed_at, check_at, gate, retry_in)
values (currval(pg_get_serial_sequence('task_groups', 'id')), :id, :tenant, :name, :channel, :xref, :starts, :content, :template,
  :template_version, :options, :schedule, :occurrence, :accepted_at, :scheduled_at, :accepted_at, :check_at, :gate, :retry_in)
returning group_id
