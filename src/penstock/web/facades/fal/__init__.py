"""fal's HTTP API, below `/fal`."""

from penstock.web.api.generations import read_no_params
from penstock.web.facades.fal import files, parts, proxy, queue, runs

PAGES = (files, parts, proxy, queue, runs)
HOT = {
    queue.submit: queue.read_no_query,
    queue.get_status: queue.read_logs,
    queue.get_result: queue.read_no_query,
    runs.run: read_no_params,
    proxy.proxy_get: read_no_params,
    proxy.proxy_post: read_no_params,
}
"""The routes that carry nearly all traffic."""
