"""Replicate's HTTP API, below `/replicate/v1`."""

from penstock.web.facades.replicate import account, files, models, predictions

PAGES = (predictions, files, models, account)
