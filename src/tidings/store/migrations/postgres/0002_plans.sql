-- Plans: schedules, broadcasts with their frozen recipients, contacts, templates; what is told to others; roll-out.

-- A lot is a set of tasks that belong together and are counted exactly: a broadcast, a job.
create table lots (
  id   bigint generated always as identity primary key,
  kind text not null
);
alter table tasks add column lot bigint;
-- What of a lot still waits, so that a few thousand can be parked or cancelled at once.
create index tasks_lot on tasks (lot, id) where lot is not null and state = 'pending';

-- How many tasks of a lot ended in which way, as differences that are summed up; packed now and then.
create table lot_counts (
  lot  bigint not null,
  n    bigint not null,
  what text not null check (what in ('done', 'failed', 'held', 'cancelled', 'expired', 'skipped'))
);
create index lot_counts_lot on lot_counts (lot);

-- The word that a task is counted under; null while it is open. Held: nobody knows whether it was sent.
-- Skipped: it ended without having been sent, and nobody asked for it.
create function tidings_counted(state text, unknown boolean, cancel_asked boolean) returns text
language sql immutable as $$
  select case when state = 'failed' and unknown then 'held' when state = 'cancelled' and not cancel_asked then 'skipped'
    when state in ('done', 'failed', 'cancelled', 'expired') then state end $$;

-- The rare moves (by a person, a rule, late news) are counted here; settle counts its own in one go.
create function tidings_count_lot() returns trigger language plpgsql as $$
declare
  before text := tidings_counted(old.state, old.unknown, old.cancel_asked);
  after text := tidings_counted(new.state, new.unknown, new.cancel_asked);
begin
  if before is distinct from after then
    insert into lot_counts (lot, what, n)
    select new.lot, what, n from (values (before, -1), (after, 1)) c(what, n) where what is not null;
  end if;
  return null;
end $$;
create trigger tasks_count_lot after update of state on tasks for each row
  when (new.lot is not null and old.state <> 'processing' and new.state <> 'processing')
  execute function tidings_count_lot();

-- A message of a broadcast is frozen first and gets its task later; its content is '' when the broadcast has it.
alter table messages
  add column lot       bigint,
  add column part      smallint,
  add column contact   text,
  add column variables text;
create unique index messages_lot on messages (lot, recipient) where lot is not null;
create index messages_part on messages (lot, part, task) where part is not null;

create table broadcasts (
  lot              bigint primary key,
  id               text collate "C" not null unique,
  tenant           text not null,
  name             text not null,
  channel          text collate "C" not null,
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
  occurrence       bigint,
  accepted_at      bigint not null,
  scheduled_at     bigint,
  frozen_at        bigint,
  started_at       bigint,
  paused_at        bigint,
  ended_at         bigint,
  changed_at       bigint not null,
  look_at          bigint,
  total            bigint not null default 0,
  duplicates       bigint not null default 0,
  refused          bigint not null default 0,
  lines            bigint not null default 0,
  digest           text not null default '',
  taken            bigint not null default 0,
  gate             bigint,
  paced_to         bigint,
  paused_for       bigint not null default 0,
  retry_in         bigint,
  retry_to         bigint,
  retry_held       boolean not null default false,
  version          integer not null default 0,
  unique (schedule, occurrence)
);
-- What the pump must look at, and when.
create index broadcasts_look on broadcasts (look_at) where look_at is not null;
create index broadcasts_newest on broadcasts (tenant, id);
create index broadcasts_xref on broadcasts (tenant, xref, id) where xref is not null;

-- Recipients of one time zone: each part starts, rests and goes on by its own clock.
create table broadcast_parts (
  lot       bigint not null,
  part      smallint not null,
  zone      text,
  total     bigint not null default 0,
  taken     bigint not null default 0,
  taken_to  bigint not null default 0,
  starts_at bigint,
  primary key (lot, part)
);

create table schedules (
  id         text collate "C" primary key,
  tenant     text not null,
  name       text not null,
  state      text not null default 'active' check (state in ('active', 'paused', 'ended')),
  rule       text not null,
  zone       text not null,
  makes      text not null check (makes in ('message', 'broadcast')),
  body       text not null,
  missed     text not null default 'latest' check (missed in ('skip', 'latest', 'all')),
  grace      bigint not null,
  start_at   bigint,
  end_at     bigint,
  most       integer,
  fired      integer not null default 0,
  next_at    bigint,
  last_at    bigint,
  last_made  text,
  problem    text,
  version    integer not null default 0,
  created_at bigint not null,
  changed_at bigint not null,
  check (next_at is null or state = 'active')
);
-- The one query of a tick.
create index schedules_due on schedules (next_at) where next_at is not null;
create index schedules_newest on schedules (tenant, id);
create index schedules_state on schedules (tenant, state, id);

-- One occurrence runs once: whoever comes second finds the row.
create table occurrences (
  schedule text collate "C" not null,
  at       bigint not null,
  told_at  bigint not null,
  outcome  text not null check (outcome in ('made', 'missed', 'skipped', 'refused')),
  made     text,
  detail   text,
  primary key (schedule, at)
);
-- Which schedule a message came from.
create index occurrences_made on occurrences (made) where made is not null;
-- What is old enough to be forgotten.
create index occurrences_told on occurrences (told_at);

