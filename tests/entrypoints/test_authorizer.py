import pytest

from knowledge.adapters.memory_tokens import MemoryTokenStore
from knowledge.domain.access import Role
from knowledge.entrypoints.authorizer import Unauthorized, build_handler
from knowledge.services.authentication import Authentication
from knowledge.services.tokens import Tokens
from tests.entrypoints.events import Context

ARN = "arn:aws:execute-api:eu-west-1:111122223333:abc123/v1/POST/lookup"
store = MemoryTokenStore()
right = Tokens(store).create("ci", Role.WRITER, None).secret
handler = build_handler(lambda: Authentication(store))


def test_a_known_token_gives_a_policy_for_the_whole_stage_and_the_callers_name_and_role() -> None:
    answer = handler({"type": "TOKEN", "authorizationToken": f"Bearer {right}", "methodArn": ARN}, Context())
    assert answer["context"] == {"actor": "ci", "role": "writer"}
    (statement,) = answer["policyDocument"]["Statement"]
    assert statement["Effect"] == "Allow"
    assert statement["Resource"] == "arn:aws:execute-api:eu-west-1:111122223333:abc123/v1/*"


def test_the_scheme_may_be_written_in_any_case() -> None:
    event = {"type": "TOKEN", "authorizationToken": f"bearer  {right}", "methodArn": ARN}
    assert handler(event, Context())["principalId"] == "ci"


@pytest.mark.parametrize(
    "header", ["Bearer wrong", "Bearer ", "Bearer", "", right, f"Basic {right}", f"Bearer {right} x"]
)
def test_anything_else_is_unauthorized(header: str) -> None:
    with pytest.raises(Unauthorized, match=r"^Unauthorized$"):
        handler({"type": "TOKEN", "authorizationToken": header, "methodArn": ARN}, Context())
