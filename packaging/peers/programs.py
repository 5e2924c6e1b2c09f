"""The programs of a run, on the loopback interface: Perch, Home Assistant, a broker and robots."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess

root = pathlib.Path(__file__).resolve().parent.parent.parent

ROBOT = "a0b1c2d3e4f5"  # the robot of docs/home-assistant.md


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def address(mac):
    """Returns a robot's MAC address with colons."""
    return ":".join(mac[i:i + 2] for i in range(0, 12, 2))


class Programs:
    """The running programs, and the folder of their data and logs."""

    def __init__(self, folder, stack, broker="embedded"):
        self.folder, self.stack, self.broker = folder, stack, broker
        self.ports = {name: free_port() for name in ("perch", "local", "mqtt", "robots", "wyoming", "homeassistant", "push")}
        self.running = {}  # by name
        self.talks = 0

    def start(self, name, *command, **options):
        """Starts a program, which is stopped at the end."""
        log = open(self.folder / f"{name}.log", "ab")
        self.running[name] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **options)
        self.stack.callback(self.stop, name)
        return self.running[name]

    def stop(self, name, by=signal.SIGTERM):
        """Ends a program with a signal, and waits for its end."""
        process = self.running[name]
        if process.poll() is None:
            process.send_signal(by)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(40)
        process.kill()
        process.wait()

    def log(self, name):
        """Returns what a program has logged."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def url(self, name, path="/"):
        return f"http://127.0.0.1:{self.ports[name]}{path}"

    def start_perch(self):
        """Starts Perch, which uses its own broker or mosquitto."""
        sentences = self.folder / "sentences.json"  # JSON is YAML
        sentences.write_text(json.dumps({"language": "en", "answers": {"neither": ["make it (bright|cosy)"]}, "intents": {
            "desk": {"sentences": ["turn on the desk"], "answer": "😐 I have no desk."}}}, ensure_ascii=False))
        mqtt = {"listen": f"127.0.0.1:{self.ports['mqtt']}"}
        if self.broker == "mosquitto":
            mqtt = {"broker": f"mqtt://127.0.0.1:{self.ports['mqtt']}", "user": "perch", "password_file": str(self.folder / "password")}
        config = self.folder / "perch.yaml"
        config.write_text(json.dumps({
            "listen": [f"127.0.0.1:{self.ports['perch']}"], "local": [f"127.0.0.1:{self.ports['local']}"], "mqtt": mqtt,
            "adoption": "code", "language": ["en", "de"], "wyoming": {"listen": f"127.0.0.1:{self.ports['wyoming']}"},
            "robots": {"idle": "10m", "mqtt": {"listen": f"127.0.0.1:{self.ports['robots']}"}, "udp": f"127.0.0.1:{self.ports['robots']}"},
            "brains": [{"kind": "reflex", "sentences": str(sentences)}], "mdns": {"enabled": False}}))
        self.start("perch", root / "bin/perch", "serve", "--config", config, "--data", self.folder / "perch")

    def start_broker(self):
        """Starts mosquitto, which keeps nothing on disk."""
        (self.folder / "password").write_text("the password of this run")
        users, config = self.folder / "users", self.folder / "mosquitto.conf"
        subprocess.run(["mosquitto_passwd", "-b", "-c", users, "perch", "the password of this run"], check=True)
        config.write_text(f"listener {self.ports['mqtt']} 127.0.0.1\nallow_anonymous false\npassword_file {users}\npersistence false\nuser root\n")
        self.start("mosquitto", find_mosquitto(), "-c", config)

    def password(self):
        """Returns the password of the broker."""
        return (self.folder / ("password" if self.broker == "mosquitto" else "perch/mqtt-password")).read_text().strip()

    def broker_process(self):
        """Returns the ID of the broker's process: mosquitto's, or that of Perch's child."""
        if self.broker == "mosquitto":
            return self.running["mosquitto"].pid
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                parent = int((path.parent / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == self.running["perch"].pid and b"mqtt-broker" in path.read_bytes():
                    return int(path.parent.name)
        raise FileNotFoundError("Perch has no broker")

    def robot(self, *arguments, mac=ROBOT):
        """Starts a simulated robot."""
        self.talks += 1
        name = f"robot{self.talks}"
        process = self.start(name, root / "bin/perch-tools", "robot", "--ota", self.url("perch", "/xiaozhi/ota/"), "--mac", address(mac),
                             "--flash", self.folder / f"{mac}.json", "--transcript", self.folder / f"{name}.jsonl", *arguments)
        return Robot(self, name, process)


class Robot:
    """A simulated robot that runs."""

    def __init__(self, programs, name, process):
        self.programs, self.name, self.process = programs, name, process

    def messages(self, sender):
        """Returns the texts that the robot or the server has sent, as JSON."""
        path = self.programs.folder / f"{self.name}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):  # the last line may be incomplete
                frame = json.loads(line)
                if frame["from"] == sender and "json" in frame:
                    found.append(frame["json"])
        return found

    def spoken(self):
        """Returns what the robot was told to say, as one text."""
        return " ".join(m.get("text", "") for m in self.messages("server") if m["type"] == "tts" and m.get("state") == "sentence_start")

    def calls(self):
        """Returns the calls of the robot's tools, as (name, arguments)."""
        payloads = [m["payload"] for m in self.messages("server") if m["type"] == "mcp"]
        return [(p["params"]["name"], p["params"].get("arguments", {})) for p in payloads if p.get("method") == "tools/call"]

    def has_ended(self):
        return self.process.poll() is not None

    def end(self):
        """Switches the robot off."""
        self.programs.stop(self.name, signal.SIGINT)


def find_mosquitto():
    """Returns the path of mosquitto, or None."""
    return shutil.which("mosquitto", path=os.environ["PATH"] + ":/usr/sbin")
