"""Facts about the work, told upwards: typed events, one sink per file. Sinks only listen."""
