-- The engine's tables: tasks and their history, queues, limits, nodes, tallies, keys, duties; and messages.
-- Times are whole microseconds since 1970 (UTC).

create table tasks (
  id           integer primary key autoincrement,
  due_at       integer not null,
  changed_at   integer not null,
  expires_at   integer,
  first_due    integer,
  started_at   integer,
  node         integer,
  claim_no     integer not null default 0,
  priority     integer not null check (priority between 0 and 9),
  tries        integer not null default 0 check (tries >= 0),
  throttles    integer not null default 0,
  crashes      integer not null default 0,
  max_tries    integer check (max_tries > 0),
  head         integer not null default true,
  unknown      integer not null default false,
  cancel_asked integer not null default false,
  state        text not null default 'pending'
               check (state in ('pending', 'processing', 'done', 'failed', 'cancelled', 'expired')),
  tenant       text not null,
  queue        text not null,
  kind         text not null,
  order_key    text,
  category     text check (category in ('temporary', 'permanent', 'throttling', 'validation', 'system')),
  check ((state = 'processing') = (node is not null)),
  check ((order_key is null) = (first_due is null)),
  check (head or order_key is not null)
) strict;

-- What may be claimed: one range scan per queue and priority, never a future or waiting row.
create index tasks_due on tasks (queue, priority, due_at) where state = 'pending' and head;
-- The tasks that a node holds, for the reaper.
create index tasks_held on tasks (node) where state = 'processing';
-- The one task of an order key that is at work or may be claimed.
create unique index tasks_turn on tasks (queue, order_key)
  where order_key is not null and (state = 'processing' or (state = 'pending' and head));
-- The others of that key, in order.
create index tasks_line on tasks (queue, order_key, first_due, id) where order_key is not null and state = 'pending';
-- Dead letters and what expired. A range, because a list of states would be weighed on every move of the hot path.
create index tasks_ended on tasks (state, id) where state >= 'expired' and state <= 'failed';
create index tasks_stopped on tasks (queue, order_key) where order_key is not null and state = 'failed';

create table history (
  task     integer not null,
  at       integer not null,
  node     integer,
  try      integer not null,
  origin   text not null,
  state    text not null,
  category text,
  detail   text
) strict;
create index history_task on history (task);

create table queues (
  name            text primary key,
  paused          integer not null default false,
  pause_reason    text,
  parked_until    integer,
  park_reason     text,
  failures        integer not null default 0,
  opened_at       integer,
  probe_at        integer,
  on_unknown      text not null default 'resend' check (on_unknown in ('resend', 'ask', 'hold')),
  deadline        integer not null default 30000000,
  stop_on_failure integer not null default false
) strict;

create table limits (
  queue    text primary key,
  interval integer not null check (interval > 0),
  next_at  integer not null default 0
) strict;

create table paces (
  queue   text not null,
  key     text not null,
  next_at integer not null,
  primary key (queue, key)
) strict;
create index paces_old on paces (next_at);

create table nodes (
  id         integer primary key autoincrement,
  name       text not null,
  state      text not null default 'live' check (state in ('live', 'dead', 'gone')),
  beat       integer not null default 0,
  started_at integer not null,
  seen_at    integer not null,
  info       text not null default '{}'
) strict;
create index nodes_live on nodes (state) where state <> 'gone';

create table tallies (
  at     integer not null,
  n      integer not null,
  ms     integer not null,
  packed integer not null default false,
  queue  text not null,
  what   text not null
) strict;
create index tallies_at on tallies (at);
create index tallies_loose on tallies (at) where not packed;

create table keys (
  scope      text not null,
  key        text not null,
  digest     text not null,
  answer     text not null,
  expires_at integer not null,
  primary key (scope, key)
) strict;
create index keys_old on keys (expires_at);

create table duties (
  name   text primary key,
  due_at integer not null default 0,
  node   integer
) strict;

create table messages (
  task         integer primary key,
  accepted_at  integer not null,
  scheduled_at integer not null,
  id           text not null,
  tenant       text not null,
  channel      text not null,
  recipient    text not null,
  content      text not null
) strict;
create unique index messages_id on messages (id);
create index messages_recipient on messages (tenant, recipient, task);
