"""Knowledge items brought to a state over the API, as people and agents do it; for tests of the API."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from knowledge.domain.access import Principal, Role
from knowledge.domain.item import ItemStatus
from tests.api import Api, done

READER, WRITER, REVIEWER, ADMIN = (Principal(f"test-{role}", role) for role in Role)
CALLERS = (None, READER, WRITER, REVIEWER, ADMIN)

# From each status to the next one, by the status that is wanted in the end.
_WAY_TO = {
    ItemStatus.CANDIDATE: (),
    ItemStatus.PENDING_REVIEW: ("pending_review",),
    ItemStatus.PUBLISHED: ("pending_review", "published"),
    ItemStatus.ARCHIVED: ("archived",),
}


def word() -> str:
    """A word that nobody else uses and nothing else is like."""
    return f"q{uuid4().hex[:16]}"


def proposal(title: str = "A lesson", content: str = "What was learnt.", **fields: Any) -> dict[str, Any]:
    """The body of `POST /items`."""
    return {"kind": "pitfall", "title": title, "content": content, **fields}


@dataclass
class Commands:
    """Commands on items that are expected to be done."""

    api: Api

    def propose(self, by: Principal = WRITER, **fields: Any) -> Any:
        """A new candidate."""
        return done(self.api.call(by, "POST", "/items", body=proposal(**fields)))

    def item(self, status: ItemStatus, by: Principal = WRITER, **fields: Any) -> Any:
        """A new item of that status, proposed by `by`."""
        item = self.propose(by, **fields)
        for after in _WAY_TO[status]:
            item = self.move(item, after)
        return item

    def move(self, item: Any, status: str, by: Principal = REVIEWER, **fields: Any) -> Any:
        """The item with that status."""
        body = {"status": status, "expected_version": item["version"], **fields}
        return done(self.api.call(by, "POST", f"/items/{item['id']}/status", body=body))

    def edit(self, item: Any, by: Principal = REVIEWER, **fields: Any) -> Any:
        """The item with those fields."""
        body = {"expected_version": item["version"], **fields}
        return done(self.api.call(by, "PATCH", f"/items/{item['id']}", body=body))

    def lookup(self, query: str) -> Any:
        """The answer of `POST /lookup`, to an agent."""
        return done(self.api.call(READER, "POST", "/lookup", body={"query": query}))
