"""Domain types. Standard library only; imports nothing else of Tidings.

task: tasks, their states and the allowed transitions; the claim number is the fencing token.
outcome: the possible outcomes of one attempt.
message: messages and drafts.
broadcast: broadcasts: states, options, quiet hours, tallies.
errors: all errors, grouped by what the caller should do next.
start_check: whether an attempt may still start in its rate-limit slot.
durations: parses and formats durations.
time: instants as whole microseconds since 1970.
"""
