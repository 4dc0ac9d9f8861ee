-- Moving records between systems: jobs, their types, records and batches; who is who on both sides; what each system bears.

-- Two systems of a tenant between which records are moved.
create table job_pairs (
  n      integer primary key autoincrement,
  tenant text not null,
  source text not null,
  target text not null,
  unique (tenant, source, target)
) strict;

-- `held` is what a paused one goes back to. `look_at` is when somebody should look after it.
create table jobs (
  n            integer primary key autoincrement,
  id           text not null unique,
  tenant       text not null,
  name         text not null,
  pair         integer not null,
  state        text not null default 'new' check (state in ('new', 'planning', 'planned', 'approved', 'running', 'paused',
                 'cancelled', 'completed', 'failed')),
  held         text check (held in ('planning', 'running')),
  reason       text,
  parked_until integer,
  look_at      integer not null default 0,
  round        integer not null default 0,
  looks        integer not null default true,
  planned      integer not null default false,
  version      integer not null default 0,
  mapping_hash text not null,
  definition   text not null,
  created_at   integer not null,
  changed_at   integer not null,
  started_at   integer,
  ended_at     integer,
  check ((state = 'paused') = (held is not null))
) strict;
create index jobs_look on jobs (look_at) where state in ('planning', 'running', 'paused');
create index jobs_tenant on jobs (tenant, n);

-- One row per record type: how far the source was read, by whom, and up to where batches were cut.
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
  tries        integer not null default 0,
  problem      text,
  note         text,
  cut          integer not null default 0,
  passed       integer not null default -1,
  linked       integer not null default false,
  pace         integer,
  primary key (job, type)
) strict;

-- `key` null: the source's id. `mapped` is what was sent, while nobody knows whether it arrived. `batch`: opened again in it.
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
  tries       text not null default '{}',
  failure     text,
  field       text,
  fingerprint text,
  batch       text,
  reason      text,
  before      text,
  changes     text,
  raw         text,
  mapped      text,
  check (state <> 'claimed' or claimed_at is not null),
  unique (source_id, type, job)
) strict;
-- Each question has one index that fits: a planner without statistics would otherwise take any of them.
create index job_records_line on job_records (job, type, seq) where batch is null;
create index job_records_cause on job_records (job, fingerprint, seq) where fingerprint is not null;
create index job_records_links on job_records (job, type, seq) where links;
create index job_records_key on job_records (job, type, key) where key is not null;
-- Twins of what is in doubt: while one of them is being written, nobody can say whose a hit is.
create index job_records_claimed on job_records (job, type, hash) where state = 'claimed';
create index job_records_batch on job_records (batch, seq) where batch is not null;

-- A slice of a type: all between two places, or those that name it. What ended in it is counted with the records' own moves.
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
             check (state in ('pending', 'processing', 'retrying', 'completed', 'failed', 'failed_final')),
  attempts   integer not null default 0,
  written    integer not null default 0,
  unchanged  integer not null default 0,
  spent      integer not null default 0,
  reason     text,
  made_at    integer not null,
  changed_at integer not null
) strict;
create index job_batches_job on job_batches (job, round, state);
create index job_batches_system on job_batches (system) where state = 'processing';

-- Which task runs which batch.
create table job_turns (
  task  integer primary key,
  batch text not null
) strict;

-- Which record of the target is which of the source, and what it was written as.
create table crosswalk (
  pair       integer not null,
  type       text not null,
  source_id  text not null,
  target_id  text not null,
  hash       text,
  job        integer not null,
  changed_at integer not null,
  primary key (source_id, type, pair)
) strict, without rowid;
create index crosswalk_target on crosswalk (target_id, type, pair);

-- What a system bears, for all nodes: send instants, calls at once, a pause, a month's calls.
create table job_systems (
  name         text primary key,
  step         integer not null default 0,
  next_at      integer not null default 0,
  taken        integer not null default 0,
  concurrency  real not null default 2,
  most         integer not null default 8,
  parked_until integer not null default 0,
  reason       text,
  failures     integer not null default 0,
  best         integer,
  month        integer not null default 0,
  used         integer not null default 0,
  version      integer not null default 0
) strict;

-- Every attempt at a record; and who did what to a job.
create table job_log (
  n         integer primary key autoincrement,
  record    integer not null,
  at        integer not null,
  what      text not null,
  code      text,
  reason    text
) strict;
create index job_log_record on job_log (record, n);

create table job_audit (
  n      integer primary key autoincrement,
  job    integer not null,
  at     integer not null,
  who    text not null,
  what   text not null,
  detail text not null
) strict;
create index job_audit_job on job_audit (job, n);
