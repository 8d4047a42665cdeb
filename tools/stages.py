# Copyright: (c) 2026, holdfast.kubernetes contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run one stage of the checks, or all of them.

tools/stages.py lint|sanity|unit|site|integration|long|molecule|test|test-all

Each stage prints a summary and its duration; its whole output is in build/logs. After a failure, the later stages still
run; the exit status is the one of the first failed stage. The last line is `N passed, N failed`.

`test` runs the tests that are not marked `long`, and one Molecule scenario. `test-all` runs everything. In both, the
stages without a lab run in the background with a low priority, because the tests on the lab mostly wait.
tools/measure.py reads the files that the stages write.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import workingtree

CHECKOUT = workingtree.CHECKOUT
BUILD = CHECKOUT / "build"
LOGS = BUILD / "logs"
BIN = Path(sys.executable).parent
# The numbers of real and of simulated nodes that the integration tests and the scenarios need.
NODES = 3
SIMULATED = 20
# Processes that share the integration tests. Six groups of tests stay in one process each, see
# tests/integration/support/sharing.py. All other tests run in any of them.
INTEGRATION_PROCESSES = 6
# tests/lab has the lab's own code, and its unit tests.
UNIT_TESTS = ["tests/unit", "tests/lab"]
# A sanity test that needs 100 CPU seconds, as much as all others together.
SLOW_SANITY = "pylint"
# ansible-lint starts ansible-playbook for each of the playbooks there, which takes as long as everything else.
SLOW_LINT = "extensions/molecule"
# The only Molecule scenario of `test`. Its integration tests cover the other roles.
SCENARIO = "rolling_reboot"


