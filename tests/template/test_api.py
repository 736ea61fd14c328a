"""The way in: routes, who may use them, and what the gateway says by itself."""

import json
from typing import Any

import pytest

from knowledge.config import HttpSettings
from tests.template.evaluation import refused

Json = dict[str, Any]

ROUTES = {
    ("get", "/health"),
    ("post", "/lookup"),
    ("get", "/lookup"),
    ("get", "/documents"),
    ("post", "/documents"),
    ("put", "/documents/{category}/{file_name}"),
    ("get", "/documents/{category}"),
    ("delete", "/documents/{category}"),
    ("get", "/documents/{category}/content"),
    ("get", "/items"),
    ("post", "/items"),
    ("get", "/items/{item_id}"),
    ("patch", "/items/{item_id}"),
    ("post", "/items/{item_id}/status"),
    ("post", "/items/{item_id}/reuse"),
    ("post", "/items/{item_id}/archive"),
    ("post", "/items/{item_id}/restore"),
    ("post", "/items/{item_id}/embedding/retry"),
    ("get", "/items/{item_id}/timeline"),
    ("get", "/items/inbox"),
    ("post", "/items/inbox/decisions"),
    ("get", "/items/search"),
    ("get", "/settings"),
    ("put", "/settings"),
    ("post", "/context"),
}
OPEN_ROUTES = {("get", "/health")}
OF_THE_PARAMETER = {"Fn::Sub": "'${AllowedOrigin}'"}


def test_the_api_has_exactly_its_routes(api: Json) -> None:
    found = {(method, path) for path, methods in api["paths"].items() for method in methods if method != "options"}
    assert found == ROUTES


def test_no_place_in_a_path_has_two_names_which_the_gateway_would_refuse(api: Json) -> None:
    names: dict[str, set[str]] = {}
    for path in api["paths"]:
        parts = path.split("/")
        for depth, part in enumerate(parts):
            if part.startswith("{"):
                names.setdefault("/".join(parts[:depth]), set()).add(part)
    assert {place: found for place, found in names.items() if len(found) > 1} == {}


@pytest.mark.parametrize(("method", "path"), sorted(ROUTES - OPEN_ROUTES))
def test_a_route_needs_a_token(api: Json, method: str, path: str) -> None:
    assert api["paths"][path][method]["security"] == [{"BearerToken": []}]


@pytest.mark.parametrize(("method", "path"), sorted(OPEN_ROUTES))
def test_health_needs_none(api: Json, method: str, path: str) -> None:
    assert api["paths"][path][method]["security"] == [{"NONE": []}]


def test_tokens_come_in_the_authorization_header_and_are_known_to_the_authorizer(api: Json) -> None:
    scheme = api["components"]["securitySchemes"]["BearerToken"]
    assert (scheme["in"], scheme["name"]) == ("header", "Authorization")
    assert scheme["x-amazon-apigateway-authorizer"]["type"] == "token"
    assert "AuthorizerFunction" in str(scheme["x-amazon-apigateway-authorizer"]["authorizerUri"])


def test_a_revoked_token_is_forgotten_within_a_minute(api: Json) -> None:
    authorizer = api["components"]["securitySchemes"]["BearerToken"]["x-amazon-apigateway-authorizer"]
    assert 0 < authorizer["authorizerResultTtlInSeconds"] <= 60


def test_an_unauthorized_caller_is_told_how_to_authenticate(api: Json) -> None:
    response = api["x-amazon-apigateway-gateway-responses"]["UNAUTHORIZED"]
    assert response["responseParameters"]["gatewayresponse.header.WWW-Authenticate"] == "'Bearer'"
    assert (
        response["responseParameters"]["gatewayresponse.header.Access-Control-Expose-Headers"] == "'WWW-Authenticate'"
    )


@pytest.mark.parametrize("kind", ["UNAUTHORIZED", "ACCESS_DENIED"])
def test_whoever_the_gateway_refuses_is_told_which_role_is_needed(api: Json, kind: str) -> None:
    template = api["x-amazon-apigateway-gateway-responses"][kind]["responseTemplates"]["application/json"]
    assert "at least the role reader is needed" in json.loads(template)["error"]["message"]


