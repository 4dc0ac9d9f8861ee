"""Facts about the work, told upwards: typed events, one sink per file. Removing every sink changes nothing."""
