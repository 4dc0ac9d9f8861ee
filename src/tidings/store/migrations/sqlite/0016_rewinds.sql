-- Each time the database was found to have gone back (a failover to a standby that lagged, a restored backup): the server
-- on which it was found, where the surviving copy ends as far as is known, when it was found, and how many tasks became unknown.
create table rewinds (
  server      text primary key,
  survived_at integer not null,
  found_at    integer not null,
  touched_at  integer not null default 0,
  finished_at integer,
  node        integer,
  unknown     integer not null default 0
) strict;
