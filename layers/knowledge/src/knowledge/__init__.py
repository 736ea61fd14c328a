"""A knowledge base that agents call before they act: exact answers, semantic ones, or an honest "not found"."""
