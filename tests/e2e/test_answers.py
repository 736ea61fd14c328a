"""The seed, asked over real HTTP."""

import pytest

from tests.e2e.conftest import Stack

pytestmark = pytest.mark.e2e
PRIMARY = {"content", "source", "matchType", "confidence", "availableSections"}
SUPPLEMENT = {"content", "source", "matchType"}


def test_an_error_code_is_answered_exactly(stack: Stack) -> None:
    body = stack.lookup("PAY-1042 是什么错误")
    assert set(body) == {"found", "primary", "supplement"}
    assert body["found"] is True
    assert set(body["primary"]) == PRIMARY
    assert body["primary"]["source"] == "knowledge_base/支付/支付网关错误码.md"
    assert body["primary"]["matchType"] == "exact_L0"
    assert body["primary"]["confidence"] == "high"
    assert body["primary"]["availableSections"] is None
    assert "PAY-1042" in body["primary"]["content"]
    assert body["supplement"] is None


def test_an_open_question_is_answered_by_meaning(stack: Stack) -> None:
    body = stack.lookup("金额字段应该用小数还是整数保存")
    assert set(body) == {"found", "primary", "supplement"}
    assert body["found"] is True
    assert body["primary"] is None
    assert set(body["supplement"]) == SUPPLEMENT
    assert body["supplement"]["source"] == "knowledge_base/设计/ledger.md"
    assert body["supplement"]["matchType"] == "semantic_L1"


def test_several_hits_are_answered_with_low_confidence_and_a_supplement(stack: Stack) -> None:
    body = stack.lookup("幂等")
    assert body["primary"]["confidence"] == "low"
    assert set(body["primary"]) == PRIMARY
    assert set(body["supplement"]) == SUPPLEMENT


@pytest.mark.parametrize("query", ["khgcvyuui", "how long should I boil spaghetti al dente", "红烧肉怎么做才不腻"])
def test_nonsense_and_other_topics_are_not_found(stack: Stack, query: str) -> None:
    assert stack.lookup(query) == {"found": False, "primary": None, "supplement": None}


def test_get_lookup_answers_as_post_does(stack: Stack) -> None:
    answer = stack.api.get("/lookup", params={"query": "支付"})
    assert answer.json() == stack.lookup("支付")
