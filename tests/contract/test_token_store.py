"""What every store of tokens does, and who is known by what it holds."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from knowledge.domain.access import Principal, ReplacedToken, Role, Token
from knowledge.errors import Conflict
from tests.contract.builders import Clock, TokensAndCallers

DAY = timedelta(days=1)


def sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def token(text: str = "secret", **fields: Any) -> Token:
    return replace(Token("ci-agent", Role.READER, sha256(text), Clock().at, Clock().at + DAY), **fields)


class TestTokenStore:
    @pytest.mark.parametrize("role", list(Role))
    def test_who_has_a_token_is_known_by_its_hash_with_name_and_role(
        self, tokens: TokensAndCallers, role: Role
    ) -> None:
        tokens.store.put(token(name="王芳", role=role), instead_of=None)
        assert tokens.callers.find(sha256("secret")) == Principal("王芳", role)

    @pytest.mark.parametrize("token_hash", ["", "secret", sha256("other")])
    def test_nobody_is_known_by_anything_else(self, tokens: TokensAndCallers, token_hash: str) -> None:
        tokens.store.put(token(), instead_of=None)
        assert tokens.callers.find(token_hash) is None

    @pytest.mark.parametrize("expires_at", [None, Clock().at + DAY])
    @pytest.mark.parametrize("replaced", [None, ReplacedToken(sha256("before"), Clock().at + DAY)])
    def test_a_token_is_read_as_it_was_put(self, tokens: TokensAndCallers, expires_at: Any, replaced: Any) -> None:
        stored = token(expires_at=expires_at, replaced=replaced)
        tokens.store.put(stored, instead_of=None)
        assert tokens.store.read("ci-agent") == stored
        assert tokens.store.read("somebody") is None

    def test_names_that_look_alike_are_one(self, tokens: TokensAndCallers) -> None:
        tokens.store.put(token(name="Alice"), instead_of=None)
        assert tokens.store.read("alice") == token(name="Alice")
        with pytest.raises(Conflict):
            tokens.store.put(token("other", name="ＡＬＩＣＥ"), instead_of=None)

    def test_all_are_listed_by_name(self, tokens: TokensAndCallers) -> None:
        assert list(tokens.store.all()) == []
        for name in ("b", "王芳", "a"):
            tokens.store.put(token(name, name=name), instead_of=None)
        assert [one.name for one in tokens.store.all()] == ["a", "b", "王芳"]

    def test_what_takes_the_place_of_a_token_ends_it_in_the_same_step(self, tokens: TokensAndCallers) -> None:
        old, new = token("old"), token("new", role=Role.WRITER)
        tokens.store.put(old, instead_of=None)
        tokens.store.put(new, instead_of=old)
        assert tokens.callers.find(sha256("old")) is None
        assert tokens.callers.find(sha256("new")) == Principal("ci-agent", Role.WRITER)
        assert list(tokens.store.all()) == [new]

    def test_a_replaced_token_is_good_until_its_time_is_over(self, tokens: TokensAndCallers) -> None:
        old = token("old")
        new = token("new", replaced=ReplacedToken(sha256("old"), tokens.clock.at + DAY / 2))
        tokens.store.put(old, instead_of=None)
        tokens.store.put(new, instead_of=old)
        assert tokens.callers.find(sha256("old")) == tokens.callers.find(sha256("new")) is not None
        tokens.clock.at += DAY / 2
        assert tokens.callers.find(sha256("old")) is None
        assert tokens.callers.find(sha256("new")) is not None

    def test_a_token_that_was_replaced_before_ends_with_the_next_one(self, tokens: TokensAndCallers) -> None:
        first, until = token("first"), tokens.clock.at + DAY
        second = token("second", replaced=ReplacedToken(sha256("first"), until))
        third = token("third", replaced=ReplacedToken(sha256("second"), until))
        for now, before in ((first, None), (second, first), (third, second)):
            tokens.store.put(now, instead_of=before)
        known = [name for name in ("first", "second", "third") if tokens.callers.find(sha256(name))]
        assert known == ["second", "third"]

    def test_an_expired_token_is_not_known_from_that_second_on(self, tokens: TokensAndCallers) -> None:
        tokens.store.put(token(), instead_of=None)
        tokens.clock.at += DAY - timedelta(seconds=1)
        assert tokens.callers.find(sha256("secret")) is not None
        tokens.clock.at += timedelta(seconds=1)
        assert tokens.callers.find(sha256("secret")) is None

    def test_a_token_without_an_end_is_known_for_ever(self, tokens: TokensAndCallers) -> None:
        tokens.store.put(token(expires_at=None), instead_of=None)
        tokens.clock.at += 10_000 * DAY
        assert tokens.callers.find(sha256("secret")) is not None

    def test_a_removed_token_is_known_no_more_nor_the_one_that_it_replaced(self, tokens: TokensAndCallers) -> None:
        old, until = token("old"), tokens.clock.at + DAY
        new = token("new", replaced=ReplacedToken(sha256("old"), until))
        tokens.store.put(old, instead_of=None)
        tokens.store.put(new, instead_of=old)
        tokens.store.remove(new)
        assert tokens.callers.find(sha256("old")) is tokens.callers.find(sha256("new")) is None
        assert tokens.store.read("ci-agent") is None
        assert list(tokens.store.all()) == []

    def test_whoever_comes_second_changes_nothing(self, tokens: TokensAndCallers) -> None:
        old, new, late = token("old"), token("new"), token("late")
        with pytest.raises(Conflict):
            tokens.store.put(new, instead_of=old)
        with pytest.raises(Conflict):
            tokens.store.remove(old)
        tokens.store.put(old, instead_of=None)
        tokens.store.put(new, instead_of=old)
        for before in (None, old):
            with pytest.raises(Conflict):
                tokens.store.put(late, instead_of=before)
        with pytest.raises(Conflict):
            tokens.store.remove(old)
        assert tokens.callers.find(sha256("late")) is None
        assert tokens.store.read("ci-agent") == new

    def test_of_many_who_take_the_same_name_at_once_one_has_it(self, tokens: TokensAndCallers) -> None:
        def take(secret: str) -> bool:
            try:
                tokens.store.put(token(secret), instead_of=None)
            except Conflict:
                return False
            return True

        secrets = [f"secret {number}" for number in range(16)]
        with ThreadPoolExecutor(8) as threads:
            taken = [secret for secret, is_taken in zip(secrets, threads.map(take, secrets), strict=True) if is_taken]
        assert len(taken) == 1
        assert [secret for secret in secrets if tokens.callers.find(sha256(secret))] == taken
