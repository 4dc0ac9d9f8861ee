-- Migrations: what was mended, what a rate is counted from, and what is known of a job whose records are forgotten.

-- `done_before` had their end before the job began last. `forgets`: its records and logs are being forgotten, or are.
alter table jobs add column done_before integer not null default 0;
alter table jobs add column forgets integer not null default false;
alter table jobs add column forgotten_at integer;
create index jobs_kept on jobs (ended_at) where forgotten_at is null and ended_at is not null;

-- How many stood where, as JSON, of a job whose records are forgotten.
alter table job_types add column counts text;

-- What the source had said of a record that was mended; empty: nothing that could be kept.
alter table job_records add column given text;
create index job_records_mended on job_records (job, type, seq) where given is not null;
