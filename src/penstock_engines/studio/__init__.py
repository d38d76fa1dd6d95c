"""Runs the 3D and video engines: orders as folders, each made by a confined child process."""