@dataclass
class Result:
    """The result of a stage."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    status: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


Stage = Callable[[Any], Result]


class Interrupted(BaseException):
    """A signal asks this program to end."""


# The processes that run now, in any thread. An interrupted stage ends them.
_running: set[subprocess.Popen[bytes]] = set()
# With autogroup, the kernel divides the CPU time between sessions first, so the session needs a low priority, too. With
# the lowest one, a test can stand still for so long that a timeout of the product passes.
_LOW_PRIORITY = ["sh", "-c", '{ echo 10 > /proc/self/autogroup; } 2>/dev/null; exec nice -n 10 "$@"', "sh"]
# CPU seconds of the commands that the stages waited for, by their logs.
_cpu: dict[Path, float] = {}


def say(text: str = "") -> None:
    print(text, flush=True)


def environment(**more: str) -> dict[str, str]:
    """The environment variables for commands: the virtual environment's tools, and nothing of the user's Ansible."""
    env = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYTHONPYCACHEPREFIX": str(BUILD / "cache/pycache"),
        "HOLDFAST_LAB": os.environ.get("HOLDFAST_LAB") or str(BUILD / "lab"),
        # A collection that the user has installed must not hide the checkout.
        "ANSIBLE_COLLECTIONS_PATH": str(BUILD / "collections"),
        "ANSIBLE_NOCOWS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    if not sys.stdout.isatty():
        env["NO_COLOR"] = env["ANSIBLE_NOCOLOR"] = "1"
    # The user's own configuration must not affect the tests.
    env.pop("ANSIBLE_CONFIG", None)
    env.update(more)
    return env


def run(
    command: list[str],
    log: Path,
    *,
    cwd: Path = CHECKOUT,
    env: dict[str, str] | None = None,
    show: bool = False,
    background: bool = False,
) -> int:
    """Run a command and return its exit status. Its output goes to ``log``; with ``show``, to the terminal as well.

    With ``background``, it gets a tenth of the CPU time that a stage with the lab gets, or what that leaves.

    There is no pipe for the output, because processes that the lab starts would keep it open forever.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output, log.open("rb") as shown:
        output.write(f"$ {shlex.join(command)}\n".encode())
        output.flush()
        shown.seek(0, os.SEEK_END)
        process = subprocess.Popen(
            [*_LOW_PRIORITY, *command] if background else command,
            cwd=cwd,
            env=env or environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        _running.add(process)
        try:
            while True:
                status = _poll(process, log)
                if show and (text := shown.read()):
                    sys.stdout.buffer.write(text)
                    sys.stdout.buffer.flush()
                if status is not None:
                    return status if status >= 0 else 128 - status
                time.sleep(0.2)
        except BaseException:
            end(process)
            raise
        finally:
            _running.discard(process)


def _poll(process: subprocess.Popen[bytes], log: Path) -> int | None:
    """Like Popen.poll(), but also record the CPU time of the process and of its children."""
    if process.returncode is None:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            _cpu[log] = _cpu.get(log, 0.0) + usage.ru_utime + usage.ru_stime
    return process.returncode


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all processes of its group."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def show_log(log: Path) -> None:
    say(log.read_text(errors="replace").rstrip())


# --- lint


def lint_commands(*skipped: str) -> dict[str, tuple[list[str], Path]]:
    """Each check with its command and the directory to run it in.

    Args:
        skipped: Folders that ansible-lint skips.
    """
    # antsibull-docs copies the tree, and ansible-lint walks through it, so they get a copy without build/. The copy has
    # no links, because antsibull-docs takes a linked action plugin for a redirect of the module.
    tree = workingtree.copy(BUILD / "lint", repository=True, links=False)
    return {
        "ruff check": (["ruff", "check", "--output-format=concise", "."], CHECKOUT),
        "ruff format": (["ruff", "format", "--check", "."], CHECKOUT),
        "mypy": (["mypy"], CHECKOUT),
        "yamllint": (["yamllint", "--strict", "."], tree),
        "ansible-lint": (
            [
                *("ansible-lint", "--offline", "--strict", "--profile", "production", "--nocolor", "-q"),
                *(argument for folder in skipped for argument in ("--exclude", folder)),
            ],
            tree,
        ),
        "antsibull-docs": (
            [
                "antsibull-docs",
                "lint-collection-docs",
                "--plugin-docs",
                "--skip-rstcheck",
                "--validate-collection-refs=self",
                "--check-extra-docs-refs",
                ".",
            ],
            tree,
        ),
        "antsibull-changelog": (["antsibull-changelog", "lint"], tree),
        "tables": ([sys.executable, str(CHECKOUT / "tools/tables.py"), "--check"], CHECKOUT),
        "roles": ([sys.executable, str(CHECKOUT / "tools/roles.py")], CHECKOUT),
        "tree": ([sys.executable, str(CHECKOUT / "tools/tree_check.py")], CHECKOUT),
    }


def lint(options: argparse.Namespace) -> Result:
    result = Result("lint")
    env = environment(
        ANSIBLE_HOME=str(BUILD / "cache/ansible"),
        ANSIBLE_COLLECTIONS_PATH=str(BUILD / "lint"),
        # The virtual environment has a link to the checkout.
        ANSIBLE_COLLECTIONS_SCAN_SYS_PATH="False",
        XDG_CACHE_HOME=str(BUILD / "cache"),
    )

    def check(name: str, command: list[str], where: Path) -> tuple[str, int, float]:
        started = time.monotonic()
        status = run(command, log_of("lint", name), cwd=where, env=env, background=options.stage in TOGETHER)
        return name, status, time.monotonic() - started

    skipped = [SLOW_LINT] if options.stage == "test" else []
    result.notes += [f"  {folder} is left to make test-all: half of ansible-lint's time." for folder in skipped]
    commands = lint_commands(*skipped)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        running = [pool.submit(check, name, command, where) for name, (command, where) in commands.items()]
        for done in concurrent.futures.as_completed(running):
            name, status, seconds = done.result()
            result.notes.append(f"  {name:<20} {'ok' if status == 0 else 'FAILED'} {seconds:6.1f} s")
            if status == 0:
                result.passed += 1
            else:
                result.failed += 1
                result.status = result.status or status
                result.notes.append(log_of("lint", name).read_text(errors="replace").rstrip())
    return result


def log_of(stage: str, name: str = "") -> Path:
    return LOGS / (f"{stage}-{name.replace(' ', '-')}.log" if name else f"{stage}.log")


# --- sanity

# Takes the place of the get-pip.py that ansible-test downloads: Python includes pip.
_GET_PIP = """\
import subprocess
import sys

subprocess.run([sys.executable, "-m", "ensurepip"], check=True)
wanted = [argument for argument in sys.argv[1:] if argument.startswith("pip==")]
subprocess.run([sys.executable, "-m", "pip", "install", *wanted], check=True)
"""
# The versions of pip that ansible-test installs: of ansible-core 2.19 and of later ones.
_PIP_VERSIONS = ("24_2", "25_2")


def sanity_home() -> Path:
    """The home directory for ansible-test, which keeps its environments there. All checkouts share it."""
    home = Path.home() / ".cache/holdfast-sanity"
    cache = home / ".ansible/test/cache"
    cache.mkdir(parents=True, exist_ok=True)
    for version in _PIP_VERSIONS:
        (cache / f"get_pip_{version}.py").write_text(_GET_PIP)
    configuration = home / ".config/pip/pip.conf"
    configuration.parent.mkdir(parents=True, exist_ok=True)
    configuration.touch(mode=0o600)
    configuration.write_text("[global]\n" + "".join(f"{key} = {value}\n" for key, value in pip_settings().items()))
    return home


def pip_settings() -> dict[str, str]:
    """pip's settings of the user, with the proxy and the certificates. ansible-test passes no variables on to pip."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    settings = {}
    for line in listed.splitlines():
        key, _equals, value = line.partition("=")
        if key.startswith(("global.", ":env:.")):
            settings[key.rpartition(".")[2]] = value.strip("'")
    if proxy := os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy"):
        settings.setdefault("proxy", proxy)
    if bundle := os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE"):
        settings.setdefault("cert", bundle)
    return settings


def shellcheck() -> str | None:
    """Return the path of shellcheck. If it is missing, unpack Debian's package into build/; ``None`` if that fails."""
    if found := shutil.which("shellcheck"):
        return found
    unpacked = BUILD / "cache/shellcheck"
    program = unpacked / "usr/bin/shellcheck"
    if not program.exists() and shutil.which("apt-get") and shutil.which("dpkg-deb"):
        unpacked.mkdir(parents=True, exist_ok=True)
        log = log_of("sanity", "shellcheck")
        if (
            run(["apt-get", "download", "shellcheck"], log, cwd=unpacked) == 0
            and run(["dpkg-deb", "-x", str(next(unpacked.glob("*.deb"))), "."], log, cwd=unpacked) == 0
            and run([str(program), "--version"], log) == 0
        ):
            return str(program)
        shutil.rmtree(unpacked, ignore_errors=True)
    return str(program) if program.exists() else None


def sanity(options: argparse.Namespace) -> Result:
    result = Result("sanity")
    tree = workingtree.copy(BUILD / "sanity", repository=True, keep=("tests/output",))
    log = log_of("sanity")
    env = environment(HOME=str(sanity_home()))
    if program := shellcheck():
        env["PATH"] += f"{os.pathsep}{Path(program).parent}"
    else:
        result.notes.append("  shellcheck is not installed, and there is no Debian package: its test is skipped.")
    version = "{}.{}".format(*sys.version_info[:2])
    command = ["ansible-test", "sanity", "--venv", "--python", version, "--color", "no"]
    if options.stage == "test":
        command += ["--skip-test", SLOW_SANITY]
        result.notes.append(f"  {SLOW_SANITY} is left to make test-all; ruff has most of its rules.")
    result.status = run(command, log, cwd=tree, env=env, background=options.stage in TOGETHER)
    text = log.read_text(errors="replace")
    ran = re.findall(r'^Running sanity test "?([\w-]+)', text, re.MULTILINE)
    listed = re.search(r"^FATAL: The \d+ sanity test\(s\) listed below.*\n((?:[\w-]+\n)+)", text, re.MULTILINE)
    failed = listed.group(1).split() if listed else []
    result.failed = len(failed) or int(result.status != 0)
    result.passed = len(set(ran)) - len(failed)
    if result.status:
        result.notes.append(text.rstrip())
    elif not ran:
        result.status = result.failed = 1
        result.notes.append(f"ansible-test ran nothing, see {log.relative_to(CHECKOUT)}")
    else:
        result.notes.append(f"  {len(set(ran))} tests: {' '.join(sorted(set(ran)))}")
    return result


# --- pytest


def pytest(name: str, folders: list[str], arguments: list[str], *, background: bool = False) -> Result:
    result = Result(name)
    report = LOGS / f"{name}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", *folders, f"--junitxml={report}", *arguments]
    color = ["--color=yes"] if sys.stdout.isatty() else []
    result.status = run([*command, *color], log_of(name), show=not background, background=background)
    if result.status and background:
        result.notes.append(log_of(name).read_text(errors="replace").rstrip())
    if report.exists():
        for suite in ET.parse(report).getroot().iter("testsuite"):
            count = {key: int(suite.get(key) or 0) for key in ("tests", "failures", "errors", "skipped")}
            result.failed += count["failures"] + count["errors"]
            result.skipped += count["skipped"]
            result.passed += count["tests"] - count["failures"] - count["errors"] - count["skipped"]
    if result.status and not result.failed:
        result.failed = 1
    return result


