"""The command line as a whole: what it lists, how fast it starts, how errors leave it."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
import typer

from leadline.cli.command import run
from leadline.errors import ConfigError, StoreError

HEAVY = {"chromadb", "langgraph", "litellm", "torch", "onnxruntime", "tantivy", "networkx", "fastapi", "sqlalchemy"}


def modules_after(code: str) -> set[str]:
    """The top-level modules a new process has loaded after running `code`."""
    code += "\nimport sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_help_lists_what_exists(leadline: Any) -> None:
    """Every command is listed with what it does, and the exit codes stand below."""
    done = leadline("--help")
    assert done.code == 0
    commands = [line.split()[0] for line in done.out.split("Commands:")[1].splitlines() if line.startswith("  ")]
    expected = "ingest watch ask search explain replay ls rm verify reindex stats calibrate serve mcp".split()
    expected += ["eval", "models", "tokens"]
    assert commands[: len(expected)] == expected
    assert "4 no answer" in " ".join(done.out.split())


def test_the_module_is_the_command() -> None:
    """`python -m leadline` for where the command isn't on the path."""
    done = subprocess.run([sys.executable, "-m", "leadline", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("leadline ")


@pytest.mark.parametrize("group", [(), ("eval",), ("models",)])
def test_what_a_command_does_is_listed_whole(leadline: Any, group: tuple[str, ...]) -> None:
    """In the list of commands no sentence is cut off."""
    listed = leadline(*group, "--help").out.split("Commands:")[1].split("\n\n")[0]
    assert "..." not in listed


def test_version(leadline: Any) -> None:
    """--version prints name and number."""
    assert leadline("--version").out.startswith("leadline 0.")


@pytest.mark.parametrize("closed", ["stdin", "stdout", "stderr"])
def test_a_closed_stream_is_no_crash(closed: str, filled: Path) -> None:
    """A command works where whoever started it closed one of its streams."""
    words = ["leadline", "ls", "--data-dir", str(filled)]
    start = f"import sys; from leadline.cli import main; sys.argv = {words!r}; main()"
    number = ["stdin", "stdout", "stderr"].index(closed)
    code = f"import os, sys; os.close({number}); os.execv(sys.executable, [sys.executable, '-c', {start!r}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_the_command_line_loads_nothing_heavy() -> None:
    """Help must be quick: no store, model or server library is loaded for it."""
    assert modules_after("import leadline.cli") & HEAVY == set()


def test_only_a_command_changes_how_often_garbage_is_collected() -> None:
    """Whoever imports the library, or the command line in it, finds the collector as they set it."""
    code = (
        "import gc, sys; gc.set_threshold(600, 9, 9); import leadline, leadline.cli; print(gc.get_threshold())\n"
        "sys.argv = ['leadline', '--version']\n"
        "try: leadline.cli.main()\n"
        "except SystemExit: print(gc.get_threshold()[0] > 600)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("(600, 9, 9)", "True")


def test_ls_needs_the_catalog_only(filled: Path) -> None:
    """Listing loads no index, no model and no graph."""
    code = (
        "import sys; from leadline.cli import main\n"
        f"sys.argv = ['leadline', 'ls', '--data-dir', {str(filled)!r}]\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code"
    )
    assert modules_after(code) & HEAVY == {"sqlalchemy"}


def test_an_unknown_setting_is_bad_usage(leadline: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelled variable is named and the allowed ones are listed."""
    monkeypatch.setenv("LEADLINE_CHUNK_TOKENZ", "100")
    done = leadline("ls", "--data-dir", tmp_path)
    assert done.code == 2
    assert "LEADLINE_CHUNK_TOKENZ" in done.err
    assert "LEADLINE_CHUNK_TOKENS" in done.err


def test_serving_beyond_this_machine_is_refused(leadline: Any, tmp_path: Path) -> None:
    """There are no tokens, so no other address than loopback."""
    done = leadline("serve", "--host", "0.0.0.0", "--data-dir", tmp_path)
    assert done.code == 2
    assert "0.0.0.0" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to one process")
def test_a_taken_port_is_an_error(tmp_path: Path) -> None:
    """Exit code 1, not one that means something else; what is the matter stands on standard error."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        words = ["serve", "--port", str(taken.getsockname()[1]), "--data-dir", str(tmp_path)]
        code = f"import sys; from leadline.cli import main; sys.argv = ['leadline', *{words!r}]; main()"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "in use" in done.stderr


def test_a_server_ends_well_by_ctrl_c(tmp_path: Path) -> None:
    """Interrupting is how a server is ended: exit code 0 and no error."""
    words = ["serve", "--port", "0", "--data-dir", str(tmp_path)]
    code = f"import sys; from leadline.cli import main; sys.argv = ['leadline', *{words!r}]; main()"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        seen = next(line for line in process.stderr if "running on http://127.0.0.1:" in line)
        process.send_signal(signal.SIGINT)
        seen += process.stderr.read()
    assert process.returncode == 0, seen
    assert "Error" not in seen


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (StoreError("It broke.", hint="Mend it."), 1, "Error: It broke.\nMend it.\n"),
        (ConfigError("Bad key."), 2, "Error: Bad key.\n"),
        (OSError(28, "No space left on device", "/full/x"), 1, "Error: /full/x: No space left on device."),
        (KeyboardInterrupt(), 1, "Error: Interrupted."),
    ],
)
def test_errors_are_one_clear_message(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Message and hint on standard error, no traceback; the same as an object on standard output with --json."""

    async def work() -> NoReturn:
        raise error

    with pytest.raises(typer.Exit) as ended:
        run(work(), as_json=False)
    assert ended.value.exit_code == code
    printed = capsys.readouterr()
    assert printed.err.startswith(said)
    assert "Traceback" not in printed.err
    with pytest.raises(typer.Exit):
        run(work(), as_json=True)
    assert set(json.loads(capsys.readouterr().out)["error"]) == {"code", "message", "hint"}


def test_a_fault_of_our_own_shows_where(capsys: pytest.CaptureFixture[str]) -> None:
    """Only what nobody foresaw has a traceback, and says that it is not the user's fault."""

    async def work() -> NoReturn:
        raise ZeroDivisionError("oops")

    with pytest.raises(typer.Exit) as ended:
        run(work(), as_json=False)
    assert ended.value.exit_code == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "fault in Leadline" in shown
