-- Alerts: what the engine has found wrong with itself, from the first sight of it until it is over.

-- Whether the engine itself paused a channel; a person's pause is nobody's alarm.
alter table queues add column halted boolean not null default false;

create table alerts (
  id              text collate "C" primary key,
  tenant          text not null,
  rule            text collate "C" not null,
  subject         text collate "C" not null,
  severity        text not null check (severity in ('warning', 'critical')),
  state           text not null check (state in ('pending', 'raised', 'resolved')),
  value           double precision not null,
  problem         text not null,
  first_at        bigint not null,
  last_at         bigint not null,
  raised_at       bigint,
  acknowledged_at bigint,
  acknowledged_by text,
  resolved_at     bigint,
  not_told        text,
  check ((state = 'pending') = (raised_at is null)),
  check ((state = 'resolved') = (resolved_at is not null)),
  check ((acknowledged_at is null) = (acknowledged_by is null))
);
-- One alert of a rule and its subject at a time.
create unique index alerts_open on alerts (rule, subject) where resolved_at is null;
create index alerts_newest on alerts (tenant, id);
create index alerts_old on alerts (resolved_at) where resolved_at is not null;

-- Schedules that could not make what they should, and runs that nobody made up for.
create index schedules_problem on schedules (id) where problem is not null;
create index occurrences_missed on occurrences (told_at) where outcome = 'missed';
