-- The schema of Tidings.
-- Instants are whole microseconds since 1970 in UTC. Ids that callers see are UUIDs (text).
-- Boolean columns hold 0 or 1.


-- Queue: tasks, their history, and groups of tasks that are counted together.

-- One row per unit of work. `claim_no` is the fence: only the current claim may settle a task. `head`: no other task of
-- its ordering key comes before it. `first_due` is its place in that order.
create table tasks (
  id               integer primary key autoincrement,
  due_at           integer not null,
  changed_at       integer not null,
  expires_at       integer,
  first_due        integer,
  started_at       integer,
  node             integer,
  claim_no         integer not null default 0,
  priority         integer not null check (priority between 0 and 9),
  attempts         integer not null default 0 check (attempts >= 0),
  throttles        integer not null default 0,
  crashes          integer not null default 0,
  max_attempts     integer check (max_attempts > 0),
  head             integer not null default true,
  unknown          integer not null default false,
  cancel_requested integer not null default false,
  state            text not null default 'pending'
                   check (state in ('pending', 'processing', 'done', 'failed', 'cancelled', 'expired')),
  tenant           text not null,
  queue            text not null,
  kind             text not null,
  ordering_key     text,
  category         text check (category in ('temporary', 'permanent', 'throttling', 'validation', 'system')),
  group_id         integer,
  check ((state = 'processing') = (node is not null)),
  check ((ordering_key is null) = (first_due is null)),
  check (head or ordering_key is not null)
) strict;

-- Claimable tasks: one range scan per queue and priority, never a future or blocked row.
create index tasks_due on tasks (queue, priority, due_at) where state = 'pending' and head;
-- The tasks that a node holds, for the reaper.
create index tasks_held on tasks (node) where state = 'processing';
-- At most one task of an ordering key is in progress or claimable.
create unique index tasks_ordering_head on tasks (queue, ordering_key)
  where ordering_key is not null and (state = 'processing' or (state = 'pending' and head));
-- The pending tasks of an ordering key, in order.
create index tasks_ordering on tasks (queue, ordering_key, first_due, id) where ordering_key is not null and state = 'pending';
-- Dead letters and expired tasks. A range, because a list of states would be evaluated on every transition.
create index tasks_ended on tasks (state, id) where state >= 'expired' and state <= 'failed';
-- Ordering keys that are blocked by a failed task.
create index tasks_ordering_failed on tasks (queue, ordering_key) where ordering_key is not null and state = 'failed';
-- The pending tasks of a group, to pause or cancel a few thousand at a time.
create index tasks_group on tasks (group_id, id) where group_id is not null and state = 'pending';

-- State transitions of tasks, append-only.
create table history (
  task     integer not null,
  at       integer not null,
  node     integer,
  attempt  integer not null,
  origin   text not null,
  state    text not null,
  category text,
  detail   text
) strict;
create index history_task on history (task);

-- A group of tasks with exact counts, such as the messages of a broadcast.
create table task_groups (
  id   integer primary key autoincrement,
  kind text not null
) strict;

-- Finished tasks of a group by result. Unknown: delivery is uncertain. Skipped: not sent, and not canceled by a user.
create table task_group_counts (
  group_id integer not null,
  n        integer not null,
  outcome  text not null check (outcome in ('done', 'failed', 'unknown', 'cancelled', 'expired', 'skipped')),
  primary key (group_id, outcome)
) strict;

create trigger tasks_count_end after update of state on tasks
when new.group_id is not null and new.state <> old.state and new.state in ('done', 'failed', 'cancelled', 'expired') begin
  insert into task_group_counts (group_id, outcome, n) values (new.group_id, case when new.state = 'failed' and new.unknown then 'unknown'
    when new.state = 'cancelled' and not new.cancel_requested then 'skipped' else new.state end, 1)
  on conflict (group_id, outcome) do update set n = n + 1;
end;
create trigger tasks_count_return after update of state on tasks
when new.group_id is not null and new.state <> old.state and old.state = 'failed' begin
  update task_group_counts set n = n - 1 where group_id = new.group_id and outcome = case when old.unknown then 'unknown' else 'failed' end;
end;


-- Queues: the shared state of each channel, source and job.

-- Pause, throttling, breaker, rollout and session of a channel. `session_state` is null for a channel without a session.
create table queues (
  name             text primary key,
  paused           integer not null default false,
  pause_reason     text,
  blocked_until    integer,
  block_reason     text,
  failures         integer not null default 0,
  opened_at        integer,
  probe_at         integer,
  on_unknown       text not null default 'resend' check (on_unknown in ('resend', 'ask', 'hold')),
  deadline         integer not null default 30000000,
  stop_on_failure  integer not null default false,
  mode             text not null default 'live' check (mode in ('live', 'observe', 'shadow')),
  share            integer not null default 100 check (share between 0 and 100),
  session_state    text check (session_state in ('connected', 'reconnecting', 'logged_out')),
  session_reason   text,
  session_since    integer,                        -- start of the current session state
  reconnects       integer not null default 0,     -- consecutive reconnects that did not last
  session_reported text,                           -- the last session state that was published as an event
  lost_at          integer,                        -- when the session was lost
  was_down         integer not null default false, -- stopped, failed, logged out or unreachable since then: no mere reconnect
  restart_wanted   integer not null default false, -- a send found that the session only seems to work
  restarted_at     integer,                        -- last restart by the engine
  retry_at         integer,                        -- next reconnect; null: a send has just detected the loss
  check_at         integer not null default 0,     -- next check of the session
  check_no         integer not null default 0,     -- fence: an outdated check writes nothing
  paused_by_engine integer not null default false  -- paused by the engine, not by a person
) strict;

