"""The store: tables, queries by concept, and the database that runs them in transactions."""
