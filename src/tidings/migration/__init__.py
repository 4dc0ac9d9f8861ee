"""Migration: moves records between systems in jobs that resume after a crash without loss or repetition.

adaptive_batch_size: batch and commit sizes that follow the measured time per record. Pure.
adaptive_concurrency: concurrency of a system (AIMD) and its circuit breaker. Pure.
batch_attempt: one attempt at a batch: progress, time limit and commits, fenced by the task's claim.
batch_handler: the task handler of kind `batch`.
batch_scheduler: cuts batches wave by wave, creates their tasks fairly, bisects poison batches, ends jobs (an actor).
connector_pool: the opened connectors of jobs, shared by the batches of a node; lint against both systems.
credentials: references to secrets in a job, and how they are resolved.
crosswalk: which target record belongs to which source record, with the hash of its content.
dead_letter_files: failed records as CSV or NDJSON for repair, and the repaired files read back.
dead_letters: rejected, failed and conflicting records, by cause and one by one.
dry_run: plans: read and map everything, look up the target, write nothing.
error_policy: what happens to a record after an error: retry, reject, pause, halt, or look it up. Pure.
external_sort: sorts more rows than fit in memory.
extractor: reads sources page by page under a lease (an actor).
job_events: outbox events and audit entries of jobs.
job_file: parses job files (TOML, YAML, JSON) into a MigrationJob.
job_file_section: one table of a job file, with every key checked.
job_metrics: counts for the metrics endpoint.
job_permissions: files, databases, secrets and hosts that a job may access.
job_replay: replays failed records after a repair.
job_undo: undo: deletes records that a job created and nobody has changed since.
jobs: states and views of jobs, types and batches.
prepared_records: source rows mapped, linked and deduplicated, ready to be written.
progress: status of a job, plan report.
rate_limits: rate-limit slots, pauses and monthly quota of a system.
reconciliation: looks up records whose write has an unknown outcome; detects conflicts with a plan.
record_states: the states of a record.
reopened_batches: new batches for records that are opened again.
retention: deletes records, batches and logs of jobs that ended long ago (the pruner).
retry_policy: retry policies and backoff of a job, by kind of error.
serializers: jobs, records and plans as JSON values.
service: MigrationService, the operations of the API, the CLI and the dashboard.
verification: compares every source record with the target.
verification_report: the result of a verification, as JSON and text.
writer: writes prepared records to the target; claims those that must not be sent twice.
connectors, mapping: see there.
"""
