"""What one instance has acknowledged, every other one answers in its very next lookup, and for one read.

FRESHNESS_ROUNDS says how often that is tried.
"""

import json
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from knowledge.domain.lookup import Confidence, LookupAnswer
from tests.e2e.product import PREFIX, Product
from tests.services.world import ADMIN, READER, markdown

pytestmark = pytest.mark.e2e
ROUNDS = int(os.environ.get("FRESHNESS_ROUNDS", "50"))
INSTANCES = 8


def test_an_upload_is_in_the_next_lookup_of_eight_others_and_a_deleted_document_in_none_D7_D18(
    product: Product,
) -> None:
    documents, readers = product.documents(), [product.reader().lookup for _ in range(INSTANCES)]
    documents.upload_document(ADMIN, category="kb", file_name="kept.md", content=markdown("ERR_KEPT").encode())
    counts, started = Counter[str](), time.perf_counter()
    with ThreadPoolExecutor(INSTANCES) as threads:

        def answers(query: str) -> list[LookupAnswer]:
            return list(threads.map(lambda lookup: lookup.lookup_knowledge(READER, query), readers))

        for number in range(ROUNDS):
            keyword, name = f"FRESH-{number}", f"{number % 7}.md"
            content = markdown(keyword, body=f"Text {number}.")
            record = documents.upload_document(ADMIN, category="kb", file_name=name, content=content.encode()).record
            for answer in answers(keyword):
                primary = answer.primary
                assert primary is not None, f"{keyword} is not found by all after {counts}"
                assert (primary.source, primary.content, primary.confidence) == (
                    f"{PREFIX}kb/{name}",
                    content,
                    Confidence.HIGH,
                )
                counts["found"] += 1
            if number % 2:
                documents.delete_document(ADMIN, record.doc_id)
                # A second keyword makes the other document a unique hit, which spares the semantic tier.
                for answer in answers(f"{keyword} ERR_KEPT"):
                    assert answer.primary is not None
                    assert answer.primary.source == f"{PREFIX}kb/kept.md", f"{keyword} came back after {counts}"
                    assert answer.primary.confidence is Confidence.HIGH
                    counts["gone"] += 1
            if number % 20 == 1:
                for answer in answers(f"{keyword} Text {number}"):
                    sources = {found.source for found in (answer.primary, answer.supplement) if found}
                    assert f"{PREFIX}kb/{name}" not in sources, f"{keyword} came back by meaning after {counts}"
    print(f"\n{ROUNDS} rounds in {time.perf_counter() - started:.0f} s: {dict(counts)}")
    assert counts["found"] == ROUNDS * INSTANCES
    assert counts["gone"] == ROUNDS // 2 * INSTANCES


def test_a_lookup_makes_one_strongly_consistent_read_when_nothing_changed(product: Product) -> None:
    documents, calls = product.documents(), Counter[tuple[str, bool]]()
    for number in range(3):
        content = markdown(f"ERR-{number}").encode()
        documents.upload_document(ADMIN, category="kb", file_name=f"{number}.md", content=content)

    def count(request: Any, event_name: str, **_: Any) -> None:
        operation = event_name.split(".")[-1]
        body = json.loads(request.body) if operation in ("Query", "GetItem", "BatchGetItem") else {}
        calls.update([(operation, body.get("ConsistentRead", False))])

    product.before_send = count
    lookup = product.reader().lookup
    lookup.lookup_knowledge(READER, "ERR-0")
    calls.clear()
    for number in range(30):
        assert lookup.lookup_knowledge(READER, f"ERR-{number % 3}").primary is not None
    # The other call reads the document that is answered.
    assert calls == {("Query", True): 30, ("GetObject", False): 30}
