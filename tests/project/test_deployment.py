"""The files of a deployment, read by parsers, and held against what there is: settings, extras, routes, flags."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from shutil import which
from sysconfig import get_path
from typing import Any

import pytest
import yaml
from dockerfile_parse import DockerfileParser

from leadline.config import ENV_PREFIX, Settings, load_settings
from leadline.stores.qdrant import QdrantVectorStore
from leadline.stores.s3 import ObjectChunkStore

ROOT = Path(__file__).parents[2]
BUILD_TOOLS = re.compile(r"\b(gcc|g\+\+|make|build-essential|apt-get|git|curl|uv|pip)\b")
REQUIRED = re.compile(r"\$\{([A-Z0-9_]+):\?[^}]*\}")
PLAIN = re.compile(r"\$\{(?![A-Z0-9_]+:\?)|\$[A-Za-z]")


@pytest.fixture(scope="module")
def stages() -> list[list[dict[str, str]]]:
    """The instructions of the Dockerfile, stage by stage."""
    parser = DockerfileParser(path=str(ROOT / "Dockerfile"), cache_content=True)
    found: list[list[dict[str, str]]] = []
    for entry in parser.structure:
        if entry["instruction"] == "FROM":
            found.append([])
        if found and entry["instruction"] != "COMMENT":
            found[-1].append(entry)
    return found


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """compose.yaml, read."""
    read = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    assert set(read) == {"name", "services", "volumes"}
    return dict(read)


def values(stage: list[dict[str, str]], instruction: str) -> list[str]:
    """What these instructions of a stage say."""
    return [entry["value"] for entry in stage if entry["instruction"] == instruction]


def settings_in(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> Settings:
    """What Leadline reads from an environment, as it does at its start; unknown names are errors."""
    for name in [name for name in os.environ if name.startswith(ENV_PREFIX)]:
        monkeypatch.delenv(name)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    return load_settings()


def test_the_image_is_built_in_one_stage_and_runs_in_another(stages: list[list[dict[str, str]]]) -> None:
    """The last stage takes the installed program alone: no build tool is installed there, and no user is root."""
    build, final = stages
    assert values(build, "FROM") == ["python:${PYTHON}-slim AS build"]
    assert values(final, "FROM") == ["python:${PYTHON}-slim"]
    assert values(final, "COPY") == ["--from=build /opt/leadline /opt/leadline"]
    assert [run for run in values(final, "RUN") if BUILD_TOOLS.search(run)] == []
    assert values(final, "USER") == ["10001:10001"]
    assert json.loads(values(final, "VOLUME")[0]) == ["/data"]
    assert (values(final, "ENTRYPOINT"), values(final, "CMD")) == (['["leadline"]'], ['["serve"]'])
    order = [entry["instruction"] for entry in final]
    assert order.index("RUN") < order.index("USER") < order.index("ENTRYPOINT")


def test_the_image_knows_its_settings(
    stages: list[list[dict[str, str]]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each LEADLINE_… of the image is a setting with a value that can be; port and folder are those it declares."""
    words = values(stages[1], "ENV")[0].replace("\\", " ").split()
    environ = dict(word.split("=", 1) for word in words)
    ours = {name: value for name, value in environ.items() if name.startswith(ENV_PREFIX)}
    settings = settings_in(ours, monkeypatch, tmp_path)
    assert (settings.host, str(settings.port)) == ("0.0.0.0", values(stages[1], "EXPOSE")[0])
    assert (str(settings.data_dir), settings.log_format) == ("/data", "json")


def test_the_image_can_say_that_it_lives(stages: list[list[dict[str, str]]]) -> None:
    """The health check is a program that compiles, asks the route that needs no token, and knows the port."""
    check = values(stages[1], "HEALTHCHECK")[0]
    command = json.loads(check[check.index("[") :])
    assert command[:2] == ["python", "-c"]
    compile(command[2], "healthcheck", "exec")
    assert "/health" in command[2]
    assert "LEADLINE_PORT" in command[2]


def test_the_extras_of_the_image_are_there(stages: list[list[dict[str, str]]]) -> None:
    """Each extra that the image installs is one of pyproject.toml, and so are those that compose.yaml needs."""
    (argument,) = (value for value in values(stages[0], "ARG") if value.startswith("EXTRAS="))
    extras = set(argument.removeprefix("EXTRAS=").split(","))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert extras <= set(project["optional-dependencies"])
    assert {"postgres", "s3", "qdrant"} <= extras


