"""Use cases, one a file. They know ports, parsing and retrieval; never a client, HTTP or the environment."""
