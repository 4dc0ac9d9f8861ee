"""What users and our own tests import to test with Tidings: a private PostgreSQL and a private RabbitMQ."""

from .postgres import Cluster
from .rabbitmq import Rabbit

__all__ = ["Cluster", "Rabbit"]
