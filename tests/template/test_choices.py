"""Vector store and embedder: what each choice makes, tells the functions and lets them do; what is refused at once."""

import json
from typing import Any, Final

import pytest

from knowledge.config import KnowledgeSettings
from tests.template.evaluation import evaluated, refused

Json = dict[str, Any]

DOMAIN: Final = {
    "VectorStore": "opensearch",
    "OpenSearchEndpoint": "https://search-kb-abc.eu-central-1.es.amazonaws.com",
    "OpenSearchDomainArn": "arn:aws:es:eu-central-1:123456789012:domain/kb-abc",
}
COLLECTION: Final = {
    "VectorStore": "opensearch",
    "OpenSearchEndpoint": "https://abc123.eu-central-1.aoss.amazonaws.com",
    "OpenSearchCollection": "knowledge-vectors",
}
NEW_DOMAIN: Final = {"VectorStore": "opensearch"}
NODE: Final = {"VectorStore": "opensearch", "OpenSearchEndpoint": "http://127.0.0.1:9200"}
BEDROCK: Final = {"Embedder": "bedrock", "EmbeddingModel": "amazon.titan-embed-text-v2:0"}
SECRET: Final = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:embedding-key-AbCdEf"
OPENAI: Final = {
    "Embedder": "openai",
    "EmbeddingModel": "text-embedding-3-small",
    "EmbeddingDimension": "1536",
    "EmbeddingUrl": "https://api.openai.com/v1",
    "EmbeddingSecretArn": SECRET,
}
STORES: Final = {"embedded": {}, "domain": DOMAIN, "collection": COLLECTION, "new domain": NEW_DOMAIN, "node": NODE}
EMBEDDERS: Final = {"local": {}, "bedrock": BEDROCK, "openai": OPENAI}
READER: Final = "LookupFunctionRole"
WRITERS: Final = {
    "UploadFunctionRole",
    "DeleteFunctionRole",
    "KnowledgeFunctionRole",
    "IndexerRole",
    "MaintenanceFunctionRole",
}

each_store = pytest.mark.parametrize("store", STORES)
each_embedder = pytest.mark.parametrize("embedder", EMBEDDERS)


def environment(resources: Json, function: str) -> dict[str, str]:
    """Values as the function gets them; what only the deployment knows has a name instead."""
    variables: Json = resources[f"{function.capitalize()}Function"]["Properties"]["Environment"]["Variables"]
    new = {"https://${Domain.DomainEndpoint}": "https://search-new.es.amazonaws.com"}
    texts = {name: value if isinstance(value, str) else str(*value.values()) for name, value in variables.items()}
    return {name: new.get(value, value) for name, value in texts.items()}


def granted(resources: Json) -> dict[str, set[str]]:
    """Actions of each role outside its own policy, on the vector store and the embedder."""
    found: dict[str, set[str]] = {}
    for resource in resources.values():
        if resource["Type"] == "AWS::IAM::Policy":
            for role in resource["Properties"]["Roles"]:
                for statement in resource["Properties"]["PolicyDocument"]["Statement"]:
                    actions = statement["Action"]
                    found.setdefault(role["Ref"], set()).update([actions] if isinstance(actions, str) else actions)
    return found


def paths(statement: Json) -> set[str]:
    """Of the domain's API, for which the statement holds."""
    return {resource["Fn::Sub"].removeprefix("${OpenSearchDomainArn}/") for resource in statement["Resource"]}


@each_store
@each_embedder
def test_every_combination_is_accepted_and_its_functions_start(template: Json, store: str, embedder: str) -> None:
    parameters = {**STORES[store], **EMBEDDERS[embedder]}
    assert refused(template, parameters) == []
    resources = evaluated(template, parameters)
    for function in ("upload", "delete", "lookup", "indexer", "maintenance"):
        settings = KnowledgeSettings.from_env(environment(resources, function))
        assert settings.vector_store == parameters.get("VectorStore", "embedded")
        assert settings.embedder == embedder


