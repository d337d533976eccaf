"""A real Apache Kafka for the tests: one node, made of Maven's jars, that can be killed, paused and started again."""

import importlib.util
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self
from xml.etree import ElementTree

import pytest

POM = Path(__file__).parent / "pom.xml"
VERSION = ElementTree.parse(POM).findtext("{*}properties/{*}kafka.version")
READY_TIMEOUT = 180.0  # seconds: one that is given up is missed by all tests of a process
REVIVAL_TIMEOUT = 20.0
STOP_TIMEOUT = 30.0
LOG_TAIL = 4000
PORTS = range(20_000, 32_000)  # below those the system gives to clients, who would take a killed broker's port
USER, PASSWORD = "holdfast", "open sesame"  # of the listener that asks for one

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule "
    f'required user_{USER}="{PASSWORD}";',
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "log.cleaner.dedupe.buffer.size": "4194304",  # the default takes a quarter of the heap
    # A killed broker may come back only when its session is over.
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "200",
    # Members come at once, and a killed one is missed after three seconds; a classic one says its own time-out.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
}

# The kernel ends a tethered child when the thread that started it ends; this one lasts as long as the process.
_starter = ThreadPoolExecutor(1, thread_name_prefix="kafka")
_TETHER = """
import os, signal, sys
from holdfast.postgres.holder import die_with
die_with(int(sys.argv[1]), signal.SIGKILL)
os.execvp(sys.argv[2], sys.argv[2:])
"""


class Broker:
    """A running broker; it dies with the process that started it."""

    def __init__(self, folder: Path, *, optimize: bool = False) -> None:
        self._folder = folder
        # Java's optimizing compiler takes more CPU time than it saves a broker that lives for minutes.
        self._compiler = [] if optimize else ["-XX:TieredStopAtLevel=1"]
        port, asking, controller = _free_ports()
        self.address = f"127.0.0.1:{port}"
        self.asking_address = f"127.0.0.1:{asking}"  # the same broker, for those who know the password
        self._settings = {
            **SETTINGS,
            "listeners": f"PLAINTEXT://{self.address},SASL://{self.asking_address},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address},SASL://{self.asking_address}",
            # A quorum by configuration: one in the storage would tie the formatted storage to these ports.
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": str(folder / "data"),
        }
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, folder: Path, *, optimize: bool = False) -> Self:
        """Start an empty one that keeps its data and its log in `folder`; `optimize` where speed is measured."""
        broker = cls(folder, optimize=optimize)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(_storage(), folder / "data")
        _write(folder / "server.properties", broker._settings)
        broker._launch()
        return broker

    @property
    def pid(self) -> int:
        """The process of the last start."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether its process lives; a paused one does."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Stop it cleanly, and wait until it is gone."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it without a chance to say goodbye."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Start it again on its ports and its data, cleanly stopped before if it still runs."""
        self.stop()
        self._launch()

    def pause(self) -> None:
        """Let it fall silent with its connections open, as a machine does that hangs."""
        self._send(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)  # until then a thread of it may still answer

    def resume(self) -> None:
        """Let a paused one go on."""
        self._send(signal.SIGCONT)

    def revive(self) -> None:
        """Have it running and answering, whatever a test did to it."""
        if self.running:
            self.resume()
            try:
                self._wait_until_ready(REVIVAL_TIMEOUT)
                return
            except RuntimeError:  # it has not got over it
                self.kill()
        self._launch()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _end(self, farewell: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(farewell)
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def _launch(self) -> None:
        self._process = _starter.submit(self._spawn).result()
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def _spawn(self) -> subprocess.Popen[bytes]:
        tether = [sys.executable, "-c", _TETHER, str(os.getpid())]
        java = _java(jars(), "-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", *self._compiler)
        with (self._folder / "kafka.log").open("ab") as log:
            return subprocess.Popen(
                [*tether, *java, "kafka.Kafka", str(self._folder / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                process_group=0,  # a Ctrl-C is for the tests, which stop it in their order
            )

    def _wait_until_ready(self, timeout: float = READY_TIMEOUT) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        quiet = {"log_level": 0, "reconnect.backoff.max.ms": 100}
        admin = AdminClient({"bootstrap.servers": self.address, **quiet})
        deadline = time.monotonic() + timeout
        while self.running and time.monotonic() < deadline:
            with suppress(KafkaException):
                if admin.list_topics(timeout=5).brokers:
                    return
        tail = (self._folder / "kafka.log").read_text("utf-8", errors="replace")[-LOG_TAIL:]
        how = f"does not answer within {timeout:.0f} s" if self.running else "ended"
        raise RuntimeError(f"Kafka on {self.address} {how}; its log ends with:\n{tail}")


def broker_or_skip() -> Iterator[Broker]:
    """A broker for all tests of this process; without it they are skipped, which a CI does not accept."""
    if lack := missing():
        message = f"KAFKA NOT TESTED: {lack} not found; install what is missing to run these tests"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with tempfile.TemporaryDirectory(prefix="holdfast-kafka-") as folder, Broker.start(Path(folder)) as broker:
        yield broker


def missing() -> str:
    """What a broker needs and this machine does not have, or nothing."""
    programs = ["java"] if _cache().exists() else ["java", "mvn"]
    lacks = [program for program in programs if shutil.which(program) is None]
    if importlib.util.find_spec("confluent_kafka") is None:
        lacks.append("confluent_kafka")
    return ", ".join(lacks)


def jars() -> Path:
    """The folder of Kafka's jars, fetched once for all projects and runs of this account."""
    return _made() / "jars"


def _storage() -> Path:
    """A formatted storage with nothing in it; a copy saves the start of a second Java machine."""
    return _made() / "storage"


def _made() -> Path:
    """The cache, made complete in one step: an interrupted or a second fetch does no harm."""
    cache = _cache()
    if cache.exists():
        return cache
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{cache.name}.", dir=cache.parent) as folder:
        draft = Path(folder) / "made"
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={draft / 'jars'}"]
        _run("mvn", "-q", "-B", "-f", str(POM), *copy)
        properties = Path(folder) / "server.properties"
        anywhere = {"listeners": "PLAINTEXT://:1,CONTROLLER://:2", "controller.quorum.voters": "1@127.0.0.1:2"}
        _write(properties, {**SETTINGS, **anywhere, "log.dirs": str(draft / "storage")})
        tool = ["kafka.tools.StorageTool", "format", "-t", "holdfast-tests", "-c", str(properties)]
        _run(*_java(draft / "jars"), *tool)
        with suppress(OSError):  # someone else was first
            draft.rename(cache)
    assert cache.exists()
    return cache


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "holdfast" / f"kafka-{VERSION}"


def _java(jars: Path, *options: str) -> list[str]:
    log = {"defaultLogLevel": "warn", "showDateTime": "true", "dateTimeFormat": "HH:mm:ss.SSS"}
    return [
        "java",
        *options,
        *(f"-Dorg.slf4j.simpleLogger.{name}={value}" for name, value in log.items()),
        "-cp",
        str(jars / "*"),
    ]


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed with {done.returncode}:\n{(done.stdout + done.stderr)[-LOG_TAIL:]}")


def _write(file: Path, settings: dict[str, str]) -> None:
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), "utf-8")


def _free_ports() -> tuple[int, int, int]:
    """Three ports that nobody listens on now."""
    with socket.socket() as first, socket.socket() as second, socket.socket() as third:
        return _bind(first), _bind(second), _bind(third)


def _bind(probe: socket.socket) -> int:
    # Not the shared generator: hypothesis seeds that one, and two test processes would take the same ports.
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError(f"no port of {PORTS} is free")
