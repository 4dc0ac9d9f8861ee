-- Each time the database was found to have gone back (a failover to a standby that lagged, a restored backup): the server
-- on which it was found, where the surviving copy ends as far as is known, when it was found, and how many tasks became unknown.
create table rewinds (
  server      text collate "C" primary key,
  survived_at bigint not null,
  found_at    bigint not null,
  touched_at  bigint not null default 0,
  finished_at bigint,
  node        bigint,
  unknown     bigint not null default 0
);
