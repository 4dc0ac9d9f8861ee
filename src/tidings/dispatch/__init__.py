"""Dispatch through RabbitMQ: dispatchers claim, publish and settle; transports send and have no database.

See docs/how-to/fleet.md.

roles: process roles and partitions of the work.
context: what all parts of one dispatcher share.
dispatcher_runtime: everything a dispatcher needs besides its runner.
remote_executor: publishes claimed tasks and settles them by the reports of transports.
publisher: packs tasks into batches and publishes them, once per claim.
in_flight_tasks: tasks held by transports, and what a report means for each (pure).
flow_control: how many tasks of each channel may be in flight; adapts to the throughput of the last second.
reconciliation: settles tasks of lost transports and records late results.
recovery: takes over the in-flight tasks of a dead dispatcher.
transport: sends batches and reports each outcome.
wire_format: encoding of batches, reports and markers (pure).
claim_tokens: HMAC tokens that prove a claim was dispatched.
rabbitmq: the connection to RabbitMQ: topology, publisher confirms, consumers.
broker_memory: memory of the RabbitMQ nodes, from the management API.
broker_messages: received messages and their acknowledgement.
broker_errors: connection problems as text with a remedy (pure).
"""
