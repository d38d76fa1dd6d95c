"""Share links: public pages of a job's outputs."""
