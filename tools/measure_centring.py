"""Measures what questions in general have in common for the local embedder: `python -m tools.measure_centring`.

Writes the file that the embedder carries. Run it after a change of the model or of the list of questions.
"""

import json
from pathlib import Path

from knowledge.adapters import local_embedder
from knowledge.domain.question_centring import QuestionCentring
from knowledge.retrieval.off_topic import OFF_TOPIC

TARGET = Path(local_embedder.__file__).with_name("local_embedder.json")


def measured() -> QuestionCentring:
    """The centring of questions on many topics, in two languages."""
    embedder = local_embedder.LocalEmbedder()
    asked = {question: embedder.embed_query(question) for question in OFF_TOPIC}
    return QuestionCentring.measured(list(asked.values()), asked)


if __name__ == "__main__":
    centring = measured()
    text = json.dumps({"mean": centring.mean, "language": centring.language}, separators=(",", ":"))
    TARGET.write_text(text + "\n", encoding="utf-8")
    print(TARGET)
