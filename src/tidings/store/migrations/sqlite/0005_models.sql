-- Language models: every call with its answer, what each endpoint bears, and what was spent.

-- Written before the call and again after it: a row that stays 'asked' is a call whose end nobody saw.
-- An answered row is also what a repeat of the same question is answered with.
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

create table model_endpoints (
  name         text primary key,
  interval     integer not null default 0,
  next_at      integer not null default 0,
  parked_until integer not null default 0,
  park_kind    text check (park_kind in ('busy', 'down')),
  park_reason  text
) strict;

-- Summed up by day (in UTC), in the transaction that writes the answer down.
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
