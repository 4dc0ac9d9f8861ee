-- Moving records between systems: jobs, their types, records and batches; who is who on both sides; what each system bears.

-- Two systems of a tenant between which records are moved.
create table job_pairs (
  n      bigint generated always as identity primary key,
  tenant text not null,
  source text collate "C" not null,
  target text collate "C" not null,
  unique (tenant, source, target)
);

-- `held` is what a paused one goes back to. `look_at` is when somebody should look after it.
create table jobs (
  n            bigint generated always as identity primary key,
  id           text collate "C" not null unique,
  tenant       text collate "C" not null,
  name         text not null,
  pair         bigint not null,
  state        text not null default 'new' check (state in ('new', 'planning', 'planned', 'approved', 'running', 'paused',
                 'cancelled', 'completed', 'failed')),
  held         text check (held in ('planning', 'running')),
  reason       text,
  parked_until bigint,
  look_at      bigint not null default 0,
  round        integer not null default 0,
  looks        boolean not null default true,
  planned      boolean not null default false,
  version      integer not null default 0,
  mapping_hash text not null,
  definition   text not null,
  created_at   bigint not null,
  changed_at   bigint not null,
  started_at   bigint,
  ended_at     bigint,
  check ((state = 'paused') = (held is not null))
);
create index jobs_look on jobs (look_at) where state in ('planning', 'running', 'paused');
create index jobs_tenant on jobs (tenant, n);

-- One row per record type: how far the source was read, by whom, and up to where batches were cut.
create table job_types (
  job          bigint not null,
  type         text collate "C" not null,
  wave         integer not null,
  cursor       text,
  expected     bigint,
  extracted    bigint not null default 0,
  seen_again   bigint not null default 0,
  is_read      boolean not null default false,
  reader       text,
  reader_until bigint not null default 0,
  due_at       bigint not null default 0,
  tries        integer not null default 0,
  problem      text,
  note         text,
  cut          bigint not null default 0,
  passed       bigint not null default -1,
  linked       boolean not null default false,
  pace         bigint,
  primary key (job, type)
);

-- `key` null: the source's id. `mapped` is what was sent, while nobody knows whether it arrived. `batch`: opened again in it.
create table job_records (
  seq         bigint generated always as identity primary key,
  job         bigint not null,
  round       integer not null,
  due_at      bigint not null default 0,
  claimed_at  bigint,
  changed_at  bigint not null,
  links       boolean not null default false,
  state       text not null check (state in ('extracted', 'ready', 'waiting', 'claimed', 'unknown', 'written', 'unchanged',
                'rejected', 'failed', 'skipped', 'conflict')),
  type        text collate "C" not null,
  source_id   text collate "C" not null,
  key         text collate "C",
  target_id   text,
  hash        text,
  action      text check (action in ('create', 'update', 'write', 'unchanged', 'rejected', 'skipped', 'unresolved',
                'conflict')),
  tries       text not null default '{}',
  failure     text,
  field       text,
  fingerprint text collate "C",
  batch       text collate "C",
  reason      text,
  before      text,
  changes     text,
  raw         text,
  mapped      text,
  check (state <> 'claimed' or claimed_at is not null),
  unique (source_id, type, job)
) with (fillfactor = 80);
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
  id         text collate "C" primary key,
  job        bigint not null,
  type       text collate "C" not null,
  round      integer not null,
  phase      text not null check (phase in ('plan', 'run', 'links')),
  system     text collate "C" not null,
  first      bigint not null,
  last       bigint not null,
  size       integer not null,
  task       bigint,
  state      text not null default 'pending'
             check (state in ('pending', 'processing', 'retrying', 'completed', 'failed', 'failed_final')),
  attempts   integer not null default 0,
  written    integer not null default 0,
  unchanged  integer not null default 0,
  spent      bigint not null default 0,
  reason     text,
  made_at    bigint not null,
  changed_at bigint not null
);
create index job_batches_job on job_batches (job, round, state);
create index job_batches_system on job_batches (system) where state = 'processing';

-- Which task runs which batch.
create table job_turns (
  task  bigint primary key,
  batch text collate "C" not null
);

-- Which record of the target is which of the source, and what it was written as.
create table crosswalk (
  pair       bigint not null,
  type       text collate "C" not null,
  source_id  text collate "C" not null,
  target_id  text collate "C" not null,
  hash       text,
  job        bigint not null,
  changed_at bigint not null,
  primary key (source_id, type, pair)
);
create index crosswalk_target on crosswalk (target_id, type, pair);

-- What a system bears, for all nodes: send instants, calls at once, a pause, a month's calls.
create table job_systems (
  name         text collate "C" primary key,
  step         bigint not null default 0,
  next_at      bigint not null default 0,
  taken        integer not null default 0,
  concurrency  double precision not null default 2,
  most         integer not null default 8,
  parked_until bigint not null default 0,
  reason       text,
  failures     integer not null default 0,
  best         bigint,
  month        integer not null default 0,
  used         bigint not null default 0,
  version      bigint not null default 0
);

-- Every attempt at a record; and who did what to a job.
create table job_log (
  n         bigint generated always as identity primary key,
  record    bigint not null,
  at        bigint not null,
  what      text not null,
  code      text,
  reason    text
);
create index job_log_record on job_log (record, n);

create table job_audit (
  n      bigint generated always as identity primary key,
  job    bigint not null,
  at     bigint not null,
  who    text not null,
  what   text not null,
  detail text not null
);
create index job_audit_job on job_audit (job, n);
