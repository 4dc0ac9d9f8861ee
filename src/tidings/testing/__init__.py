"""What users and our own tests import to test with Tidings: a private PostgreSQL server of their own."""

from .postgres import Cluster

__all__ = ["Cluster"]
