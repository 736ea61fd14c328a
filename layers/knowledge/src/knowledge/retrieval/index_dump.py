"""A keyword index as bytes and back. Loading makes no object for a document or a keyword."""

import sys
import unicodedata
import zlib
from array import array
from collections.abc import Iterator

from daachorse import CharwiseDoubleArrayAhoCorasick

from knowledge.errors import CorruptState
from knowledge.retrieval.keyword_index import KeywordIndex, automaton_of
from knowledge.retrieval.packed_entries import PackedEntries
from knowledge.retrieval.packed_texts import PackedTexts
from knowledge.retrieval.word_starts import WordStarts

# To be raised whenever what is below, or how keywords are normalised, cut into words and told weak, changes. The
# version of Unicode is part of it, because normalisation follows it.
_FORMAT = f"keyword index 2, Unicode {unicodedata.unidata_version}, {sys.byteorder}\n".encode()
_CHECKSUM_BYTES = 4
_SIZE_BYTES = 4
# A multiple of four.
_PIECE_BYTES = 1024 * 1024
# Source: measured over 100,000 documents: level 1 takes a fifth of the time of level 6 and 8 % more bytes.
_COMPRESSION = 1


def dump(index: KeywordIndex) -> bytes:
    """The index as bytes: format, CRC-32 of what follows, and each part behind its size and its compressed size."""
    entries, keywords = index.entries, index.keywords
    parts = (
        index.automaton.serialize() if index.automaton else b"",
        *(part for texts in (entries.paths, entries.rests, keywords) for part in (texts.block, texts.ends)),
        index.word_starts.places,
        index.word_starts.owners,
        index.word_starts.least,
        index.ends,
        index.documents,
        index.inside_others,
        index.longest.to_bytes(_SIZE_BYTES, "big"),
    )
    body = bytearray()
    for part in parts:
        compressed = zlib.compress(part, _COMPRESSION)
        for size in (memoryview(part).nbytes, len(compressed)):
            body += size.to_bytes(_SIZE_BYTES, "big")
        body += compressed
    return _FORMAT + zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") + body


def load(data: bytes) -> KeywordIndex:
    """The index that `dump` wrote.

    An automaton of another version of its library is built anew from the keywords.

    Raises:
        CorruptState: the bytes are not those that `dump` of this format wrote.
    """
    start = len(_FORMAT) + _CHECKSUM_BYTES
    body = memoryview(data)[start:]
    if not data.startswith(_FORMAT) or zlib.crc32(body).to_bytes(_CHECKSUM_BYTES, "big") != data[len(_FORMAT) : start]:
        raise CorruptState("the snapshot of the catalog cannot be read")
    parts = _parts(body)
    # First, because making it takes its size twice.
    automaton = _automaton(_bytes(next(parts)))
    paths, rests, keywords = (PackedTexts(_bytes(next(parts)), _numbers(next(parts))) for _ in range(3))
    return KeywordIndex(
        entries=PackedEntries(paths, rests),
        keywords=keywords,
        automaton=automaton or automaton_of(keywords),
        word_starts=WordStarts(keywords, *(_numbers(next(parts)) for _ in range(3))),
        ends=_numbers(next(parts)),
        documents=_numbers(next(parts)),
        inside_others=_bytes(next(parts)),
        longest=int.from_bytes(_bytes(next(parts)), "big"),
    )


def _parts(body: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Size and compressed bytes of each part."""
    while body:
        size, end = (int.from_bytes(body[at : at + _SIZE_BYTES], "big") for at in (0, _SIZE_BYTES))
        start = 2 * _SIZE_BYTES
        yield size, body[start : start + end]
        body = body[start + end :]


def _bytes(part: tuple[int, memoryview]) -> bytes:
    size, compressed = part
    # Told the size, zlib writes into one block, and not into several that are then joined.
    return zlib.decompress(compressed, bufsize=max(size, 1))


def _numbers(part: tuple[int, memoryview]) -> "array[int]":
    """A piece at a time, so that they are not in memory twice."""
    numbers, reader = array("I"), zlib.decompressobj()
    piece = reader.decompress(part[1], _PIECE_BYTES)
    while piece:
        numbers.frombytes(piece)
        piece = reader.decompress(reader.unconsumed_tail, _PIECE_BYTES)
    return numbers


def _automaton(serialised: bytes) -> CharwiseDoubleArrayAhoCorasick | None:
    """None when there is none, or this version of the library cannot read it."""
    try:
        return CharwiseDoubleArrayAhoCorasick.deserialize(serialised)
    except ValueError:
        return None
