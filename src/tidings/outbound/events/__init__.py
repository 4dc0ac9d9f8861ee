"""Events out: who wants to be told, and the telling."""
