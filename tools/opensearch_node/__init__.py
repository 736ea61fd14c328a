"""A real OpenSearch node with k-NN on 127.0.0.1, for development and for the tests that need one: `make opensearch`.

From Docker's official image where an engine answers, otherwise assembled from Maven Central and run on Java 17. Plain
HTTP and no access control, so it listens to this machine alone. State lies in .local/opensearch.
"""
