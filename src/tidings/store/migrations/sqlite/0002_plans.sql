-- Plans: schedules, broadcasts with their frozen recipients, contacts, templates; what is told to others; roll-out.

-- A lot is a set of tasks that belong together and are counted exactly: a broadcast, a job.
create table lots (
  id   integer primary key autoincrement,
  kind text not null
) strict;
alter table tasks add column lot integer;
-- What of a lot still waits, so that a few thousand can be parked or cancelled at once.
create index tasks_lot on tasks (lot, id) where lot is not null and state = 'pending';

-- How many tasks of a lot ended in which way.
create table lot_counts (
  lot  integer not null,
  n    integer not null,
  what text not null check (what in ('done', 'failed', 'held', 'cancelled', 'expired', 'skipped')),
  primary key (lot, what)
) strict;

-- Each move into or out of an end is counted. Held: nobody knows whether it was sent. Skipped: it ended without having
-- been sent, and nobody asked for it.
create trigger tasks_count_end after update of state on tasks
when new.lot is not null and new.state <> old.state and new.state in ('done', 'failed', 'cancelled', 'expired') begin
  insert into lot_counts (lot, what, n) values (new.lot, case when new.state = 'failed' and new.unknown then 'held'
    when new.state = 'cancelled' and not new.cancel_asked then 'skipped' else new.state end, 1)
  on conflict (lot, what) do update set n = n + 1;
end;
create trigger tasks_count_return after update of state on tasks
when new.lot is not null and new.state <> old.state and old.state = 'failed' begin
  update lot_counts set n = n - 1 where lot = new.lot and what = case when old.unknown then 'held' else 'failed' end;
end;

-- A message of a broadcast is frozen first and gets its task later; its content is '' when the broadcast has it.
alter table messages add column lot integer;
alter table messages add column part integer;
alter table messages add column contact text;
alter table messages add column variables text;
create unique index messages_lot on messages (lot, recipient) where lot is not null;
create index messages_part on messages (lot, part, task) where part is not null;

create table broadcasts (
  lot              integer primary key,
  id               text not null unique,
  tenant           text not null,
  name             text not null,
  channel          text not null,
  xref             text,
  state            text not null default 'loading' check (state in
                   ('loading', 'new', 'pending', 'paused', 'completed', 'failed', 'cancelled', 'expired')),
  reason           text,
  starts           text not null check (starts in ('immediate', 'scheduled', 'manual')),
  content          text not null,
  template         text,
  template_version integer,
  options          text not null,
  schedule         text,
  occurrence       integer,
  accepted_at      integer not null,
  scheduled_at     integer,
  frozen_at        integer,
  started_at       integer,
  paused_at        integer,
  ended_at         integer,
  changed_at       integer not null,
  look_at          integer,
  total            integer not null default 0,
  duplicates       integer not null default 0,
  refused          integer not null default 0,
  lines            integer not null default 0,
  digest           text not null default '',
  taken            integer not null default 0,
  gate             integer,
  paced_to         integer,
  paused_for       integer not null default 0,
  retry_in         integer,
  retry_to         integer,
  retry_held       integer not null default 0,
  version          integer not null default 0,
  unique (schedule, occurrence)
) strict;
-- What the pump must look at, and when.
create index broadcasts_look on broadcasts (look_at) where look_at is not null;
create index broadcasts_newest on broadcasts (tenant, id);
create index broadcasts_xref on broadcasts (tenant, xref, id) where xref is not null;

-- Recipients of one time zone: each part starts, rests and goes on by its own clock.
create table broadcast_parts (
  lot       integer not null,
  part      integer not null,
  zone      text,
  total     integer not null default 0,
  taken     integer not null default 0,
  taken_to  integer not null default 0,
  starts_at integer,
  primary key (lot, part)
) strict;

create table schedules (
  id         text primary key,
  tenant     text not null,
  name       text not null,
  state      text not null default 'active' check (state in ('active', 'paused', 'ended')),
  rule       text not null,
  zone       text not null,
  makes      text not null check (makes in ('message', 'broadcast')),
  body       text not null,
  missed     text not null default 'latest' check (missed in ('skip', 'latest', 'all')),
  grace      integer not null,
  start_at   integer,
  end_at     integer,
  most       integer,
  fired      integer not null default 0,
  next_at    integer,
  last_at    integer,
  last_made  text,
  problem    text,
  version    integer not null default 0,
  created_at integer not null,
  changed_at integer not null,
  check (next_at is null or state = 'active')
) strict;
-- The one query of a tick.
create index schedules_due on schedules (next_at) where next_at is not null;
create index schedules_newest on schedules (tenant, id);
create index schedules_state on schedules (tenant, state, id);

