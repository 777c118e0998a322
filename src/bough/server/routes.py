"""Every operation of the API, in the order in which the document shows them."""

from __future__ import annotations

from bough.server import routes_cluster, routes_jobs
from bough.server.operations import Operations

api = Operations([*routes_jobs.api.all, *routes_cluster.api.all])
