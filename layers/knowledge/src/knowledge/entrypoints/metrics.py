"""The metrics of the product, as CloudWatch shows them; docs/operations.md says what each tells."""

NAMESPACE = "KnowledgeBase"
TIER_FAILED = "TierFailed"
PUBLISHED_WITHOUT_EMBEDDING = "PublishedWithoutEmbedding"
