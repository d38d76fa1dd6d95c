"""Replicate's HTTP API, below `/replicate/v1`."""

from penstock.web.api.generations import read_no_params
from penstock.web.facades.replicate import account, files, models, predictions, streams

PAGES = (predictions, streams, files, models, account)
HOT = {
    predictions.create_prediction: read_no_params,
    predictions.create_model_prediction: read_no_params,
    predictions.get_prediction: read_no_params,
}
"""The routes that carry nearly all traffic."""