-- Rate limit of a queue: the time between two starts, and the next free slot.
create table rate_limits (
  queue    text primary key,
  interval integer not null check (interval > 0),
  next_at  integer not null default 0
) strict;

-- Rate limit of one recipient: the next free slot.
create table recipient_rate_limits (
  queue   text not null,
  key     text not null,
  next_at integer not null,
  primary key (queue, key)
) strict;
create index recipient_rate_limits_old on recipient_rate_limits (next_at);

-- Webhook destinations with an open breaker or a Retry-After. No other destination has a row.
create table destinations (
  queue     text not null,
  tenant    text not null,
  host      text not null,
  failures  integer not null,
  opened_at integer not null,
  until_at  integer not null,
  reason    text not null,
  primary key (queue, tenant, host)
) strict;
create index destinations_old on destinations (queue, until_at);

-- Outcomes of attempts by minute, for health and charts.
create table attempt_tallies (
  at      integer not null,
  n       integer not null,
  ms      integer not null,
  packed  integer not null default false,
  queue   text not null,
  outcome text not null
) strict;
create index attempt_tallies_at on attempt_tallies (at);
create index attempt_tallies_unpacked on attempt_tallies (at) where not packed;

-- Messages sent by day and queue, for the SLA report: all of them, and those sent late.
create table daily_deliveries (
  day   integer not null,
  queue text not null,
  sent  integer not null,
  late  integer not null,
  primary key (day, queue)
) strict, without rowid;


-- Nodes and coordination.

-- Processes and their heartbeat counters. `silent_for` is how long the counter has not changed while it was watched.
create table nodes (
  id                integer primary key autoincrement,
  name              text not null,
  state             text not null default 'live' check (state in ('live', 'dead', 'gone')),
  heartbeat         integer not null default 0,
  started_at        integer not null,
  seen_at           integer not null,
  info              text not null default '{}',
  watched_heartbeat integer not null default -1,
  watched_at        integer not null default 0,
  silent_for        integer not null default 0
) strict;
create index nodes_live on nodes (state) where state <> 'gone';

-- Periodic jobs that one process runs at a time, such as pruning.
create table maintenance (
  name   text primary key,
  due_at integer not null default 0,
  node   integer
) strict;

-- Rewinds of the database (failover to a lagging standby, restored backup): the server on which one was detected, where the
-- surviving copy ends, and how many tasks became unknown.
create table rewinds (
  server      text primary key,
  survived_at integer not null,
  found_at    integer not null,
  touched_at  integer not null default 0,
  finished_at integer,
  node        integer,
  unknown     integer not null default 0
) strict;

-- Secrets that the engine generates for itself. Encrypted.
create table secrets (
  name  text primary key,
  value text not null
) strict;


-- Messages.

-- `content` is '' for a recipient of a broadcast, which has the content. `own_expiry`: the sender set the expiry.
create table messages (
  task         integer primary key,
  accepted_at  integer not null,
  scheduled_at integer not null,
  id           text not null,
  tenant       text not null,
  channel      text not null,
  recipient    text not null,
  content      text not null,
  group_id     integer,
  part         integer,
  contact      text,
  variables    text,
  timezone     text,
  own_expiry   integer not null default false
) strict;
create unique index messages_id on messages (id);
create index messages_recipient on messages (tenant, recipient, task);
create unique index messages_group on messages (group_id, recipient) where group_id is not null;
create index messages_part on messages (group_id, part, task) where part is not null;

-- Idempotency keys: a hash of the request, and its response.
create table idempotency_keys (
  scope      text not null,
  key        text not null,
  digest     text not null,
  answer     text not null,
  expires_at integer not null,
  primary key (scope, key)
) strict;
create index idempotency_keys_expiry on idempotency_keys (expires_at);

-- Delivery reports of providers, by the provider's message id. `task` is null until the message is known. `last`: the last
-- part of a split text, which decides. `open`: proof of sending that arrived while the task was in progress.
create table receipts (
  channel        text not null,
  name           text not null,
  task           integer,
  last           integer not null default true,
  open           integer not null default false,
  seen_at        integer not null,
  delivered_at   integer,
  read_at        integer,
  undelivered_at integer,
  reason         text,
  category       text check (category in ('temporary', 'permanent', 'throttling', 'validation', 'system')),
  primary key (channel, name),
  check (read_at is null or delivered_at is not null)
) strict;
create index receipts_task on receipts (task) where task is not null;
-- Reports without a message, for pruning.
create index receipts_unmatched on receipts (seen_at) where task is null;
-- Proofs of sending that are not applied yet.
create index receipts_open on receipts (seen_at) where open;


