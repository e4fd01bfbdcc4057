"""Client and worker of Mainspring, the durable task scheduler. Standard library only.

Start with ``Client`` (or ``AsyncClient``) to submit jobs, and with ``Worker`` to run them.
"""

from .client import AsyncClient, Client, wish
from .context import CANCELLED, DRAINING, LEASE_LOST, TIMED_OUT, AsyncContext, Attempt, Context
from .errors import Error, Failure, Refused, Release, Stopped, Unreachable, Unreadable
from .worker import Summary, Worker

__version__ = "0.1.0"

__all__ = [
    "CANCELLED",
    "DRAINING",
    "LEASE_LOST",
    "TIMED_OUT",
    "AsyncClient",
    "AsyncContext",
    "Attempt",
    "Client",
    "Context",
    "Error",
    "Failure",
    "Refused",
    "Release",
    "Stopped",
    "Summary",
    "Unreachable",
    "Unreadable",
    "Worker",
    "wish",
]
