"""Truth at rest: one port, two databases, statements as files."""
