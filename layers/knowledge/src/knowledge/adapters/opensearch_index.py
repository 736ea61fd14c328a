"""What an index of chunks looks like in OpenSearch: its settings, its fields, and a chunk as a document of it.

The index's definition is sent when it is made, and by nobody else: a template kept in the cluster would belong to every
index whose name happens to match, and a process with an older embedder could replace it.
"""

import base64
import sys
from array import array
from dataclasses import dataclass
from typing import Any

from knowledge.adapters.index_names import index_name
from knowledge.domain.document import DocId, Generation
from knowledge.ports import EmbeddedChunk, Vector
from knowledge.retrieval.bm25 import K1, B
from knowledge.retrieval.terms import terms

Document = dict[str, Any]

# Raised by one whenever the settings or fields below change, so that a new version makes an index of its own.
_LAYOUT = 2

# Links of a node, and candidates looked at while it is linked. Source: OpenSearch documentation, "Methods and engines",
# the defaults of HNSW; explicit, so that an index stays what it is when they change.
_M = 16
_EF_CONSTRUCTION = 100


@dataclass(frozen=True, slots=True)
class Engine:
    """How nearest neighbours are found, and how their scores are to be read."""

    name: str
    space_type: str

    def cosine(self, score: float) -> float:
        """The cosine behind the score of a k-NN query over unit vectors, -1 to 1.

        Source: OpenSearch documentation, "Spaces": `cosinesimil` scores (2 - d) / 2 with d = 1 - cosine;
        `innerproduct` scores product + 1 when the product is positive, and 1 / (1 - product) otherwise.
        """
        if self.space_type == "cosinesimil":
            cosine = 2.0 * score - 1.0
        else:
            cosine = score - 1.0 if score >= 1.0 else 1.0 - 1.0 / score
        return min(1.0, max(-1.0, cosine))


# A managed domain or a node of one's own: filters are applied while the graph is searched.
LUCENE = Engine("lucene", "cosinesimil")
# Serverless offers no other. Its inner product of unit vectors is their cosine, in every version of it.
FAISS = Engine("faiss", "innerproduct")


def alias_of(base: str, embedder: str | None, dimension: int) -> str:
    """The alias of the index that holds this embedder's vectors, among those that begin with `base`.

    Without an embedder `base` is the alias of the only index there is.
    """
    return base if embedder is None else f"{base}-{index_name(embedder, dimension, _LAYOUT)}"


def definition(engine: Engine, dimension: int) -> Document:
    """Settings and mappings of a new index for vectors of that length."""
    serverless = engine is FAISS
    index: Document = {
        "knn": True,
        # The values that `retrieval.bm25` computes with; the candidates by words are chosen by them.
        "similarity": {"chunks": {"type": "BM25", "k1": K1, "b": B}},
    }
    if not serverless:
        # One shard: counts of terms are exact in it, and it takes some 50 GB (Source: OpenSearch Service guide, "Sizing
        # domains"), millions of chunks. No refresh by itself: every write asks for its own, so that a generation
        # becomes visible as a whole.
        index |= {"number_of_shards": 1, "refresh_interval": "-1"}
    mappings: Document = {"dynamic": "strict", "properties": _fields(engine, dimension)}
    if not serverless:
        # The vector is kept once more, a third as long, in `embedding`; nobody reads it from the source.
        mappings["_source"] = {"excludes": ["vector"]}
    return {"settings": {"index": index}, "mappings": mappings}


def _fields(engine: Engine, dimension: int) -> Document:
    method = {
        "name": "hnsw",
        "engine": engine.name,
        "space_type": engine.space_type,
        "parameters": {"m": _M, "ef_construction": _EF_CONSTRUCTION},
    }
    return {
        "doc_id": {"type": "keyword"},
        "generation": {"type": "keyword"},
        "file_path": {"type": "keyword"},
        "ordinal": {"type": "integer"},
        "chunk_count": {"type": "integer"},
        "text": {"type": "text", "index": False},
        "content_hash": {"type": "keyword"},
        # The application's own terms, one blank between two: analysed by no language, they are those of the query
        # and of every other store, for Chinese pairs and identifiers alike.
        "terms": {"type": "text", "analyzer": "whitespace", "similarity": "chunks"},
        "length": {"type": "integer"},
        "vector": {"type": "knn_vector", "dimension": dimension, "method": method},
        "embedding": {"type": "binary"},
    }


def document(
    doc_id: DocId, generation: Generation, file_path: str, item: EmbeddedChunk, *, chunk_count: int
) -> Document:
    """The document for one of the `chunk_count` chunks of a generation."""
    found = terms(item.chunk.text)
    whole: Document = {
        "doc_id": doc_id,
        "generation": generation,
        "file_path": file_path,
        "ordinal": item.chunk.ordinal,
        "chunk_count": chunk_count,
        "text": item.chunk.text,
        "content_hash": item.chunk.content_hash,
        "terms": " ".join(found),
        "length": len(found),
        "embedding": pack(item.vector),
    }
    if any(item.vector):
        # A vector of zeros has no direction, and the engine refuses it: that chunk is found by its words alone.
        # Eight decimals of a number below 1 are more than its 32 bits hold.
        whole["vector"] = [round(value, 8) for value in item.vector]
    return whole


def pack(vector: Vector) -> str:
    """32-bit numbers, little-endian, in base64: a third of their length in JSON and much faster to read."""
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()


def unpack(packed: str) -> tuple[float, ...]:
    """What `pack` was given, rounded to 32 bits. Raises ValueError for anything else."""
    numbers = array("f", base64.b64decode(packed))
    if sys.byteorder == "big":
        numbers.byteswap()
    return tuple(numbers)


def generation_query(doc_id: DocId, generation: Generation, *more: Document) -> Document:
    """Matches the chunks of that generation, and among them those for which all of `more` hold."""
    return {"bool": {"filter": [{"term": {"doc_id": doc_id}}, {"term": {"generation": generation}}, *more]}}
