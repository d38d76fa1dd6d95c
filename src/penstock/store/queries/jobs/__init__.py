"""Rows of jobs, their events and their claims."""
