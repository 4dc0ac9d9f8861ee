"""The crash drill: real workers on a scratch database, killed under load, and judged by logs."""