create table contacts (
  id         text collate "C" primary key,
  tenant     text not null,
  name       text not null,
  zone       text,
  language   text,
  tags       text not null default '[]',
  attributes text not null default '{}',
  created_at bigint not null,
  changed_at bigint not null
);
create index contacts_newest on contacts (tenant, id);
create table contact_addresses (
  tenant  text not null,
  channel text collate "C" not null,
  address text collate "C" not null,
  contact text collate "C" not null,
  primary key (tenant, channel, address)
);
-- A contact has one address on a channel.
create unique index contact_addresses_contact on contact_addresses (contact, channel);

-- A list has members; a saved filter finds them anew each time.
create table lists (
  id         text collate "C" primary key,
  tenant     text not null,
  name       text not null,
  filter     text,
  created_at bigint not null,
  unique (tenant, name)
);
create table list_members (
  list    text collate "C" not null,
  contact text collate "C" not null,
  primary key (list, contact)
);
create index list_members_contact on list_members (contact);

-- Who must not be written to; channel '' means on every channel. Looked up before each send.
create table suppressions (
  tenant  text not null,
  address text collate "C" not null,
  channel text collate "C" not null,
  reason  text not null,
  at      bigint not null,
  primary key (tenant, address, channel)
);

create table templates (
  id         text collate "C" primary key,
  tenant     text not null,
  name       text not null,
  version    integer not null default 0,
  created_at bigint not null,
  changed_at bigint not null,
  gone_at    bigint,
  unique (tenant, name)
);
create table template_versions (
  template   text collate "C" not null,
  version    integer not null,
  content    text not null,
  variables  text not null,
  created_at bigint not null,
  primary key (template, version)
);

-- Who wants to be told of what; and what is still to be told, written with the change that it tells of.
create table subscriptions (
  id         text collate "C" primary key,
  tenant     text not null,
  url        text not null,
  events     text not null,
  secret     text not null,
  active     boolean not null default true,
  created_at bigint not null,
  changed_at bigint not null,
  old_secret text,
  old_until  bigint,
  failing_since bigint,
  problem    text
);
create index subscriptions_newest on subscriptions (tenant, id);
create table outbox (
  id      bigint generated always as identity primary key,
  at      bigint not null,
  tenant  text not null,
  type    text not null,
  subject text not null,
  body    text not null,
  target  text
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);

-- The rare moves (by a person, a rule, late news) are told here; settle tells of its own in one go.
create function tidings_tell() returns trigger language plpgsql as $$
declare
  told text := 'message.' || case new.state when 'done' then 'sent' when 'pending' then 'retried'
    else tidings_counted(new.state, new.unknown, new.cancel_asked) end;
begin
  if exists (select 1 from subscriptions s where s.tenant = new.tenant and s.active and (s.events like '%"*"%'
      or s.events like '%"message.*"%' or s.events like '%"' || told || '"%')) then
    insert into outbox (at, tenant, type, subject, body)
    select new.changed_at, new.tenant, told, m.id, json_build_object('tries', new.tries)::text
    from messages m where m.task = new.id;
  end if;
  return null;
end $$;
create trigger tasks_tell after update of state on tasks for each row
  when (old.state <> 'processing' and new.state <> 'processing' and old.state <> new.state
        and new.kind = 'message' and new.queue <> 'events')
  execute function tidings_tell();

-- Roll-out: how much of a channel's traffic really goes out, and what would have.
alter table queues
  add column mode  text not null default 'live' check (mode in ('live', 'observe', 'shadow')),
  add column share smallint not null default 100 check (share between 0 and 100);
create table shadows (
  id        bigint generated always as identity primary key,
  channel   text collate "C" not null,
  side      text not null check (side in ('ours', 'theirs')),
  recipient text not null,
  digest    text not null,
  at        bigint not null,
  ref       text
);
create unique index shadows_ref on shadows (channel, side, ref) where ref is not null;
create index shadows_at on shadows (at);
create index shadows_recipient on shadows (channel, recipient, at, id);
-- What was switched, so that each step has a way back.
create table rollouts (
  id           bigint generated always as identity primary key,
  channel      text collate "C" not null,
  at           bigint not null,
  mode         text not null,
  share        smallint not null,
  mode_before  text not null,
  share_before smallint not null,
  reason       text
);
create index rollouts_channel on rollouts (channel, id);

-- What was taken over from another system's table, so that a repeat takes nothing twice and a run can be undone.
create table imports (
  id         text collate "C" primary key,
  tenant     text not null,
  source     text not null,
  began_at   bigint not null,
  ended_at   bigint,
  undone_at  bigint,
  taken      bigint not null default 0
);
create table import_rows (
  source  text collate "C" not null,
  key     text collate "C" not null,
  import  text collate "C" not null,
  message text not null,
  primary key (source, key)
);
create index import_rows_import on import_rows (import, key);
