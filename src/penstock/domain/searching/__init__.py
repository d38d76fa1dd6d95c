"""Search: the words by which a job is found, and the queries that are compared with them."""
