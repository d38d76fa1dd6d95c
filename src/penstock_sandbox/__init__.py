"""Confinement of processes that read untrusted bytes. Gateway and engines share it. It imports neither."""
