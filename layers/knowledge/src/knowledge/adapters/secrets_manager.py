"""A secret in AWS Secrets Manager. Needs the permission `secretsmanager:GetSecretValue` on it."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Protocol

from knowledge.adapters.aws_errors import aws_errors
from knowledge.domain.age import is_fresh
from knowledge.errors import DependencyUnavailable

_logger = logging.getLogger(__name__)

_DEPENDENCY = "AWS Secrets Manager"
# After a rotation the old value is used for at most this long. Source: own choice; a call costs 0.000005 USD.
_READ_AGAIN_AFTER_S = 300.0


class SecretsManager(Protocol):
    """What is needed of boto3's client `secretsmanager`."""

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, Any]:
        """The current version; `SecretString` holds its text, if it is one."""


class Secret:
    """The text of one secret, read when it is first needed. Safe to use from several threads."""

    def __init__(self, client: SecretsManager, arn: str, *, clock: Callable[[], float] = time.time) -> None:
        """Makes no call; `clock` gives seconds since the epoch."""
        self._client = client
        self._arn = arn
        self._clock = clock
        self._lock = Lock()
        self._value: str | None = None
        self._read_at = -math.inf

    def __call__(self) -> str:
        """The text; a call every five minutes at most. When it fails, the text read before stays.

        Raises:
            DependencyUnavailable: it cannot be read and never was, or is no text.
        """
        with self._lock:
            if self._value is None or not is_fresh(self._read_at, self._clock(), _READ_AGAIN_AFTER_S):
                try:
                    self._value = self._read()
                except DependencyUnavailable as error:
                    if self._value is None:
                        raise
                    _logger.warning("secret_not_read", extra={"reason": str(error)})
                self._read_at = self._clock()
            return self._value

    def _read(self) -> str:
        with aws_errors(_DEPENDENCY):
            text = self._client.get_secret_value(SecretId=self._arn).get("SecretString")
        if not isinstance(text, str):
            raise DependencyUnavailable(_DEPENDENCY, "holds no text in that secret")
        return text
