"""The ledger of calendar commands: each is written before it is sent and settled by reading the calendar.

handler: the task handler of one command: read, claim, send, read back.
ledger: ledger rows, their states and idempotency keys.
reconciler: closes commands whose task ended without a result.
verification: compares the calendar with the expected result. Pure.
"""
