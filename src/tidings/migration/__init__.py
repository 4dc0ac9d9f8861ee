"""Migration: records moved between systems, restartable to the record."""
