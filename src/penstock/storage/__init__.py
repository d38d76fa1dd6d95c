"""Bytes: callers' files and jobs' outputs, in a folder or a bucket."""
