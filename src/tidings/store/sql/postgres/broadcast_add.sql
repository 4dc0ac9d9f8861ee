-- A new broadcast, of the lot that lot_add has just made. Own file: the last number of a sequence.
insert into broadcasts (lot, id, tenant, name, channel, xref, starts, content, template, template_version, options,
  schedule, occurrence, accepted_at, scheduled_at, changed_at, look_at, gate, retry_in)
values (currval(pg_get_serial_sequence('lots', 'id')), :id, :tenant, :name, :channel, :xref, :starts, :content, :template,
  :template_version, :options, :schedule, :occurrence, :accepted_at, :scheduled_at, :accepted_at, :look_at, :gate, :retry_in)
returning lot
