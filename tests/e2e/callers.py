"""The API of the deployed stack, called with tokens of the roles, made as the command makes them."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from json import dumps

import httpx

from knowledge.domain.access import Principal
from knowledge.errors import NotFound
from knowledge.services.tokens import Tokens
from tests.api import Answer


class TokenApi:
    """Whoever calls for the first time gets a token of that name and role."""

    def __init__(self, url: str, tokens: Tokens) -> None:
        self._client = httpx.Client(base_url=url, timeout=60.0)
        self._tokens = tokens
        self._secrets: dict[Principal, str] = {}

    @property
    def names(self) -> set[str]:
        """Of all who have called."""
        return {principal.name for principal in self._secrets}

    def call(
        self,
        caller: Principal | None,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """See tests.api.Api."""
        headers = {"Authorization": f"Bearer {self._secret(caller)}"} if caller else {}
        if body is not None:
            headers["Content-Type"] = content_type
        answer = self._client.request(
            method, path, content=None if body is None else dumps(body), params=query, headers=headers
        )
        return Answer(answer.status_code, answer.text)

    def close(self) -> None:
        """Every token ends."""
        for principal in self._secrets:
            self._tokens.revoke(principal.name)
        self._client.close()

    def _secret(self, caller: Principal) -> str:
        if caller not in self._secrets:
            with suppress(NotFound):  # left by a run that was killed
                self._tokens.revoke(caller.name)
            self._secrets[caller] = self._tokens.create(caller.name, caller.role, timedelta(hours=1)).secret
        return self._secrets[caller]
