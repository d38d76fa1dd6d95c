"""Pages of pipelines, their templates, and the lineage of jobs."""
