"""Run-time settings: vendors and models that administrators change while servers run."""
