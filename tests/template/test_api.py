"""The way in: routes, who may use them, and what the gateway says by itself."""

import json
from typing import Any

import pytest

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
}
OPEN_ROUTES = {("get", "/health")}


def test_the_api_has_exactly_its_routes(api: Json) -> None:
    assert {(method, path) for path, methods in api["paths"].items() for method in methods} == ROUTES


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
    assert response["responseParameters"] == {"gatewayresponse.header.WWW-Authenticate": "'Bearer'"}


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