-- Broadcasts.

-- `check_at` is when the feeder looks at it next. `retry_*` are the range of a running retry.
create table broadcasts (
  group_id         integer primary key,
  id               text not null unique,
  tenant           text not null,
  name             text not null,
  channel          text not null,
  xref             text,
  state            text not null default 'loading' check (state in
                   ('loading', 'ready', 'running', 'paused', 'completed', 'failed', 'cancelled', 'expired')),
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
  check_at         integer,
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
  retry_unknown    integer not null default false,
  version          integer not null default 0,
  unique (schedule, occurrence)
) strict;
create index broadcasts_check on broadcasts (check_at) where check_at is not null;
create index broadcasts_newest on broadcasts (tenant, id);
create index broadcasts_xref on broadcasts (tenant, xref, id) where xref is not null;

-- The recipients of one time zone, which start and pause by their local time.
create table broadcast_parts (
  group_id  integer not null,
  part      integer not null,
  timezone  text,
  total     integer not null default 0,
  taken     integer not null default 0,
  taken_to  integer not null default 0,
  starts_at integer,
  primary key (group_id, part)
) strict;


-- Schedules.

create table schedules (
  id              text primary key,
  tenant          text not null,
  name            text not null,
  state           text not null default 'active' check (state in ('active', 'paused', 'ended')),
  rule            text not null,
  timezone        text not null,
  creates         text not null check (creates in ('message', 'broadcast')),
  body            text not null,
  catch_up        text not null default 'latest' check (catch_up in ('skip', 'latest', 'all')),
  catch_up_window integer not null,
  overlap         text not null default 'allow' check (overlap in ('allow', 'skip', 'wait')),
  tags            text not null default '|',
  channel         text,
  recipient       text,
  start_at        integer,
  end_at          integer,
  most            integer,
  fired           integer not null default 0,
  next_at         integer,
  last_at         integer,
  last_created     text,
  held_at         integer,
  problem         text,
  version         integer not null default 0,
  created_at      integer not null,
  changed_at      integer not null,
  check (next_at is null or state = 'active')
) strict;
-- Due schedules: the only query of a scheduler tick.
create index schedules_due on schedules (next_at) where next_at is not null;
create index schedules_newest on schedules (tenant, id);
-- Schedules whose last occurrence could not be created, for alerts.
create index schedules_problem on schedules (id) where problem is not null;

-- One row per occurrence. The primary key ensures that it is created once.
create table occurrences (
  schedule    text not null,
  at          integer not null,
  recorded_at integer not null,
  outcome     text not null check (outcome in ('created', 'missed', 'skipped', 'refused')),
  created     text,
  detail      text,
  primary key (schedule, at)
) strict;
-- The schedule that created a message.
create index occurrences_created on occurrences (created) where created is not null;
-- Old rows, for pruning.
create index occurrences_recorded on occurrences (recorded_at);
-- Missed occurrences, for alerts.
create index occurrences_missed on occurrences (recorded_at) where outcome = 'missed';


-- Contacts, lists and suppressions.

