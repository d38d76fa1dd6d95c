"""Brushes, layers and light: the means of painting."""
