"""The lookup: the exact tier first, the semantic tier only when the exact one is not certain."""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field, replace
from itertools import islice

from knowledge.domain.access import Principal, Role
from knowledge.domain.lookup import (
    Confidence,
    LookupAnswer,
    Primary,
    Supplement,
    Tier,
    TierFailure,
    check_query,
    excerpt,
)
from knowledge.errors import CorruptState, DependencyUnavailable, KnowledgeError
from knowledge.retrieval.matches import Matches
from knowledge.retrieval.relevance import confidence_in_an_answer
from knowledge.services.catalog import KnowledgeIndex
from knowledge.services.semantic import Ranking, SemanticSearch

_logger = logging.getLogger(__name__)

# Source: design section 7.
_TOP_K = 3
# How many exact matches `explain` lists; a common word may hit thousands, and an answer holds at most 6 MB.
_MAX_EXPLAINED = 100
# How far they are counted without `explain`, so that a part of thousands of keywords costs no more. Source: own choice.
_MAX_COUNTED = 100


@dataclass(slots=True)
class _Trace:
    """What happened during one lookup, for `explain` and the log."""

    failures: list[TierFailure] = field(default_factory=list)
    matches: Matches | None = None
    gone: set[str] = field(default_factory=set)
    """Paths among `matches` whose file was no longer there."""
    ranking: Ranking | None = None
    timings_ms: dict[str, float] = field(default_factory=dict)

    @property
    def exact_hit_count(self) -> int:
        """How many documents that are there the exact tier found, counted no further than 100."""
        return self.matches.count(_MAX_COUNTED + len(self.gone)) - len(self.gone) if self.matches is not None else 0

    @property
    def semantic_hit_count(self) -> int:
        """How many documents of the semantic tier answer."""
        return len(self.ranking.hits) if self.ranking and self.ranking.is_answer else 0