create table contacts (
  id         text primary key,
  tenant     text not null,
  name       text not null,
  timezone   text,
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
-- A contact has one address per channel.
create unique index contact_addresses_contact on contact_addresses (contact, channel);

-- A list with members, or a saved filter.
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

-- Addresses that must not be written to. Channel '' means all channels. Checked before each send. `evidence`: the
-- inbound message or the provider's answer that caused it; null if a person entered it.
create table suppressions (
  tenant   text not null,
  address  text not null,
  channel  text not null,
  reason   text not null,
  at       integer not null,
  evidence text,
  primary key (tenant, address, channel)
) strict;


-- Templates.

create table templates (
  id         text primary key,
  tenant     text not null,
  name       text not null,
  version    integer not null default 0,
  created_at integer not null,
  changed_at integer not null,
  retired_at integer,
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


-- Events: subscriptions and the outbox.

create table subscriptions (
  id            text primary key,
  tenant        text not null,
  url           text not null,
  events        text not null,
  secret        text not null,
  active        integer not null default true,
  created_at    integer not null,
  changed_at    integer not null,
  old_secret    text,
  old_until     integer,
  failing_since integer,
  problem       text
) strict;
create index subscriptions_newest on subscriptions (tenant, id);

-- Events to publish, written in the transaction of the change that they report.
create table outbox (
  id      integer primary key autoincrement,
  at      integer not null,
  tenant  text not null,
  type    text not null,
  subject text not null,
  body    text not null,
  target  text
) strict;

-- Publishes transitions outside of settle (by a user, a rule or a receipt); settle publishes its own in bulk.
create trigger tasks_publish after update of state on tasks
when old.state <> 'processing' and new.state <> 'processing' and old.state <> new.state
  and new.kind = 'message' and new.queue <> 'events' begin
  insert into outbox (at, tenant, type, subject, body)
  select new.changed_at, new.tenant, w.event_type, m.id, json_object('attempts', new.attempts)
  from (select 'message.' || case when new.state = 'done' then 'sent' when new.state = 'pending' then 'retried'
    when new.state = 'failed' and new.unknown then 'unknown' when new.state = 'cancelled' and not new.cancel_requested then 'skipped'
    else new.state end as event_type) w cross join messages m
  where m.task = new.id and exists (select 1 from subscriptions s where s.tenant = new.tenant and s.active
    and (s.events like '%"*"%' or s.events like '%"message.*"%' or s.events like '%"' || w.event_type || '"%'));
end;

-- Publishes each delivery report once: when it arrives, or when its message becomes known.
create trigger receipts_publish after update on receipts
when new.task is not null and coalesce(new.delivered_at, new.undelivered_at) is not null begin
  insert into outbox (at, tenant, type, subject, body)
  select w.at, m.tenant, 'message.' || w.what, m.id, json_object('attempts', (select t.attempts from tasks t where t.id = m.task),
    'receipt', new.name, 'reason', iif(w.what = 'undelivered', new.reason, null),
    'category', iif(w.what = 'undelivered', new.category, null))
  from (select 1 as place, 'delivered' as what, new.delivered_at as at, old.delivered_at as before
    union all select 2, 'read', new.read_at, old.read_at
    union all select 3, 'undelivered', iif(new.delivered_at is null, new.undelivered_at, null), old.undelivered_at) w
  cross join messages m
  where m.task = new.task and w.at is not null and (w.before is null or old.task is null)
    and (new.last or w.what = 'undelivered')
    and exists (select 1 from subscriptions s where s.tenant = m.tenant and s.active and (s.events like '%"*"%'
      or s.events like '%"message.*"%' or s.events like '%"message.' || w.what || '"%'))
  order by w.place;
end;


-- Rollout and import.

-- Messages of a shadowed channel, from this engine and from the other sender, for comparison.
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

-- Changes of a channel's mode and share, so that each can be reverted.
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

-- Imports from another system, and their rows: an import can be repeated without duplicates, and undone. If results are
-- written back, rows with check_at are the outbox.
create table imports (
  id        text primary key,
  tenant    text not null,
  source    text not null,
  began_at  integer not null,
  ended_at  integer,
  undone_at integer,
  taken     integer not null default 0
) strict;
create table import_rows (
  source    text not null,
  key       text not null,
  import    text not null,
  kind      text not null check (kind in ('message', 'schedule', 'broadcast')),
  made      text not null,
  recipient text,
  before    text,
  undone    integer not null default false,
  written   text,
  check_at  integer,
  version   integer not null default 0,
  problem   text,
  primary key (source, key)
) strict;
create index import_rows_import on import_rows (import, key);
create index import_rows_made on import_rows (made);
create index import_rows_check on import_rows (source, check_at) where check_at is not null;

-- Sources whose results are written back.
create table write_backs (
  source        text primary key,
  tenant        text not null,
  failures      integer not null default 0,
  failing_since integer,
  problem       text,
  next_at       integer not null default 0,
  last_at       integer,
  written       integer not null default 0
) strict;

-- Transitions outside of settle (by a user, a rule or a receipt) are written back at once.
create trigger tasks_touch_import after update of state on tasks
when old.state <> 'processing' and new.state <> 'processing' and old.state <> new.state
  and new.kind = 'message' and new.queue <> 'events' begin
  update import_rows set check_at = new.changed_at, version = version + 1
  where made in (select m.id from messages m where m.task = new.id union all
      select b.id from messages m join broadcasts b on b.group_id = m.group_id where m.task = new.id)
    and (recipient is null or recipient = (select m.recipient from messages m where m.task = new.id))
    and source in (select source from write_backs);
end;


-- Language models.

-- Calls, written before and after each one. A row that stays 'asked' is a call with an unknown result. An answered row is
-- also the answer to a repetition of the same question.
create table model_calls (
  id          integer primary key autoincrement,
  at          integer not null,
  trace       text,
  key         text not null,
  attempt     integer not null,
  prompt      text not null,
  version     integer not null,
  prompt_hash text not null,
  input_hash  text not null,
  endpoint    text not null,
  model       text not null,
  settings    text not null,
  state       text not null default 'asked' check (state in ('asked', 'answered', 'failed')),
  raw         text,
  parsed      text,
  tokens_in   integer not null default 0,
  tokens_out  integer not null default 0,
  cost        integer not null default 0,
  ms          integer,
  error       text,
  check ((state = 'answered') = (raw is not null))
) strict;
create index model_calls_key on model_calls (key, id) where state = 'answered';
create index model_calls_trace on model_calls (trace, id) where trace is not null;
create index model_calls_at on model_calls (at);

-- Rate limit and breaker of each endpoint, and the request dialect of each of its models (JSON).
create table model_endpoints (
  name          text primary key,
  interval      integer not null default 0,
  next_at       integer not null default 0,
  blocked_until integer not null default 0,
  block_kind    text check (block_kind in ('busy', 'down')),
  block_reason  text,
  dialects      text not null default '{}'
) strict;

-- Usage by day (UTC), updated in the transaction of the answer.
create table model_days (
  day        text not null,
  model      text not null,
  prompt     text not null,
  version    integer not null,
  calls      integer not null,
  tokens_in  integer not null,
  tokens_out integer not null,
  cost       integer not null,
  primary key (day, model, prompt, version)
) strict;


-- Shift calendar, and the ledger of commands to any calendar.

-- One row per day that was written; a writer locks it.
create table shift_days (
  calendar text not null,
  day      text not null,
  made_at  integer not null,
  primary key (calendar, day)
) strict;

-- The 48 half hours of a squad's day from 0600: c has a crew, n is marked as without, . is not on the calendar.
create table shift_lines (
  calendar   text not null,
  day        text not null,
  squad      text not null,
  slots      text not null check (length(slots) = 48),
  changed_at integer not null,
  primary key (calendar, day, squad)
) strict;

-- Changes of the built-in calendar, kept permanently. The key ensures that each is applied once.
create table shift_changes (
  id       integer primary key autoincrement,
  key      text not null unique,
  calendar text not null,
  day      text not null,
  squad    text not null,
  who      text not null,
  at       integer not null,
  action   text not null check (action in ('no_crew', 'add', 'remove')),
  begins   text not null,
  ends     text not null,
  was      text not null check (length(was) = 48),
  became   text not null check (length(became) = 48)
) strict;
create index shift_changes_day on shift_changes (calendar, day, id);

-- The ledger: commands, written before they are sent and settled by reading the calendar.
create table effects (
  task         integer primary key,
  key          text not null unique,
  plan         text not null,
  tenant       text not null,
  calendar     text not null,
  day          text not null,
  squad        text not null,
  action       text not null check (action in ('no_crew', 'add', 'remove')),
  begins       text not null,
  ends         text not null,
  first_slot   integer not null,
  last_slot    integer not null,
  conversation text,
  who          text not null,
  undoes       text,
  state        text not null default 'planned' check (state in
               ('planned', 'claimed', 'confirmed', 'refused', 'unknown', 'not_applied', 'conflict', 'superseded')),
  claim_no     integer not null default 0,
  attempts     integer not null default 0,
  pre          text,
  expected     text,
  evidence     text not null default '',
  planned_at   integer not null,
  claimed_at   integer,
  ended_at     integer,
  reported     integer not null default false,
  check ((pre is null) = (expected is null)),
  check (state <> 'claimed' or pre is not null)
) strict;
create index effects_day on effects (calendar, day, task);
create index effects_newest on effects (calendar, task);
create index effects_plan on effects (plan);
create index effects_undoes on effects (undoes) where undoes is not null;
-- Commands whose result was not reported yet.
create index effects_unreported on effects (task) where not reported;

-- Tasks that report the result of a plan to its conversation.
create table followups (
  task integer primary key,
  plan text not null
) strict;


-- Inbox: sources, received messages and the roster.

-- One row per source: its cursor and the lease of its reader. `token` increases with each lease and is the fence.
create table sources (
  name     text primary key,
  kind     text not null,
  known_at integer not null,
  cursor   text,
  token    integer not null default 0,
  holder   text,
  began_at integer,
  until    integer,
  due_at   integer not null default 0,
  read_at  integer,
  failures integer not null default 0,
  problem  text,
  check ((holder is null) = (until is null)),
  check ((holder is null) = (began_at is null))
) strict;

-- Received messages, never deleted. `task` handles one; it is null if the message ended on arrival. `ended` is its final
-- state, also after its task was pruned.
create table inbox (
  n            integer primary key autoincrement,
  task         integer unique,
  id           text not null unique,
  tenant       text not null,
  source       text not null,
  platform_id  text not null,
  conversation text not null,
  chat         text not null,
  sender       text not null,
  name         text not null,
  kind         text not null check (kind in ('message', 'edit', 'delete', 'system')),
  original     text,
  reply_to     text,
  attachments  integer not null default 0,
  sent_at      integer not null,
  received_at  integer not null,
  speaks_for   text,
  edited_at    integer,
  deleted_at   integer,
  ended        text check (ended in ('done', 'expired', 'skipped')),
  reason       text,
  text         text not null,
  edited_text  text,
  raw          text,
  unique (source, platform_id)
) strict;
create index inbox_conversation on inbox (conversation, n);
create index inbox_source on inbox (source, n);

-- The addresses of user ids, from messages that contained both. Platforms may hide a phone number later.
create table sender_ids (
  source     text not null,
  user_id    text not null,
  address    text not null,
  changed_at integer not null,
  primary key (source, user_id)
) strict;

-- Allowed senders, by their platform id. Source '' means all sources.
create table roster (
  tenant     text not null,
  source     text not null,
  sender     text not null,
  name       text not null,
  squad      text not null,
  role       text not null check (role in ('member', 'officer', 'admin')),
  changed_at integer not null,
  primary key (tenant, sender, source)
) strict;
create index roster_name on roster (tenant, name, sender, source);

-- Changes of the roster, and messages on behalf of others.
create table roster_log (
  n      integer primary key autoincrement,
  at     integer not null,
  tenant text not null,
  source text not null,
  sender text not null,
  what   text not null check (what in ('added', 'changed', 'removed', 'spoke_for', 'refused')),
  detail text not null
) strict;
create index roster_log_sender on roster_log (tenant, sender, n);


-- Workflows, and cases for people.

create table workflows (
  id           text primary key,
  tenant       text not null,
  conversation text not null,
  squad        text not null,
  topic        text not null,
  state        text not null check (state in ('new', 'waiting_for_input', 'ready', 'executing', 'completed', 'partial',
               'failed', 'cancelled', 'needs_human', 'expired')),
  version      integer not null,
  schema       integer not null,
  asked        text,
  plan         text,
  opened_at    integer not null,
  changed_at   integer not null,
  idle_at      integer,
  closed_at    integer,
  body         text not null,
  check ((closed_at is null) = (state in ('new', 'waiting_for_input', 'ready', 'executing', 'needs_human'))),
  check ((idle_at is null) = (closed_at is not null))
) strict;
-- A squad has at most one open workflow per topic.
create unique index workflows_open on workflows (tenant, conversation, squad, topic) where closed_at is null;
create unique index workflows_plan on workflows (plan) where plan is not null;
create index workflows_idle on workflows (idle_at) where idle_at is not null;
create index workflows_newest on workflows (tenant, id);

-- One row per handled message. `deferred`: waits behind a busy workflow, or until a person decides.
create table handled_messages (
  n            integer primary key autoincrement,
  message      text not null unique,
  tenant       text not null,
  conversation text not null,
  squad        text not null,
  workflow     text,
  decision     text not null,
  reason       text not null,
  deferred     text check (deferred in ('queued', 'unclear', 'person')),
  released_at  integer,
  at           integer not null,
  sent_at      integer not null,
  speaker      text not null,
  text         text not null,
  facts        text not null
) strict;
create index handled_messages_conversation on handled_messages (tenant, conversation, n);
create index handled_messages_deferred on handled_messages (deferred, n) where deferred is not null;

-- The steps of a conversation, in order.
create table steps (
  id           integer primary key autoincrement,
  tenant       text not null,
  conversation text not null,
  workflow     text,
  message      text,
  at           integer not null,
  what         text not null,
  facts        text not null
) strict;
create index steps_conversation on steps (tenant, conversation, id);

-- Tasks that handle a deferred message again; `verdict` is a person's decision.
create table message_reruns (
  task    integer primary key,
  message text not null,
  verdict text check (verdict in ('related', 'new'))
) strict;

-- Requests for human help.
create table cases (
  id           text primary key,
  tenant       text not null,
  reason       text not null,
  key          text not null,
  state        text not null check (state in ('open', 'claimed', 'answered', 'closed')),
  conversation text not null,
  workflow     text,
  message      text,
  opened_at    integer not null,
  deadline_at  integer,
  claimed_by   text,
  changed_at   integer not null,
  closed_at    integer,
  times        integer not null default 1,
  facts        text not null,
  check (state in ('open', 'closed') or claimed_by is not null)
) strict;
-- The same problem is one case until it is closed.
create unique index cases_key on cases (tenant, key) where state <> 'closed';
create index cases_newest on cases (tenant, id);
create index cases_state on cases (tenant, state, id);
-- Conversations that a person has taken over.
create index cases_held on cases (conversation) where state in ('claimed', 'answered');
create index cases_deadline on cases (deadline_at) where deadline_at is not null;

-- Notices to admins. The same notice is sent once until it is acknowledged.
create table notices (
  id              text primary key,
  tenant          text not null,
  key             text not null,
  reason          text not null,
  at              integer not null,
  last_at         integer not null,
  times           integer not null default 1,
  sent_at         integer,
  problem         text,
  acknowledged_at integer,
  acknowledged_by text,
  facts           text not null
) strict;
create unique index notices_key on notices (tenant, key) where acknowledged_at is null;
create index notices_unsent on notices (id) where sent_at is null;
create index notices_newest on notices (tenant, id);


-- Migration: records between systems.

-- Pairs of systems; each has its own crosswalk.
create table job_pairs (
  n      integer primary key autoincrement,
  tenant text not null,
  source text not null,
  target text not null,
  unique (tenant, source, target)
) strict;

-- `resume_state` is the state that a paused job returns to. `check_at` is when the batch scheduler looks at it next. `done_before`
-- records had ended before the current round. `pruning`: its records and logs are being deleted, or are deleted.
create table jobs (
  n             integer primary key autoincrement,
  id            text not null unique,
  tenant        text not null,
  name          text not null,
  pair          integer not null,
  state         text not null default 'new' check (state in ('new', 'planning', 'planned', 'approved', 'running', 'paused',
                  'cancelled', 'completed', 'failed')),
  resume_state  text check (resume_state in ('planning', 'running')),
  reason        text,
  blocked_until integer,
  check_at      integer not null default 0,
  round         integer not null default 0,
  lookup        integer not null default true,
  planned       integer not null default false,
  version       integer not null default 0,
  mapping_hash  text not null,
  definition    text not null,
  created_at    integer not null,
  changed_at    integer not null,
  started_at    integer,
  ended_at      integer,
  done_before   integer not null default 0,
  pruning       integer not null default false,
  pruned_at     integer,
  check ((state = 'paused') = (resume_state is not null))
) strict;
create index jobs_check on jobs (check_at) where state in ('planning', 'running', 'paused');
create index jobs_tenant on jobs (tenant, n);
-- Finished jobs whose records are kept, for retention.
create index jobs_retained on jobs (ended_at) where pruned_at is null and ended_at is not null;

-- One row per record type: the read cursor and its lease, and the position up to which batches were cut. `counts` has the
-- final counts (JSON) of a job whose records are deleted.
create table job_types (
  job          integer not null,
  type         text not null,
  wave         integer not null,
  cursor       text,
  expected     integer,
  extracted    integer not null default 0,
  seen_again   integer not null default 0,
  is_read      integer not null default false,
  reader       text,
  reader_until integer not null default 0,
  due_at       integer not null default 0,
  attempts     integer not null default 0,
  problem      text,
  note         text,
  cut          integer not null default 0,
  passed       integer not null default -1,
  linked       integer not null default false,
  pace         integer,
  counts       text,
  primary key (job, type)
) strict;

-- `key` is null if it equals the source's id. `mapped` is the request of a write whose result is unknown. `batch`: reopened
-- in that batch. `original` is the source's data of a repaired record; '' if it could not be kept.
create table job_records (
  seq         integer primary key autoincrement,
  job         integer not null,
  round       integer not null,
  due_at      integer not null default 0,
  claimed_at  integer,
  changed_at  integer not null,
  links       integer not null default false,
  state       text not null check (state in ('extracted', 'ready', 'waiting', 'claimed', 'unknown', 'written', 'unchanged',
                'rejected', 'failed', 'skipped', 'conflict')),
  type        text not null,
  source_id   text not null,
  key         text,
  target_id   text,
  hash        text,
  action      text check (action in ('create', 'update', 'write', 'unchanged', 'rejected', 'skipped', 'unresolved',
                'conflict')),
  attempts    text not null default '{}',
  failure     text,
  field       text,
  fingerprint text,
  batch       text,
  reason      text,
  before      text,
  changes     text,
  raw         text,
  mapped      text,
  original    text,
  check (state <> 'claimed' or claimed_at is not null),
  unique (source_id, type, job)
) strict;
-- Each query has exactly one matching index: a planner without statistics would otherwise take any of them.
create index job_records_line on job_records (job, type, seq) where batch is null;
create index job_records_cause on job_records (job, fingerprint, seq) where fingerprint is not null;
create index job_records_links on job_records (job, type, seq) where links;
create index job_records_key on job_records (job, type, key) where key is not null;
-- Identical records that are being written: while there is one, a match in the target is ambiguous.
create index job_records_claimed on job_records (job, type, hash) where state = 'claimed';
create index job_records_batch on job_records (batch, seq) where batch is not null;
create index job_records_repaired on job_records (job, type, seq) where original is not null;

-- A range of records of a type, or the records that name it. Its counts change in the transactions that move the records.
create table job_batches (
  id         text primary key,
  job        integer not null,
  type       text not null,
  round      integer not null,
  phase      text not null check (phase in ('plan', 'run', 'links')),
  system     text not null,
  first      integer not null,
  last       integer not null,
  size       integer not null,
  task       integer,
  state      text not null default 'pending'
             check (state in ('pending', 'processing', 'completed', 'failed', 'retrying', 'failed_final')),
  failures   integer not null default 0,
  planned    integer not null default 0,
  written    integer not null default 0,
  unchanged  integer not null default 0,
  spent      integer not null default 0,
  reason     text,
  made_at    integer not null,
  changed_at integer not null
) strict;
create index job_batches_job on job_batches (job, round, state);
create index job_batches_system on job_batches (system) where state in ('processing', 'retrying');

-- Tasks that process a batch.
create table job_batch_tasks (
  task  integer primary key,
  batch text not null
) strict;

-- Source records and their target records, with a hash of the written content.
create table crosswalk (
  pair       integer not null,
  type       text not null,
  source_id  text not null,
  target_id  text not null,
  hash       text,
  job        integer not null,
  changed_at integer not null,
  primary key (source_id, type, pair)
) strict;
create index crosswalk_target on crosswalk (target_id, type, pair);

-- Rate limit, concurrency, throttling and monthly quota of a system, shared by all nodes.
create table job_systems (
  name          text primary key,
  step          integer not null default 0,
  next_at       integer not null default 0,
  taken         integer not null default 0,
  concurrency   real not null default 2,
  most          integer not null default 8,
  blocked_until integer not null default 0,
  reason        text,
  failures      integer not null default 0,
  best          integer,
  month         integer not null default 0,
  used          integer not null default 0,
  version       integer not null default 0
) strict;

-- Attempts at a record.
create table job_log (
  n      integer primary key autoincrement,
  record integer not null,
  at     integer not null,
  what   text not null,
  code   text,
  reason text
) strict;
create index job_log_record on job_log (record, n);

-- Actions of people on a job.
create table job_audit (
  n      integer primary key autoincrement,
  job    integer not null,
  at     integer not null,
  actor  text not null,
  action text not null,
  detail text not null
) strict;
create index job_audit_job on job_audit (job, n);


-- Alerts.

create table alerts (
  id              text primary key,
  tenant          text not null,
  rule            text not null,
  subject         text not null,
  severity        text not null check (severity in ('warning', 'critical')),
  state           text not null check (state in ('pending', 'raised', 'resolved')),
  value           real not null,
  problem         text not null,
  first_at        integer not null,
  last_at         integer not null,
  raised_at       integer,
  acknowledged_at integer,
  acknowledged_by text,
  resolved_at     integer,
  notify_error    text,
  check ((state = 'pending') = (raised_at is null)),
  check ((state = 'resolved') = (resolved_at is not null)),
  check ((acknowledged_at is null) = (acknowledged_by is null))
) strict;
-- At most one open alert per rule and subject.
create unique index alerts_open on alerts (rule, subject) where resolved_at is null;
create index alerts_newest on alerts (tenant, id);
create index alerts_old on alerts (resolved_at) where resolved_at is not null;


-- Access: API keys, sessions, quotas and the audit trail.

-- `digest` is the SHA-256 of the key's 256 random bits; the key itself is not stored. After a rotation the previous key is
-- valid until `old_until`. `free_at` is the key's position in its rate limit.
create table api_keys (
  id           text primary key,
  tenant       text not null,
  name         text not null,
  prefix       text not null unique,
  digest       text not null,
  old_digest   text,
  old_until    integer,
  role         text not null check (role in ('admin', 'operator', 'sender', 'viewer', 'metrics')),
  scopes       text not null,
  rate         integer check (rate > 0),
  free_at      integer not null default 0,
  created_at   integer not null,
  created_by   text not null,
  expires_at   integer,
  rotated_at   integer,
  revoked_at   integer,
  last_used_at integer,
  check ((old_digest is null) = (old_until is null))
) strict;
create unique index api_keys_name on api_keys (tenant, name) where revoked_at is null;
create index api_keys_newest on api_keys (tenant, id);
create index api_keys_admin on api_keys (id) where role = 'admin' and tenant = 'default' and revoked_at is null;

-- One row once the settings have had a key: access without a key then stays closed.
create table configured_keys (
  id    integer primary key check (id = 1),
  since integer not null
) strict;

-- Browser sessions; `owner` is the id of the key, or names a key of the settings.
create table sessions (
  digest     text primary key,
  owner      text not null,
  created_at integer not null,
  expires_at integer not null,
  origin     text not null
) strict;
create index sessions_expiry on sessions (expires_at);
create index sessions_owner on sessions (owner);

-- Accepted messages by tenant and day (UTC), for quotas.
create table tenant_days (
  tenant text not null,
  day    integer not null,
  n      integer not null,
  primary key (tenant, day)
) strict;

-- The audit trail, append-only. `hash` is the SHA-256 of the entry's content and of the previous hash.
create table audit (
  n       integer primary key autoincrement,
  at      integer not null,
  tenant  text not null,
  actor   text not null,
  key     text,
  action  text not null,
  target  text,
  origin  text,
  status  integer,
  request text,
  detail  text,
  hash    text
) strict;
create index audit_newest on audit (tenant, n);
create index audit_at on audit (at);

-- One row: the chain begins after `base_n` (older entries are pruned) and ends at `n`.
create table audit_chain (
  id        integer primary key check (id = 1),
  base_n    integer not null,
  base_hash text not null,
  base_at   integer,
  n         integer not null,
  hash      text not null
) strict;

create trigger audit_chained after insert on audit when new.hash is not null
begin
  insert into audit_chain (id, base_n, base_hash, n, hash) values (1, new.n - 1, '', new.n, new.hash)
  on conflict (id) do update set n = excluded.n, hash = excluded.hash;
end;

create trigger audit_append_only before update on audit
begin
  select raise(abort, 'the audit trail is append-only');
end;

-- Entries are deleted by retention only, which moves the beginning of the chain first.
create trigger audit_kept before delete on audit when exists (select 1 from audit_chain where old.n > base_n)
begin
  select raise(abort, 'the audit trail is append-only');
end;
