"""Effects: the ledger of what is asked of a calendar, written before it is done and settled by reading."""
