-- How long a node's number has stood still while somebody watched: observed time only, added up over all watchers.
alter table nodes add column watched_beat bigint not null default -1;
alter table nodes add column watched_at bigint not null default 0;
alter table nodes add column silent_for bigint not null default 0;
