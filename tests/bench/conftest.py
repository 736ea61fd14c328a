"""What the benchmarks share: where figures go, which sets are measured."""

from pathlib import Path

import pytest

from tests.bench.figures import Figures
from tools.local_cloud.places import LOCAL

_FIGURES = pytest.StashKey[Figures]()
_DEFAULT_JSON = LOCAL / "bench" / "figures.json"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("benchmarks")
    group.addoption("--json", type=Path, metavar="FILE", help="where the figures go (default: .local/bench)")
    group.addoption("--sets", default="", metavar="FOLDERS", help="documentation and query sets, parted by blanks")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_FIGURES] = Figures()


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """Takes what is measured; it is shown when all is done."""
    return request.config.stash[_FIGURES]


@pytest.fixture
def set_folders(request: pytest.FixtureRequest) -> list[Path]:
    """The folders that the run was started with. Tests that need some are skipped where there are none."""
    folders = str(request.config.getoption("--sets")).split()
    if not folders:
        pytest.skip('no sets are named: make bench SETS="folder ..."')
    return [Path(folder).expanduser() for folder in folders]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    figures = config.stash[_FIGURES]
    if not figures.values:
        return
    path: Path = config.getoption("--json") or _DEFAULT_JSON
    plot = figures.write(path)
    terminalreporter.section("figures; docs/performance.md says what each is")
    for line in figures.table():
        terminalreporter.write_line(line)
    for written in (path, plot):
        if written is not None:
            terminalreporter.write_line(str(written))
