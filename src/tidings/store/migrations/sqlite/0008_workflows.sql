-- Workflows, what was decided about every message, and what people are asked to look at.

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
-- One open workflow of a squad about the same days.
create unique index workflows_open on workflows (tenant, conversation, squad, topic) where closed_at is null;
create unique index workflows_plan on workflows (plan) where plan is not null;
create index workflows_idle on workflows (idle_at) where idle_at is not null;
create index workflows_newest on workflows (tenant, id);

-- One row for each message that was worked through: whoever comes second finds it. `held`: kept for later, behind
-- a workflow that is at work, or until a person has said what to do with it.
create table hearings (
  n            integer primary key autoincrement,
  message      text not null unique,
  tenant       text not null,
  conversation text not null,
  squad        text not null,
  workflow     text,
  decision     text not null,
  reason       text not null,
  held         text check (held in ('queued', 'unclear', 'person')),
  released_at  integer,
  at           integer not null,
  heard_at     integer not null,
  speaker      text not null,
  text         text not null,
  facts        text not null
) strict;
create index hearings_conversation on hearings (tenant, conversation, n);
create index hearings_held on hearings (held, n) where held is not null;

-- What happened in a conversation, step by step.
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

-- A kept message that is worked through after all; `verdict` is a person's word on it.
create table rehearings (
  task    integer primary key,
  message text not null,
  verdict text check (verdict in ('related', 'new'))
) strict;

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
-- The same trouble is one case while it is not closed.
create unique index cases_key on cases (tenant, key) where state <> 'closed';
create index cases_newest on cases (tenant, id);
create index cases_state on cases (tenant, state, id);
-- Conversations that a person holds.
create index cases_held on cases (conversation) where state in ('claimed', 'answered');
create index cases_deadline on cases (deadline_at) where deadline_at is not null;

-- What admins are told; the same thing once until somebody has acknowledged it.
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