def unit(options: argparse.Namespace) -> Result:
    # Most of it runs after the tests on the lab, when nothing else needs the processors.
    marks = ["-m", "not long"] if options.stage == "test" else []
    arguments = ["-n", str(os.cpu_count() or 1), *marks, *shlex.split(options.pytest_args)]
    return pytest("unit", UNIT_TESTS, arguments, background=options.stage in TOGETHER)


def site(options: argparse.Namespace) -> Result:
    """The documentation site: it takes about a minute of CPU time, so only test-all builds it."""
    return pytest("site", ["tests/site"], shlex.split(options.pytest_args), background=options.stage in TOGETHER)


# --- stages on the lab


class Lab:
    """The lab, started when it is needed. A lab that was up before is left up."""

    def __init__(self) -> None:
        self.was_up = self.command("status") == 0
        self.ours = False
        self._setup: subprocess.Popen[bytes] | None = None

    @staticmethod
    def command(*arguments: str, show: bool = False) -> int:
        command = [sys.executable, "-m", "lab", *arguments]
        return run(command, log_of("lab", arguments[0]), env=environment(PYTHONPATH=str(CHECKOUT / "tests")), show=show)

    def prepare(self) -> None:
        """Start to build the lab's programs and images in the background: on a fresh machine this takes minutes."""
        if self.was_up:
            return
        log = log_of("lab", "setup")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            self._setup = subprocess.Popen(
                [sys.executable, "-m", "lab", "setup", "--all", f"--nodes={NODES}", f"--simulated={SIMULATED}"],
                cwd=CHECKOUT,
                env=environment(PYTHONPATH=str(CHECKOUT / "tests")),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _running.add(self._setup)

    def up(self) -> int:
        if self.was_up:
            say("  The lab was already up. It is used as it is, and left up.")
            return 0
        if self._setup:
            if self._setup.poll() is None:
                say(f"  Waiting for the lab's programs and images (build/logs/{log_of('lab', 'setup').name}) ...")
            since = time.monotonic()
            status = self._setup.wait()
            _running.discard(self._setup)
            say(f"  Waited {time.monotonic() - since:.1f} s for the lab's programs and images.")
            self._setup = None
            if status:
                show_log(log_of("lab", "setup"))
                return status
        self.ours = True
        status = self.command("up", "--nodes", str(NODES), "--simulated", str(SIMULATED))
        if status:
            show_log(log_of("lab", "up"))
        return status

    @property
    def exists(self) -> bool:
        """Whether this program has made something that :meth:`down` has to remove."""
        return self.ours or self._setup is not None

    def down(self) -> int:
        if self._setup:
            end(self._setup)
            self._setup = None
        if not self.ours:
            return 0
        # They show why simulated nodes or the control plane stood still during a failed test.
        shutil.rmtree(LOGS / "lab", ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            shutil.copytree(BUILD / "lab/logs", LOGS / "lab")
        status = self.command("down", show=True)
        # Not earlier: if a signal interrupts the command, the lab is still there.
        self.ours = False
        return status


def lab_up(lab: Lab) -> Result:
    status = lab.up()
    return Result("lab up", failed=int(status != 0), status=status)


def lab_down(lab: Lab) -> Result:
    status = lab.down()
    return Result("lab down", failed=int(status != 0), status=status)


def integration(options: argparse.Namespace, name: str = "integration", marks: str = "not long") -> Result:
    # More processes than cores, because the tests mostly wait.
    selected = ["tests/integration", "-m", marks, "-n", str(INTEGRATION_PROCESSES)]
    return pytest(name, selected, shlex.split(options.pytest_args))


def long(options: argparse.Namespace) -> Result:
    return integration(options, "long", "long")


def molecule(options: argparse.Namespace) -> Result:
    result = Result("molecule")
    wanted: list[str] = options.scenario or ([SCENARIO] if options.stage == "test" else [])
    known = sorted(path.parent.name for path in CHECKOUT.glob("extensions/molecule/**/molecule.yml"))
    # Runs of different scenarios at the same time must not share Molecule's state.
    home = BUILD / "molecule" / ("-".join(wanted) or "all")
    env = environment(
        # Molecule installs the collection into Ansible's home, so do not use the user's.
        ANSIBLE_HOME=str(home),
        # A socket's path must be short.
        ANSIBLE_SSH_CONTROL_PATH_DIR=str(Path.home() / ".ansible/cp"),
        # A play without hosts would test nothing.
        ANSIBLE_HOST_PATTERN_MISMATCH="error",
        XDG_CACHE_HOME=str(BUILD / "cache"),
    )
    # Otherwise Molecule does not prepare a scenario again that failed before, even if the nodes have changed since.
    for left in (home / "tmp").glob("molecule.*"):
        shutil.rmtree(left)
    # Run it in the directory of galaxy.yml, or it does not read extensions/molecule/config.yml.
    chosen = [argument for name in wanted for argument in ("--scenario-name", name)] or ["--all"]
    log = log_of("molecule", "-".join(wanted))
    result.status = run(["molecule", "test", *chosen], log, env=env, show=options.stage not in TOGETHER)
    if result.status:
        result.failed = 1
        if options.stage in TOGETHER:
            result.notes.append(log.read_text(errors="replace").rstrip())
    else:
        result.passed = len(wanted or known)
    return result


# --- all stages


@contextlib.contextmanager
def signals() -> Iterator[None]:
    """Raise Interrupted at a signal, so that the running stage ends and the lab is still taken down."""

    def interrupt(number: int, _frame: object) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Report:
    """Prints the result of each stage, and a table at the end."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self.started = time.monotonic()

    def stage(self, name: str, work: Stage, argument: object) -> Result:
        say(f"== {name}")
        started = time.monotonic()
        result = work(argument)
        result.seconds = result.seconds or time.monotonic() - started
        result.cpu_seconds = sum(
            seconds for log, seconds in _cpu.items() if log.stem.startswith(name.replace(" ", "-"))
        )
        self.results.append(result)
        for note in result.notes:
            say(note)
        say(f"== {name}: {'FAILED' if result.status else 'ok'}, {result.seconds:.1f} s")
        say()
        return result

    def close(self) -> int:
        say("stage          seconds  CPU seconds  passed  failed  skipped")
        for result in self.results:
            say(
                f"{result.name:<14} {result.seconds:7.1f} {result.cpu_seconds:12.1f} "
                f"{result.passed:7} {result.failed:7} {result.skipped:8}"
            )
        say(f"{'all':<14} {time.monotonic() - self.started:7.1f}")
        say("Logs: build/logs")
        stages = [{**vars(result), "notes": None} for result in self.results]
        (LOGS / "stages.json").write_text(json.dumps({"stages": stages, "seconds": time.monotonic() - self.started}))
        passed = sum(result.passed for result in self.results)
        failed = sum(result.failed for result in self.results)
        say(f"{passed} passed, {failed} failed")
        return next((result.status for result in self.results if result.status), 0)


def _wait_for(future: concurrent.futures.Future[Result]) -> Stage:
    return lambda _options: future.result()


@contextlib.contextmanager
def in_the_background(options: argparse.Namespace) -> Iterator[dict[str, Stage]]:
    """Start the stages that need no lab. Yield stages that wait for their results."""

    def timed(work: Callable[[argparse.Namespace], Result]) -> Result:
        started = time.monotonic()
        result = work(options)
        result.seconds = time.monotonic() - started
        return result

    chosen = {name: work for name, work in WITHOUT_LAB.items() if name not in SLOW or options.stage == "test-all"}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        futures = {name: pool.submit(timed, work) for name, work in chosen.items()}
        try:
            yield {name: _wait_for(future) for name, future in futures.items()}
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(_running):
                end(process)
            raise


# In the order in which they start. unit is first, because it can use only one core.
WITHOUT_LAB: dict[str, Stage] = {"unit": unit, "lint": lint, "sanity": sanity, "site": site}
# The ones that `test` leaves out.
SLOW = {"site"}
WITH_LAB: dict[str, Stage] = {"integration": integration, "long": long, "molecule": molecule}
# For the commands that run several stages: the stages on the lab. The others run in the background.
TOGETHER = {"test": ["molecule", "integration"], "test-all": ["molecule", "integration", "long"]}


def main() -> int:
    parser = argparse.ArgumentParser(description="Run one stage of the tests, or all of them.")
    parser.add_argument("stage", choices=[*WITHOUT_LAB, *WITH_LAB, *TOGETHER])
    parser.add_argument("--pytest-args", default="", help="more arguments for pytest")
    parser.add_argument("--scenario", action="append", default=[], help="scenario of Molecule; all by default")
    options = parser.parse_args()
    report = Report()
    if options.stage in WITHOUT_LAB:
        report.stage(options.stage, WITHOUT_LAB[options.stage], options)
        return report.close()
    stages: dict[str, Stage] = {name: WITH_LAB[name] for name in TOGETHER.get(options.stage, [options.stage])}
    if options.stage == "test-all":
        os.environ.setdefault("HYPOTHESIS_PROFILE", "nightly")
    lab = Lab()
    try:
        with signals(), contextlib.ExitStack() as stack:
            lab.prepare()
            together = options.stage in TOGETHER
            background: dict[str, Stage] = stack.enter_context(in_the_background(options)) if together else {}
            if report.stage("lab up", lab_up, lab).status == 0:
                for name, work in stages.items():
                    report.stage(name, work, options)
            # What still runs in the background gets the processors for itself.
            if lab.exists:
                report.stage("lab down", lab_down, lab)
            for name, wait in background.items():
                report.stage(name, wait, options)
    except Interrupted as interrupted:
        report.results.append(Result("interrupted", failed=1, status=128 + interrupted.args[0]))
    finally:
        if lab.exists:
            report.stage("lab down", lab_down, lab)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
