"""OpenSearch put together from the artefacts that its project publishes on Maven Central, without a distribution.

The k-NN plugin comes without its native libraries: engine `lucene` works in full, and creating an index with another
engine ends the node.
"""

import shutil
import subprocess
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tools.local_cloud.places import Problem
from tools.opensearch_node import host, node

_PLUGIN_VERSION = f"{node.VERSION}.0"
_LOG4J_VERSION = "2.21.0"  # that of log4j-api, which OpenSearch brings along
_MAVEN_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class _Module:
    """A folder in modules/, as the distribution has it."""

    name: str
    artefact: str
    entry: str
    permissions: tuple[str, ...] = ()
    """What its code may do, as the distribution grants it."""


_REFLECTION = (
    'java.lang.RuntimePermission "accessDeclaredMembers"',
    'java.lang.reflect.ReflectPermission "suppressAccessChecks"',
)
_MODULES = (
    _Module(
        "transport-netty4",
        "transport-netty4-client",
        "org.opensearch.transport.Netty4Plugin",
        (
            *_REFLECTION,
            'java.lang.RuntimePermission "getClassLoader"',
            'java.lang.RuntimePermission "setContextClassLoader"',
            'java.net.SocketPermission "*", "accept,connect,listen,resolve"',
            'java.net.NetPermission "getNetworkInformation"',
            'java.util.PropertyPermission "*", "read,write"',
        ),
    ),
    _Module("analysis-common", "analysis-common", "org.opensearch.analysis.common.CommonAnalysisPlugin"),
    _Module(
        "lang-painless",
        "lang-painless",
        "org.opensearch.painless.PainlessPlugin",
        (
            'java.lang.RuntimePermission "createClassLoader"',
            'java.lang.RuntimePermission "getClassLoader"',
            'org.opensearch.script.ClassPermission "<<STANDARD>>"',
        ),
    ),
    _Module(  # delete by query
        "reindex",
        "reindex-client",
        "org.opensearch.index.reindex.ReindexPlugin",
        (*_REFLECTION, 'java.net.SocketPermission "*", "connect"'),
    ),
)

_LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%-25c{1.}] %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


def is_assembled() -> bool:
    """True when `node.HOME` holds a complete OpenSearch."""
    return _complete().exists()


def assemble() -> None:
    """`node.HOME` holds a complete OpenSearch; nothing is done when it does already. Raises Problem."""
    if is_assembled():
        return
    if shutil.which("mvn") is None:
        raise Problem(
            "Neither a Docker engine with OpenSearch's image nor Maven was found. Start Docker, or install Maven and "
            "Java 17 (Debian: apt install maven openjdk-17-jre-headless), or set OPENSEARCH_URL to a node that runs."
        )
    host.java()
    print(f"putting OpenSearch {node.VERSION} together in {node.HOME}, once")
    shutil.rmtree(node.HOME, ignore_errors=True)
    for folder in ("bin", "config", "lib", "modules", "plugins"):
        (node.HOME / folder).mkdir(parents=True)
    opensearch = [f"org.opensearch:{name}:{node.VERSION}" for name in ("opensearch", "opensearch-plugin-classloader")]
    _bring([*opensearch, f"org.apache.logging.log4j:log4j-core:{_LOG4J_VERSION}"], node.HOME / "lib")
    for module in _MODULES:
        _add_module(module)
    _add_plugin()
    (node.HOME / "config" / "log4j2.properties").write_text(_LOGGING)
    _complete().touch()


def _complete() -> Path:
    return node.HOME / f"complete-{node.VERSION}"


def _add_module(module: _Module) -> None:
    folder = node.HOME / "modules" / module.name
    _bring([f"org.opensearch.plugin:{module.artefact}:{node.VERSION}"], folder)
    for jar in folder.glob("*.jar"):
        if (node.HOME / "lib" / jar.name).exists():
            jar.unlink()  # a class loaded twice ends the node
    described = {
        "name": module.name,
        "description": module.name,
        "version": node.VERSION,
        "opensearch.version": node.VERSION,
        "java.version": "11",
        "classname": module.entry,
        "extended.plugins": "",
        "has.native.controller": "false",
    }
    lines = [f"{name}={value}\n" for name, value in described.items()]
    (folder / "plugin-descriptor.properties").write_text("".join(lines))
    grants = "".join(f"  permission {permission};\n" for permission in module.permissions)
    (folder / "plugin-security.policy").write_text(f"grant {{\n{grants}}};\n")


def _add_plugin() -> None:
    with tempfile.TemporaryDirectory() as downloaded:
        artefact = f"org.opensearch.plugin:opensearch-knn:{_PLUGIN_VERSION}:zip"
        _maven("dependency:copy", f"-Dartifact={artefact}", f"-DoutputDirectory={downloaded}")
        (archive,) = Path(downloaded).glob("*.zip")
        with zipfile.ZipFile(archive) as plugin:
            plugin.extractall(node.HOME / "plugins" / "opensearch-knn")


def _bring(artefacts: list[str], folder: Path) -> None:
    """The artefacts, and whatever they need when they run, are in `folder`."""
    wanted = ""
    for artefact in artefacts:
        group, name, version = artefact.split(":")
        wanted += (
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
    with tempfile.TemporaryDirectory() as project:
        pom = Path(project) / "pom.xml"
        pom.write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>opensearch-node"
            f"</artifactId><version>1</version><dependencies>{wanted}</dependencies></project>"
        )
        options = ("-DincludeScope=runtime", f"-DoutputDirectory={folder}")
        _maven("--file", str(pom), "dependency:copy-dependencies", *options)


def _maven(*arguments: str) -> None:
    command = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_MAVEN_TIMEOUT_S, check=False)
    if done.returncode:
        raise Problem(f"Maven could not bring what OpenSearch needs:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
