"""Helpers for your own tests: a private PostgreSQL and a private RabbitMQ.

postgres: a private PostgreSQL cluster.
rabbitmq: a private RabbitMQ broker.
private_server: what the two have in common.
watchdog: stops the servers and removes their files when the test process dies.
"""

from .postgres import PostgresCluster
from .rabbitmq import RabbitBroker

__all__ = ["PostgresCluster", "RabbitBroker"]