def test_only_the_source_goes_to_the_builder(stages: list[list[dict[str, str]]]) -> None:
    """What is copied is let through, and everything else is kept back: data, settings and keys first of all."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert rules[0] == "*"
    let_through = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = {word.removeprefix("./") for value in values(stages[0], "COPY") for word in value.split()[:-1]}
    assert copied == let_through
    assert all((ROOT / name).exists() for name in copied)


def filled(value: str) -> str:
    """A value of compose.yaml with something in each of its places."""
    return REQUIRED.sub(lambda match: f"some{match[1].replace('_', '').lower()}", value).replace("$$", "$")


def test_compose_gives_the_server_settings_that_it_knows(
    compose: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Read as the server reads them: two workers, PostgreSQL, Qdrant and S3 at the other services' addresses."""
    services = compose["services"]
    environ = {name: filled(str(value)) for name, value in services["leadline"]["environment"].items()}
    settings = settings_in(environ, monkeypatch, tmp_path)
    assert (settings.workers, settings.vector_backend, settings.content_backend) == (2, "qdrant", "s3")
    hosts = [url.get_secret_value() for url in (settings.catalog_url, settings.threads_url) if url]
    addresses = [*hosts, settings.vector_options["url"], settings.content_options["endpoint"]]
    assert [re.split(r"[/:@]+", address)[-2] for address in hosts] == ["postgres", "postgres"]
    assert all(any(name in address for name in services) for address in addresses)
    assert settings.allowed_hosts == ["someallowedhosts"]
    ObjectChunkStore(**settings.content_options)  # refuses what it doesn't know, and http that isn't allowed
    QdrantVectorStore(**settings.vector_options)


def test_compose_has_no_secret_and_no_open_door(compose: dict[str, Any]) -> None:
    """Each password comes from outside and must be there; only this machine reaches the server, nobody the stores."""
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    assert PLAIN.findall(code) == []
    secrets = {"POSTGRES_PASSWORD", "QDRANT_API_KEY", "S3_ACCESS_KEY", "S3_SECRET_KEY", "ALLOWED_HOSTS"}
    assert set(REQUIRED.findall(code)) == secrets
    told = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    assert [name for name in secrets if name not in told] == []
    doors = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert doors == {"leadline": ["127.0.0.1:8321:8321"]}
    assert compose["services"]["leadline"]["cap_drop"] == ["ALL"]


def test_compose_keeps_what_is_stored(compose: dict[str, Any]) -> None:
    """Every service has a volume, every volume is declared, and every service that is waited for is there."""
    services = compose["services"]
    mounted = {name: service["volumes"][0].split(":")[0] for name, service in services.items()}
    assert set(mounted.values()) == set(compose["volumes"])
    assert len(set(mounted.values())) == len(services)
    awaited = services["leadline"]["depends_on"]
    assert set(awaited) == set(services) - {"leadline"}
    healthy = {name for name, how in awaited.items() if how["condition"] == "service_healthy"}
    assert all("healthcheck" in services[name] for name in healthy)


def test_the_object_storage_knows_its_flags(compose: dict[str, Any]) -> None:
    """Each flag that compose.yaml gives SeaweedFS is one of its own, and the bucket is the one the server writes to."""
    command, *flags = compose["services"]["objects"]["command"]
    binary = which("weed", path=get_path("scripts")) or pytest.fail("`weed` is missing: install the extra `test`")
    told = subprocess.run([binary, command, "-h"], capture_output=True, text=True, check=False, timeout=60)
    known = set(re.findall(r"^\s+-([\w.]+)", told.stdout + told.stderr, re.MULTILINE))
    given = dict(flag.removeprefix("-").split("=", 1) for flag in flags)
    assert set(given) <= known
    options = json.loads(filled(compose["services"]["leadline"]["environment"]["LEADLINE_CONTENT_OPTIONS"]))
    assert options["url"].startswith(f"s3://{given['bucket']}/")
    assert options["endpoint"].endswith(f":{given['s3.port']}")


def test_the_text_names_real_settings_and_routes() -> None:
    """Every LEADLINE_… and every extra route in the guides is there."""
    known = {f"{ENV_PREFIX}{name}".upper() for name in Settings.model_fields}
    for guide in ("deployment.md", "observability.md"):
        text = (ROOT / "docs" / guide).read_text(encoding="utf-8")
        named = {name.split("__")[0] for name in re.findall(r"LEADLINE_[A-Z_]*[A-Z]", text)}
        assert named <= known, guide
