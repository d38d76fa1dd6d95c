"""Everything durable: tables, queries per concept, and the database that runs them in transactions."""