@pytest.mark.parametrize(
    ("store", "service"), [("domain", "es"), ("new domain", "es"), ("collection", "aoss"), ("node", "none")]
)
def test_requests_are_signed_for_what_stands_behind_the_endpoint(template: Json, store: str, service: str) -> None:
    told = environment(evaluated(template, STORES[store]), "lookup")
    assert told["OPENSEARCH_SERVICE"] == service
    expected = STORES[store].get("OpenSearchEndpoint", "https://search-new.es.amazonaws.com")
    assert told["OPENSEARCH_URL"] == expected


@each_store
@each_embedder
def test_numpy_and_the_model_are_carried_only_where_something_uses_them(
    template: Json, store: str, embedder: str
) -> None:
    resources = evaluated(template, {**STORES[store], **EMBEDDERS[embedder]})
    is_used = store == "embedded" or embedder == "local"
    layers = [r["Properties"]["Layers"] for r in resources.values() if r["Type"] == "AWS::Lambda::Function"]
    assert sorted(map(len, layers)) == [1, *([2] * 6 if is_used else [1] * 6)]
    assert any("numpy" in str(r["Properties"].get("Description")) for r in resources.values()) is is_used


@pytest.mark.parametrize("parameters", [{}, NODE, NEW_DOMAIN])
def test_without_another_service_no_role_is_given_anything_more(template: Json, parameters: dict[str, str]) -> None:
    assert granted(evaluated(template, parameters)) == {}


def test_lookups_can_only_search_an_existing_domain_and_the_others_write_only_their_own_index(template: Json) -> None:
    resources = evaluated(template, DOMAIN)
    policies = {name: r["Properties"] for name, r in resources.items() if r["Type"] == "AWS::IAM::Policy"}
    assert set(policies) == {"DomainReaders", "DomainWriters"}
    assert [role["Ref"] for role in policies["DomainReaders"]["Roles"]] == [READER]
    assert {role["Ref"] for role in policies["DomainWriters"]["Roles"]} == WRITERS
    reading, searching = policies["DomainReaders"]["PolicyDocument"]["Statement"]
    assert reading["Action"] == "es:ESHttpGet"
    assert paths(reading) == {"${OpenSearchAlias}/*", "${OpenSearchAlias}-*"}
    assert paths(searching) == {"${OpenSearchAlias}/_msearch", "${OpenSearchAlias}-*/_msearch"}
    [writing] = policies["DomainWriters"]["PolicyDocument"]["Statement"]
    assert paths(writing) == {"${OpenSearchAlias}/*", "${OpenSearchAlias}-*", "_alias/${OpenSearchAlias}*", "_aliases"}


def test_a_new_domain_is_encrypted_and_open_to_the_functions_alone(template: Json) -> None:
    domain = evaluated(template, NEW_DOMAIN)["Domain"]
    properties = domain["Properties"]
    assert properties["EncryptionAtRestOptions"] == properties["NodeToNodeEncryptionOptions"] == {"Enabled": True}
    assert properties["DomainEndpointOptions"]["EnforceHTTPS"] is True
    assert "TLS-1-2" in properties["DomainEndpointOptions"]["TLSSecurityPolicy"]
    reading, searching, writing = properties["AccessPolicies"]["Statement"]
    for statement, roles in ((reading, {READER}), (searching, {READER}), (writing, WRITERS)):
        assert statement["Effect"] == "Allow"
        assert {principal["Fn::GetAtt"][0] for principal in statement["Principal"]["AWS"]} == roles
    assert (reading["Action"], searching["Action"]) == ("es:ESHttpGet", "es:ESHttpPost")
    assert all(resource["Fn::Sub"].endswith("/_msearch") for resource in searching["Resource"])
    # Its content is made again from the bucket; kept after the stack it would cost money that nobody looks at.
    assert domain["DeletionPolicy"] == domain["UpdateReplacePolicy"] == "Delete"


