"""From the text of a document to its frontmatter, its sections and its chunks. Knows no store, client or service."""
