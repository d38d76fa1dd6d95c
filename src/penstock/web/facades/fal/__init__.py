"""fal's HTTP API, below `/fal`."""

from penstock.web.facades.fal import files, proxy, queue, runs

PAGES = (files, proxy, queue, runs)
