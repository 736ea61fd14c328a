"""OpenAI's protocol for embeddings over HTTP: one request, its retries, its errors. Knows no limits of a model.

Source of the protocol: OpenAI API reference, "Create embeddings". Neither the key nor the text of an answer leaves this
module in an error or a log: an endpoint may repeat what it was sent, the key included.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence

import urllib3
from pydantic import BaseModel, FiniteFloat, ValidationError
from urllib3.exceptions import HTTPError, InvalidHeader, LocationParseError, NewConnectionError
from urllib3.exceptions import TimeoutError as TimedOut

from knowledge.adapters.backoff import Backoff, TransientFailureError
from knowledge.adapters.batching import may_be_too_long
from knowledge.errors import ConfigError, DependencyUnavailable, InvalidInput
from knowledge.ports import Vector

DEPENDENCY = "embedding endpoint"

# The key, none, or what gives it for each call, such as a secret that is rotated.
ApiKey = str | Callable[[], str] | None

# Source: own choice; a few connections for the threads of one process.
_CONNECTIONS = 8
# Source: own choice; inside a region a connection takes milliseconds.
_CONNECT_TIMEOUT_S = 2.0
# Besides 5xx. Source: RFC 9110, section 15.5.9; RFC 6585, section 4.
_TRANSIENT_STATUSES = frozenset({408, 429})
# How endpoints refuse a text that is too long. Source: OpenAI answers 400, Hugging Face Text Embeddings Inference 413
# and 422.
_REFUSED_INPUT = frozenset({400, 413, 422})
# An error code as the protocol has them, such as `insufficient_quota`; a key has digits or signs.
_ERROR_CODE = re.compile("[a-z_]{1,40}")


class _Item(BaseModel):
    index: int
    embedding: list[FiniteFloat]


class _Answer(BaseModel):
    data: list[_Item]


class _Error(BaseModel):
    code: str | None = None


class _ErrorAnswer(BaseModel):
    error: _Error


class OpenAIEndpoint:
    """One endpoint. Safe to use from several threads."""

    def __init__(self, base_url: str, *, api_key: ApiKey, timeout_s: float, backoff: Backoff) -> None:
        """Makes no call. `base_url` is what comes before `/embeddings`; `timeout_s` how long it may be silent.

        Raises:
            ConfigError: the URL or the key cannot be used.
        """
        self._url = _embeddings_url(base_url)
        self._key = api_key if callable(api_key) else None
        fixed = _authorization(None if callable(api_key) else api_key)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **fixed}
        self._backoff = backoff
        timeout = urllib3.Timeout(connect=_CONNECT_TIMEOUT_S, read=timeout_s)
        self._pool = urllib3.PoolManager(num_pools=1, maxsize=_CONNECTIONS, timeout=timeout, retries=False)

    def embed(self, texts: Sequence[str], *, model: str, dimension: int | None, max_tokens: int) -> Sequence[Vector]:
        """The model's vectors in the order of the texts, as the endpoint gave them; one call and its retries.

        `dimension` is sent along unless it is None.

        Raises:
            DependencyUnavailable: the endpoint failed, refused the call or gave something else than vectors.
            InvalidInput: it refused the texts, and one may have more than `max_tokens`.
        """
        request: dict[str, object] = {"model": model, "input": texts}
        if dimension is not None:
            request["dimensions"] = dimension
        body = json.dumps(request).encode()
        headers = {**self._headers, **self._current_authorization()}
        response = self._backoff.run(lambda: self._post(body, headers))
        if response.status in _REFUSED_INPUT and may_be_too_long(texts, max_tokens):
            raise InvalidInput(f"{model} refused a text, most likely as longer than {max_tokens} tokens")
        if response.status != 200:
            raise DependencyUnavailable(DEPENDENCY, _refusal(response, model))
        try:
            items = sorted(_Answer.model_validate_json(response.data).data, key=lambda item: item.index)
        except ValidationError:
            raise DependencyUnavailable(DEPENDENCY, "gave an answer that cannot be read") from None
        if [item.index for item in items] != list(range(len(texts))):
            message = f"gave {len(items)} vectors that do not belong to the {len(texts)} texts"
            raise DependencyUnavailable(DEPENDENCY, message)
        return [item.embedding for item in items]

    def _current_authorization(self) -> Mapping[str, str]:
        if self._key is None:
            return {}
        try:
            return _authorization(self._key())
        except ConfigError as error:
            raise DependencyUnavailable(DEPENDENCY, str(error)) from None

    def _post(self, body: bytes, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        """The answer of one call, unless trying again may help. Redirects are not followed: the key is for one host."""
        try:
            response = self._pool.request("POST", self._url, body=body, headers=headers, redirect=False)
        except HTTPError as error:
            # A refused connection counts as timed out in the hierarchy of urllib3.
            is_timeout = isinstance(error, TimedOut) and not isinstance(error, NewConnectionError)
            message = "did not answer in time" if is_timeout else "could not be reached"
            raise TransientFailureError(DependencyUnavailable(DEPENDENCY, message)) from error
        if response.status in _TRANSIENT_STATUSES or response.status >= 500:
            outcome = DependencyUnavailable(DEPENDENCY, f"failed ({_status(response)})")
            raise TransientFailureError(outcome, wait_s=_retry_after_s(response.headers))
        return response


def _embeddings_url(base_url: str) -> str:
    try:
        parsed = urllib3.util.parse_url(base_url)
    except LocationParseError:
        parsed = urllib3.util.Url()
    # A password in the URL would show in logs; a query or a fragment would end up before the path.
    if parsed.scheme not in {"http", "https"} or not parsed.host or parsed.auth or parsed.query or parsed.fragment:
        raise ConfigError("the embedding endpoint must be a URL like https://host/v1, without user, query or fragment")
    return base_url.rstrip("/") + "/embeddings"


def _authorization(api_key: str | None) -> Mapping[str, str]:
    """Refuses here what the HTTP client would refuse with the key in its message."""
    key = (api_key or "").strip()
    if not key:
        return {}
    if not (key.isascii() and key.isprintable()):
        raise ConfigError("the API key of the embedding endpoint holds characters that no header can carry")
    return {"Authorization": f"Bearer {key}"}


def _refusal(response: urllib3.BaseHTTPResponse, model: str) -> str:
    match response.status:
        case 401 | 403:
            return f"refused the API key ({_status(response)})"
        case 404:
            return f"knows no model {model!r} or is not at this URL ({_status(response)})"
        case _:
            return f"refused the call ({_status(response)})"


def _status(response: urllib3.BaseHTTPResponse) -> str:
    """The status, and the endpoint's code for the error where it gave one."""
    try:
        code = _ErrorAnswer.model_validate_json(response.data).error.code or ""
    except ValidationError:
        code = ""
    return f"{response.status} {code}" if _ERROR_CODE.fullmatch(code) else str(response.status)


def _retry_after_s(headers: Mapping[str, str]) -> float:
    """Seconds the endpoint asks to wait; 0 when it does not say so, or not in a way that can be understood."""
    value = headers.get("Retry-After")
    try:
        return urllib3.Retry().parse_retry_after(value) if value else 0.0
    except InvalidHeader:
        return 0.0
