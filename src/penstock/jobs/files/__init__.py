"""Input files of jobs."""