@pytest.mark.parametrize("store", ["embedded", "domain", "collection", "node"])
def test_a_domain_is_made_only_when_there_is_no_endpoint(template: Json, store: str) -> None:
    assert "Domain" not in evaluated(template, STORES[store])


def test_on_serverless_each_role_may_do_what_the_data_access_policy_says(template: Json) -> None:
    resources = evaluated(template, COLLECTION)
    assert granted(resources) == {role: {"aoss:APIAccessAll"} for role in {READER, *WRITERS}}
    reading, writing = json.loads(resources["CollectionAccess"]["Properties"]["Policy"]["Fn::Sub"])
    assert reading["Principal"] == ["${LookupFunctionRole.Arn}"]
    assert {p for rule in reading["Rules"] for p in rule["Permission"]} == {"aoss:DescribeIndex", "aoss:ReadDocument"}
    assert set(writing["Principal"]) == {f"${{{role}.Arn}}" for role in WRITERS}
    resources_named = {resource for rule in (*reading["Rules"], *writing["Rules"]) for resource in rule["Resource"]}
    assert all("${OpenSearchCollection}" in resource for resource in resources_named)


def test_bedrock_may_be_asked_for_that_model_only(template: Json) -> None:
    resources = evaluated(template, BEDROCK)
    assert granted(resources) == {role: {"bedrock:InvokeModel"} for role in {READER, *WRITERS}}
    [statement] = resources["BedrockUsers"]["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Resource"]["Fn::Sub"].endswith("::foundation-model/${EmbeddingModel}")


def test_the_api_key_is_named_and_never_stands_in_the_environment(template: Json) -> None:
    resources = evaluated(template, OPENAI)
    assert granted(resources) == {role: {"secretsmanager:GetSecretValue"} for role in {READER, *WRITERS}}
    [statement] = resources["SecretUsers"]["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Resource"] == SECRET
    assert environment(resources, "lookup")["EMBEDDING_API_KEY"] == SECRET
    assert refused(template, {**OPENAI, "EmbeddingSecretArn": "sk-a-key-itself"}) == ["EmbeddingSecretArn"]


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({**DOMAIN, "VectorStore": "embedded"}, "VectorStore=opensearch"),
        ({**DOMAIN, "OpenSearchEndpoint": ""}, "OpenSearchEndpoint"),
        ({**COLLECTION, "OpenSearchEndpoint": ""}, "OpenSearchEndpoint"),
        ({**DOMAIN, "OpenSearchCollection": "knowledge-vectors"}, "either"),
        (
            {**DOMAIN, "OpenSearchDomainArn": "arn:aws:aoss:eu-central-1:123456789012:collection/a"},
            "OpenSearchDomainArn",
        ),
        ({**DOMAIN, "OpenSearchEndpoint": "http://search.example.org"}, "OpenSearchEndpoint"),
        ({**NODE, "OpenSearchAlias": "Knowledge"}, "OpenSearchAlias"),
        ({**OPENAI, "EmbeddingUrl": "http://embedding.example.org/v1"}, "EmbeddingUrl"),
        ({"EmbeddingModel": "e5"}, "Embedder=bedrock or openai"),
        ({"Embedder": "bedrock"}, "EmbeddingModel"),
        ({**BEDROCK, "EmbeddingUrl": "https://api.openai.com/v1"}, "Embedder=openai"),
        ({"EmbeddingSecretArn": SECRET}, "Embedder=openai"),
        *(({**OPENAI, name: ""}, name) for name in ("EmbeddingModel", "EmbeddingUrl", "EmbeddingDimension")),
    ],
)
def test_parameters_that_contradict_each_other_are_refused_by_name(
    template: Json, parameters: dict[str, str], named: str
) -> None:
    assert any(named in message for message in refused(template, parameters))