-- One occurrence runs once: whoever comes second finds the row.
create table occurrences (
  schedule text not null,
  at       integer not null,
  told_at  integer not null,
  outcome  text not null check (outcome in ('made', 'missed', 'skipped', 'refused')),
  made     text,
  detail   text,
  primary key (schedule, at)
) strict;
-- Which schedule a message came from.
create index occurrences_made on occurrences (made) where made is not null;
-- What is old enough to be forgotten.
create index occurrences_told on occurrences (told_at);

create table contacts (
  id         text primary key,
  tenant     text not null,
  name       text not null,
  zone       text,
  language   text,
  tags       text not null default '[]',
  attributes text not null default '{}',
  created_at integer not null,
  changed_at integer not null
) strict;
create index contacts_newest on contacts (tenant, id);
create table contact_addresses (
  tenant  text not null,
  channel text not null,
  address text not null,
  contact text not null,
  primary key (tenant, channel, address)
) strict;
-- A contact has one address on a channel.
create unique index contact_addresses_contact on contact_addresses (contact, channel);

-- A list has members; a saved filter finds them anew each time.
create table lists (
  id         text primary key,
  tenant     text not null,
  name       text not null,
  filter     text,
  created_at integer not null,
  unique (tenant, name)
) strict;
create table list_members (
  list    text not null,
  contact text not null,
  primary key (list, contact)
) strict;
create index list_members_contact on list_members (contact);

-- Who must not be written to; channel '' means on every channel. Looked up before each send.
create table suppressions (
  tenant  text not null,
  address text not null,
  channel text not null,
  reason  text not null,
  at      integer not null,
  primary key (tenant, address, channel)
) strict;

create table templates (
  id         text primary key,
  tenant     text not null,
  name       text not null,
  version    integer not null default 0,
  created_at integer not null,
  changed_at integer not null,
  gone_at    integer,
  unique (tenant, name)
) strict;
create table template_versions (
  template   text not null,
  version    integer not null,
  content    text not null,
  variables  text not null,
  created_at integer not null,
  primary key (template, version)
) strict;

-- Who wants to be told of what; and what is still to be told, written with the change that it tells of.
create table subscriptions (
  id         text primary key,
  tenant     text not null,
  url        text not null,
  events     text not null,
  secret     text not null,
  active     integer not null default true,
  created_at integer not null,
  changed_at integer not null,
  old_secret text,
  old_until  integer,
  failing_since integer,
  problem    text
) strict;
create index subscriptions_newest on subscriptions (tenant, id);
create table outbox (
  id      integer primary key autoincrement,
  at      integer not null,
  tenant  text not null,
  type    text not null,
  subject text not null,
  body    text not null,
  target  text
) strict;

-- The rare moves (by a person, a rule, late news) are told here; settle tells of its own in one go.
create trigger tasks_tell after update of state on tasks
when old.state <> 'processing' and new.state <> 'processing' and old.state <> new.state
  and new.kind = 'message' and new.queue <> 'events' begin
  insert into outbox (at, tenant, type, subject, body)
  select new.changed_at, new.tenant, w.told, m.id, json_object('tries', new.tries)
  from (select 'message.' || case when new.state = 'done' then 'sent' when new.state = 'pending' then 'retried'
    when new.state = 'failed' and new.unknown then 'held' when new.state = 'cancelled' and not new.cancel_asked then 'skipped'
    else new.state end as told) w cross join messages m
  where m.task = new.id and exists (select 1 from subscriptions s where s.tenant = new.tenant and s.active
    and (s.events like '%"*"%' or s.events like '%"message.*"%' or s.events like '%"' || w.told || '"%'));
end;

-- Roll-out: how much of a channel's traffic really goes out, and what would have.
alter table queues add column mode text not null default 'live' check (mode in ('live', 'observe', 'shadow'));
alter table queues add column share integer not null default 100 check (share between 0 and 100);
create table shadows (
  id        integer primary key autoincrement,
  channel   text not null,
  side      text not null check (side in ('ours', 'theirs')),
  recipient text not null,
  digest    text not null,
  at        integer not null,
  ref       text
) strict;
create unique index shadows_ref on shadows (channel, side, ref) where ref is not null;
create index shadows_at on shadows (at);
create index shadows_recipient on shadows (channel, recipient, at, id);
-- What was switched, so that each step has a way back.
create table rollouts (
  id           integer primary key autoincrement,
  channel      text not null,
  at           integer not null,
  mode         text not null,
  share        integer not null,
  mode_before  text not null,
  share_before integer not null,
  reason       text
) strict;
create index rollouts_channel on rollouts (channel, id);

-- What was taken over from another system's table, so that a repeat takes nothing twice and a run can be undone.
create table imports (
  id         text primary key,
  tenant     text not null,
  source     text not null,
  began_at   integer not null,
  ended_at   integer,
  undone_at  integer,
  taken      integer not null default 0
) strict;
create table import_rows (
  source  text not null,
  key     text not null,
  import  text not null,
  message text not null,
  primary key (source, key)
) strict;
create index import_rows_import on import_rows (import, key);
