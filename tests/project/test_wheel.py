"""The wheel holds all that a working installation needs."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


COMMANDS = """
import sys
import leadline.cli
print(leadline.cli.__file__)
for words in (["ingest", "vault.md"], ["ask", "What is the vault code of the north pier?"]):
    sys.argv = ["leadline", *words]
    try:
        leadline.cli.main()
    except SystemExit as ended:
        print("exit", ended.code or 0, flush=True)
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from this tree, unpacked as an installer would."""
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (wheel,) = out.glob("leadline-*.whl")
    site = out / "site"
    zipfile.ZipFile(wheel).extractall(site)
    return site


def test_wheel_installs_one_package(unpacked: Path) -> None:
    """Nothing but `leadline` and its metadata lands in site-packages."""
    tops = {path.name for path in unpacked.iterdir()}
    assert {name for name in tops if not name.endswith(".dist-info")} == {"leadline"}


def test_wheel_answers_a_question(unpacked: Path, tmp_path: Path) -> None:
    """The wheel's own files (weights, prompts) take a document in and answer from it, away from the source tree."""
    (tmp_path / "vault.md").write_text("# Vault\n\nThe vault code of the north pier is 7719.\n", encoding="utf-8")
    env = {key: value for key, value in os.environ.items() if not key.startswith("LEADLINE_")}
    env |= {"PYTHONPATH": str(unpacked), "LEADLINE_DATA_DIR": str(tmp_path / "data")}

    done = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        check=False,
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert str(unpacked) in done.stdout
    ingested, asked = done.stdout.split("exit 0\n")[:2]
    assert "vault.md" in ingested
    assert "7719" in asked
