from datetime import timedelta

import pytest

from knowledge.adapters.memory_tokens import MemoryTokenStore
from knowledge.domain.access import Principal, Role
from knowledge.errors import Conflict, InvalidInput, KnowledgeError, NotAuthenticated, NotFound, NotPermitted
from knowledge.services.authentication import Authentication, token_hash
from knowledge.services.tokens import LIFETIMES, Tokens
from tests.contract.builders import Clock

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


class World:
    """Tokens and who is known by them, at a time that a test moves."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryTokenStore(now=self.clock.now)
        self.tokens = Tokens(self.store, now=self.clock.now)
        self.authentication = Authentication(self.store)

    def knows(self, secret: str) -> bool:
        try:
            self.authentication.authenticate(secret)
        except NotAuthenticated:
            return False
        return True


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("role", list(Role))
def test_who_has_the_token_is_known_by_name_and_role_until_it_expires(world: World, role: Role) -> None:
    new = world.tokens.create("王 芳", role, LIFETIMES[role])
    assert world.authentication.authenticate(new.secret) == Principal("王 芳", role)
    world.clock.at += LIFETIMES[role] - timedelta(seconds=1)
    assert world.knows(new.secret)
    world.clock.at += timedelta(seconds=1)
    assert not world.knows(new.secret)
    [listed] = world.tokens.list()
    assert world.tokens.state(listed) == "expired"


def test_nothing_that_is_kept_tells_the_token(world: World) -> None:
    new = world.tokens.create("alice", Role.ADMIN, None)
    assert len(new.secret) >= 43, "256 bits in base64"
    assert new.secret not in repr(world.tokens.list())
    assert new.token.token_hash == token_hash(new.secret)


@pytest.mark.parametrize("name", ["alice", "Alice", "ＡＬＩＣＥ", "alice\u200b"])
def test_a_name_has_one_token_so_that_a_timeline_names_one_person(world: World, name: str) -> None:
    world.tokens.create("alice", Role.REVIEWER, DAY)
    with pytest.raises(KnowledgeError, match=r"rotate it, or revoke it first|a name is"):
        world.tokens.create(name, Role.READER, DAY)


def test_a_name_whose_token_has_expired_or_was_revoked_may_have_another_one(world: World) -> None:
    first = world.tokens.create("alice", Role.REVIEWER, DAY)
    world.clock.at += DAY
    second = world.tokens.create("Alice", Role.READER, None)
    assert (world.knows(first.secret), world.knows(second.secret)) == (False, True)
    world.tokens.revoke("alice")
    third = world.tokens.create("alice", Role.WRITER, None)
    assert (world.knows(second.secret), world.knows(third.secret)) == (False, True)
    assert [token.role for token in world.tokens.list()] == [Role.WRITER]


@pytest.mark.parametrize("name", ["", " ", " alice", "alice ", "a\nb", "a\x00b", "\u200b", "a/b", "<b>", "x" * 65])
def test_a_name_that_could_mislead_is_refused(world: World, name: str) -> None:
    with pytest.raises(InvalidInput, match="a name is") as caught:
        world.tokens.create(name, Role.READER, DAY)
    assert caught.value.field == "name"


@pytest.mark.parametrize("name", ["x", "x" * 64, "ci-agent", "alice@example.com", "张伟", "agent 7.2_b"])
def test_names_as_people_and_agents_have_them_are_taken(world: World, name: str) -> None:
    assert world.knows(world.tokens.create(name, Role.READER, DAY).secret)


@pytest.mark.parametrize("name", ["system", "System"])
def test_nobody_is_called_as_timelines_call_what_nobody_did(world: World, name: str) -> None:
    with pytest.raises(InvalidInput, match="another name"):
        world.tokens.create(name, Role.READER, DAY)


@pytest.mark.parametrize("lifetime", [timedelta(0), -DAY, 3654 * DAY])
def test_a_lifetime_out_of_bounds_is_refused(world: World, lifetime: timedelta) -> None:
    with pytest.raises(InvalidInput, match="ten years"):
        world.tokens.create("alice", Role.READER, lifetime)


def test_after_a_rotation_both_tokens_are_good_until_the_grace_is_over(world: World) -> None:
    old = world.tokens.create("ci-agent", Role.WRITER, 90 * DAY)
    world.clock.at += 30 * DAY
    new = world.tokens.rotate("CI-Agent", grace=24 * HOUR)
    assert world.authentication.authenticate(new.secret) == world.authentication.authenticate(old.secret)
    assert new.token.expires_at == world.clock.at + 90 * DAY, "as long as the one before was made for"
    [listed] = world.tokens.list()
    assert world.tokens.state(listed) == "active; the one before until 2027-01-01 08:30 UTC"
    world.clock.at += 24 * HOUR
    assert (world.knows(old.secret), world.knows(new.secret)) == (False, True)
    assert world.tokens.state(listed) == "active"


def test_without_grace_the_old_token_ends_at_once(world: World) -> None:
    old = world.tokens.create("ci-agent", Role.READER, None)
    new = world.tokens.rotate("ci-agent", grace=timedelta(0))
    assert (world.knows(old.secret), world.knows(new.secret)) == (False, True)
    assert (new.token.expires_at, new.token.replaced) == (None, None)


def test_a_rotation_makes_no_token_good_for_longer_than_it_was(world: World) -> None:
    old = world.tokens.create("ci-agent", Role.READER, 2 * HOUR)
    world.clock.at += HOUR
    new = world.tokens.rotate("ci-agent", grace=24 * HOUR)
    assert new.token.replaced is not None
    assert new.token.replaced.until == world.clock.at + HOUR
    world.clock.at += HOUR
    assert (world.knows(old.secret), world.knows(new.secret)) == (False, True)


def test_a_second_rotation_ends_what_the_first_had_left(world: World) -> None:
    first = world.tokens.create("ci-agent", Role.READER, None)
    second, third = (world.tokens.rotate("ci-agent", grace=DAY) for _ in range(2))
    assert [world.knows(new.secret) for new in (first, second, third)] == [False, True, True]


@pytest.mark.parametrize("grace", [-HOUR, 31 * DAY])
def test_a_grace_out_of_bounds_is_refused_and_changes_nothing(world: World, grace: timedelta) -> None:
    old = world.tokens.create("ci-agent", Role.READER, None)
    with pytest.raises(InvalidInput, match="30 days"):
        world.tokens.rotate("ci-agent", grace=grace)
    assert [token.token_hash for token in world.tokens.list()] == [token_hash(old.secret)]


def test_a_revoked_name_is_known_by_no_token(world: World) -> None:
    old = world.tokens.create("ci-agent", Role.READER, None)
    new = world.tokens.rotate("ci-agent", grace=DAY)
    assert world.tokens.revoke("CI-AGENT").name == "ci-agent"
    assert (world.knows(old.secret), world.knows(new.secret)) == (False, False)
    assert world.tokens.list() == []


def test_a_name_without_a_token_can_neither_be_rotated_nor_revoked(world: World) -> None:
    with pytest.raises(NotFound, match="'nobody' has no token"):
        world.tokens.rotate("nobody", grace=DAY)
    with pytest.raises(NotFound, match="'nobody' has no token"):
        world.tokens.revoke("nobody")
    world.tokens.create("late", Role.READER, DAY)
    world.clock.at += DAY
    with pytest.raises(NotFound, match="expired"):
        world.tokens.rotate("late", grace=DAY)


def test_whoever_is_overtaken_is_told_and_ends_nobodys_token(world: World) -> None:
    world.tokens.create("ci-agent", Role.READER, None)
    read, rotated = world.store.read, []

    def read_and_be_overtaken(key: str) -> object:
        found = read(key)
        world.store.read = read  # type: ignore[method-assign]
        rotated.append(world.tokens.rotate("ci-agent", grace=DAY))
        return found

    world.store.read = read_and_be_overtaken  # type: ignore[method-assign, assignment]
    with pytest.raises(Conflict):
        world.tokens.revoke("ci-agent")
    assert world.knows(rotated[0].secret)


@pytest.mark.parametrize("role", [Role.READER, Role.WRITER])
def test_a_role_for_agents_can_never_decide(world: World, role: Role) -> None:
    agent = world.authentication.authenticate(world.tokens.create("agent", role, DAY).secret)
    with pytest.raises(NotPermitted, match="the role reviewer is needed to decide; 'agent' has the role"):
        agent.require(Role.REVIEWER, "decide")
