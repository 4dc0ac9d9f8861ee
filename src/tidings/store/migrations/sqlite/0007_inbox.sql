-- What came in and how far each source was read; who may speak.

-- One row per source: its cursor, and the lock of whoever reads it. `token` is raised by each take-over and is the fence.
create table sources (
  name      text primary key,
  kind      text not null,
  known_at  integer not null,
  cursor    text,
  token     integer not null default 0,
  holder    text,
  began_at  integer,
  until     integer,
  due_at    integer not null default 0,
  read_at   integer,
  failures  integer not null default 0,
  problem   text,
  check ((holder is null) = (until is null)),
  check ((holder is null) = (began_at is null))
) strict;

-- Nothing is deleted here. `task` handles it; without one it ended on arrival. `ended` stands when the end is certain,
-- also after its task was forgotten.
create table inbox (
  n           integer primary key autoincrement,
  task        integer unique,
  id          text not null unique,
  tenant      text not null,
  source      text not null,
  platform_id text not null,
  conversation text not null,
  chat        text not null,
  sender      text not null,
  name        text not null,
  kind        text not null check (kind in ('message', 'edit', 'delete', 'system')),
  original    text,
  reply_to    text,
  attachments integer not null default 0,
  said_at     integer not null,
  received_at integer not null,
  speaks_for  text,
  edited_at   integer,
  deleted_at  integer,
  ended       text check (ended in ('done', 'expired', 'skipped')),
  reason      text,
  text        text not null,
  edited_text text,
  raw         text,
  unique (source, platform_id)
) strict;
create index inbox_conversation on inbox (conversation, n);
create index inbox_source on inbox (source, n);

-- Who may speak, by the platform's id of the sender; source '' means on every source.
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

-- Who was put on it and taken off, and who spoke for somebody else or wanted to.
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
