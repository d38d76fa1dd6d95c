"""The means of painting: brush, layers and light."""
