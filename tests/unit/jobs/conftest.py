"""Parts of gateways that the tests here share."""

from spares import sharing, spares

__all__ = ["sharing", "spares"]
