-- The shift calendar, and the ledger of what is asked of any calendar.

-- One row per day that was ever written; whoever writes a day holds it, so that no change is lost under another.
create table shift_days (
  calendar text not null,
  day      text collate "C" not null,
  made_at  bigint not null,
  primary key (calendar, day)
);

-- The 48 half hours of a squad's day from 0600: c has a crew, n is marked as without, . is not on the calendar.
create table shift_lines (
  calendar   text not null,
  day        text collate "C" not null,
  squad      text collate "C" not null,
  slots      text not null check (length(slots) = 48),
  changed_at bigint not null,
  primary key (calendar, day, squad)
);

-- Every change of the built-in calendar, for good; the key makes it happen once.
create table shift_changes (
  id       bigint generated always as identity primary key,
  key      text not null unique,
  calendar text not null,
  day      text collate "C" not null,
  squad    text not null,
  who      text not null,
  at       bigint not null,
  action   text not null check (action in ('no_crew', 'add', 'remove')),
  begins   text not null,
  ends     text not null,
  was      text not null check (length(was) = 48),
  became   text not null check (length(became) = 48)
);
create index shift_changes_day on shift_changes (calendar, day, id);

-- What is asked of a calendar: written before it is done, settled by reading.
create table effects (
  task         bigint primary key,
  key          text not null unique,
  plan         text not null,
  tenant       text not null,
  calendar     text not null,
  day          text collate "C" not null,
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
  planned_at   bigint not null,
  claimed_at   bigint,
  ended_at     bigint,
  told         boolean not null default false,
  check ((pre is null) = (expected is null)),
  check (state <> 'claimed' or pre is not null)
);
create index effects_day on effects (calendar, day, task);
create index effects_newest on effects (calendar, task);
create index effects_plan on effects (plan);
create index effects_undoes on effects (undoes) where undoes is not null;
-- Those that nobody has heard the end of.
create index effects_untold on effects (task) where not told;

-- A result that the conversation of its plan is to hear of.
create table followups (
  task bigint primary key,
  plan text not null
);