@pytest.mark.parametrize("path", sorted({path for _, path in ROUTES}))
def test_a_browser_may_ask_for_every_path_without_a_token_F03(api: Json, path: str) -> None:
    methods = api["paths"][path]
    preflight = methods["options"]
    assert preflight.get("security", [{"NONE": []}]) == [{"NONE": []}]
    answer = preflight["x-amazon-apigateway-integration"]["responses"]["default"]
    headers = {
        name.removeprefix("method.response.header."): value for name, value in answer["responseParameters"].items()
    }
    assert headers["Access-Control-Allow-Origin"] == OF_THE_PARAMETER
    assert set(headers["Access-Control-Allow-Methods"].strip("'").split(",")) == {name.upper() for name in methods}
    assert headers["Access-Control-Allow-Headers"] == "'Authorization,Content-Type'"


def test_what_the_gateway_says_by_itself_can_be_read_in_a_browser_F03(api: Json) -> None:
    responses = api["x-amazon-apigateway-gateway-responses"]
    assert {"DEFAULT_4XX", "DEFAULT_5XX"} < set(responses), "those that no other one is meant for"
    for kind, response in responses.items():
        header = response["responseParameters"]["gatewayresponse.header.Access-Control-Allow-Origin"]
        assert header == OF_THE_PARAMETER, kind


def test_a_signed_url_that_a_browser_is_sent_on_to_can_be_read_there_F03(resources: Json) -> None:
    [rule] = resources["Bucket"]["Properties"]["CorsConfiguration"]["CorsRules"]
    assert (rule["AllowedMethods"], rule["AllowedOrigins"]) == (["GET"], ["*"])


@pytest.mark.parametrize("origin", ["*", "https://console.example.com", "http://localhost:8080"])
def test_an_origin_can_be_allowed(template: Json, origin: str) -> None:
    assert refused(template, {"AllowedOrigin": origin}) == []
    assert HttpSettings(allowed_origin=origin).allowed_origin == origin


@pytest.mark.parametrize(
    "origin", ["", "console.example.com", "https://*.example.com", "https://a.example/", "https://a'"]
)
def test_what_is_no_origin_is_refused_before_anything_is_changed(template: Json, origin: str) -> None:
    assert refused(template, {"AllowedOrigin": origin}) == ["AllowedOrigin"]


@pytest.mark.parametrize("kind", ["DEFAULT_4XX", "DEFAULT_5XX", "UNAUTHORIZED", "ACCESS_DENIED", "THROTTLED"])
def test_errors_of_the_gateway_have_the_shape_of_all_errors(api: Json, kind: str) -> None:
    text = api["x-amazon-apigateway-gateway-responses"][kind]["responseTemplates"]["application/json"]
    error = json.loads(text.replace("$context.error.messageString", '"a message"'))["error"]
    assert set(error) == {"code", "message"}


def test_a_path_that_does_not_exist_is_a_404(api: Json) -> None:
    response = api["x-amazon-apigateway-gateway-responses"]["MISSING_AUTHENTICATION_TOKEN"]
    assert str(response["statusCode"]) == "404"


def test_files_reach_the_function_byte_for_byte(api: Json) -> None:
    kinds = {"multipart/form-data", "text/markdown", "application/octet-stream"}
    assert set(api["x-amazon-apigateway-binary-media-types"]) == kinds


def test_requests_are_throttled(resources: Json) -> None:
    [settings] = resources["ApiStage"]["Properties"]["MethodSettings"]
    assert (settings["ResourcePath"], settings["HttpMethod"]) == ("/*", "*")
    assert 0 < settings["ThrottlingRateLimit"] <= settings["ThrottlingBurstLimit"]


def test_the_outputs_are_those_that_scripts_read(template: Json) -> None:
    assert set(template["Outputs"]) == {"ApiUrl", "BucketName", "TableName"}
