-- How long a node's number has stood still while somebody watched: observed time only, added up over all watchers.
alter table nodes add column watched_beat integer not null default -1;
alter table nodes add column watched_at integer not null default 0;
alter table nodes add column silent_for integer not null default 0;
