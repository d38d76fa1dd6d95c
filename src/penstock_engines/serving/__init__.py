"""Servers of models in child processes: started on first use, replaced when they die, ended when idle."""