class Lookup:
    """Answers queries; makes no difference between HTTP, MCP and tests."""

    def __init__(
        self,
        index: KnowledgeIndex,
        semantic: SemanticSearch,
        *,
        load_wait_s: float,
        semantic_timeout_s: float,
        executor: Executor | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`executor` runs the semantic tier, so that a slow one can be left behind after `semantic_timeout_s`."""
        self._index = index
        self._semantic = semantic
        self._load_wait_s = load_wait_s
        self._semantic_timeout_s = semantic_timeout_s
        self._executor = executor or ThreadPoolExecutor(max_workers=4, thread_name_prefix="semantic")
        self._clock = clock

    def lookup_knowledge(
        self,
        principal: Principal,
        query: str,
        section_title: str | None = None,
        *,
        include_sections: bool = False,
        explain: bool = False,
    ) -> LookupAnswer:
        """The answer of design section 7. A unique, certain exact hit makes no embedding and no vector call.

        `section_title` makes the primary's content that section, when the document has it; `include_sections` lists the
        headings; `explain` adds what matched, scores and timings in milliseconds.

        Raises:
            InvalidQuery: blank, or longer than 4,000 characters.
        """
        principal.require(Role.READER, "look up knowledge")
        check_query(query)
        trace = _Trace()
        primary = self._exact(query, trace)
        supplement = None
        if primary is None or primary.confidence is not Confidence.HIGH:
            _logger.debug("semantic_tier_called", extra={"match_count": trace.exact_hit_count})
            supplement = self._supplement(query, trace)
        answer = LookupAnswer(primary, supplement, tuple(trace.failures))
        if primary and (section_title is not None or include_sections):
            answer = self._with_sections(answer, primary, section_title, include_sections)
        _logger.info(
            "lookup_answered",
            extra={
                "found": answer.found,
                "exact_hits": trace.exact_hit_count,
                "semantic_hits": trace.semantic_hit_count,
                "degraded": [tier.value for tier in answer.degraded],
                "elapsed_ms": round(sum(trace.timings_ms.values()), 3),
            },
        )
        return replace(answer, explanation=_explanation(trace)) if explain else answer

    def _exact(self, query: str, trace: _Trace) -> Primary | None:
        started = self._clock()
        try:
            if not self._index.wait_until_loaded(self._load_wait_s):
                trace.failures.append(TierFailure(Tier.EXACT, "not_loaded", "the catalog is not loaded yet"))
                return None
            try:
                self._index.refresh()
            except (DependencyUnavailable, CorruptState) as error:
                _logger.warning("catalog_not_refreshed", extra={"reason": str(error)})
                trace.failures.append(_failure(Tier.EXACT, error))
            return self._primary(self._index.match(query), trace)
        finally:
            trace.timings_ms[Tier.EXACT] = _ms(self._clock() - started)

    def _primary(self, matches: Matches, trace: _Trace) -> Primary | None:
        """The most specific match whose file can be read; one whose file is gone is no match."""
        trace.matches = matches
        if _logger.isEnabledFor(logging.DEBUG):
            _logger.debug("exact_tier_matched", extra={"paths": [match.entry.file_path for match in matches[:10]]})
        for match in matches.most_specific_first():
            path = match.entry.file_path
            try:
                content = self._index.read_document(path)
            except DependencyUnavailable as error:
                _logger.error("document_not_read", extra={"path": path, "reason": str(error)})
                trace.failures.append(_failure(Tier.EXACT, error))
                return None
            if content is not None:
                certain = trace.exact_hit_count == 1 and not match.weak
                return Primary(content, path, Confidence.HIGH if certain else Confidence.LOW)
            trace.gone.add(path)
        return None

    def _supplement(self, query: str, trace: _Trace) -> Supplement | None:
        started = self._clock()
        future = self._executor.submit(self._semantic.rank, query, top_k=_TOP_K)
        try:
            trace.ranking = ranking = future.result(timeout=self._semantic_timeout_s)
        except Exception as error:  # where another thread's work ends: the exact answer is given all the same
            future.cancel()
            failure = self._semantic_failure(error)
            extra = {"cause": failure.cause, "reason": failure.reason}
            is_unexpected = failure.cause == KnowledgeError.code
            _logger.warning("semantic_tier_failed", extra=extra, exc_info=is_unexpected)
            trace.failures.append(failure)
            return None
        finally:
            trace.timings_ms[Tier.SEMANTIC] = _ms(self._clock() - started)
        if not ranking.is_answer:
            return None
        best = ranking.hits[0].chunk
        return Supplement(excerpt(best.text), best.file_path)

    def _semantic_failure(self, error: Exception) -> TierFailure:
        if isinstance(error, FutureTimeoutError):
            return TierFailure(Tier.SEMANTIC, "timeout", f"no answer within {self._semantic_timeout_s} s")
        return _failure(Tier.SEMANTIC, error)

    def _with_sections(
        self, answer: LookupAnswer, primary: Primary, section_title: str | None, include_sections: bool
    ) -> LookupAnswer:
        # Parsers are loaded when sections are asked for: most lookups never do.
        from knowledge.parsing.frontmatter import FrontmatterParser
        from knowledge.parsing.sections import headings, section

        text = self._index.read_document(primary.source, max_chars=_WHOLE_DOCUMENT_CHARS)
        if text is None:
            return answer
        body = FrontmatterParser(log_problems=False).read(text, path=primary.source).prose
        found = section(body, section_title) if section_title is not None else None
        if include_sections or (section_title is not None and found is None):
            primary = replace(primary, available_sections=headings(body))
        if found is not None:
            primary = replace(primary, content=excerpt(found[1]))
        return replace(answer, primary=primary, section_title=found[0] if found else None)


# Sections are looked for in the whole document; no document is larger than the 4 MiB that fit one request.
_WHOLE_DOCUMENT_CHARS = 4 * 1024 * 1024


def _failure(tier: Tier, error: Exception) -> TierFailure:
    if isinstance(error, DependencyUnavailable):
        return TierFailure(tier, error.dependency, str(error))
    if isinstance(error, KnowledgeError):
        return TierFailure(tier, error.code, str(error))
    # Its text may hold the query; the traceback is in the log.
    return TierFailure(tier, KnowledgeError.code, type(error).__name__)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _explanation(trace: _Trace) -> Mapping[str, object]:
    return {
        "match_count": len(trace.matches) - len(trace.gone) if trace.matches else 0,
        "matches": [
            {
                "source": match.entry.file_path,
                "title": match.entry.title,
                "keywords_in_query": match.inside,
                "keywords_containing_query": match.containing,
                "weak": match.weak,
            }
            for match in islice(trace.matches.most_specific_first() if trace.matches else (), _MAX_EXPLAINED)
            if match.entry.file_path not in trace.gone
        ],
        "semantic": [
            {
                "source": hit.chunk.file_path,
                "similarity": round(hit.relevance.similarity, 4),
                "nearness": round(hit.relevance.nearness, 4),
                "lexical": round(hit.relevance.lexical, 4),
                "coverage": round(hit.relevance.coverage, 4),
            }
            for hit in (trace.ranking.hits if trace.ranking else ())
        ],
        "answer": _decision(trace.ranking) if trace.ranking else None,
        "timings_ms": {str(stage): elapsed for stage, elapsed in trace.timings_ms.items()},
    }


def _decision(ranking: Ranking) -> Mapping[str, object]:
    """Why the semantic tier has an answer or none; `evidence` is None when it found nothing at all."""
    return {
        "evidence": round(ranking.evidence, 4) if ranking.hits else None,
        "threshold": round(ranking.threshold, 4),
        "unknown_names": round(ranking.unknown_names, 4),
        "confidence": round(confidence_in_an_answer(ranking.evidence, ranking.threshold), 4),
    }
