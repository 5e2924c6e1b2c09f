#!/usr/bin/env python3
"""Runs a real Home Assistant beside Perch and prints the entities that it makes of Perch's
announcements by MQTT:

    packaging/peers/homeassistant.py [lock]

The script installs Home Assistant from PyPI into bin/peers, with the versions and hashes in
homeassistant.lock. It sets Home Assistant up as an owner does: it creates a user and adds the
integration MQTT, with the address of Perch's own broker. Meanwhile a simulated robot is adopted
and talks. The script fails if Home Assistant lacks an announced entity, if an entity of the
robot does not follow the talk, or if Home Assistant's log has a warning or an error about mqtt
or perch.

If Python 3.13 or PyPI is missing, the script says so and succeeds. With the argument lock it
writes homeassistant.lock for this machine, from requirements.txt.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
lock, wanted = here / "homeassistant.lock", here / "requirements.txt"
venv = root / "bin/peers/homeassistant"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(0)


def python():
    """Returns a Python that Home Assistant supports."""
    found = [shutil.which("python3.13"), *map(str, pathlib.Path.home().glob(".pyenv/versions/3.13.*/bin/python3.13"))]
    for path in filter(None, found):
        if subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return path
    skip("Home Assistant needs Python 3.13, with its module venv; Debian 13 has it")


def install(arguments, stamp):
    """Creates the environment and calls pip, unless that was done with the same requirements before."""
    done = venv / "installed"
    if stamp and done.exists() and done.read_text() == stamp:
        return
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([python(), "-m", "venv", venv], check=True)
    print("installing Home Assistant; the first time takes some minutes", flush=True)
    pip = subprocess.run([venv / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *arguments], capture_output=True, text=True)
    if pip.returncode != 0:
        print(pip.stderr)
        skip("Home Assistant could not be installed from PyPI")
    done.write_text(stamp)


def write_lock():
    """Installs the requirements and writes the lock file, with the hash of each downloaded file."""
    report = pathlib.Path(tempfile.mkdtemp()) / "report.json"
    install(["--no-deps", *[line for line in wanted.read_text().splitlines() if line.startswith("homeassistant==")]], "")
    constraints = next(venv.glob("lib/python3.*/site-packages/homeassistant/package_constraints.txt"))
    shutil.copy(constraints, report.parent)
    install(["--report", report, "--constraint", report.parent / constraints.name, "--requirement", wanted], "")
    packages = {p["metadata"]["name"].lower(): (p["metadata"]["version"], p["download_info"]["archive_info"]["hashes"]["sha256"])
                for p in json.loads(report.read_text())["install"]}
    text = "# Written by homeassistant.py lock: Python 3.13 on x86-64.\n"
    text += "".join(f"{name}=={version} --hash=sha256:{digest}\n" for name, (version, digest) in sorted(packages.items()))
    lock.write_text(text)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Peers:
    """The running programs, and the folder of their data and logs."""

    def __init__(self, folder, stack):
        self.folder, self.stack = folder, stack
        self.ports = {name: free_port() for name in ("perch", "local", "mqtt", "robots", "homeassistant")}
        self.states = []  # (entity, state) in the order of the changes

    def start(self, name, *command):
        """Starts a program, which is stopped at the end."""
        log = open(self.folder / f"{name}.log", "ab")
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)

        def stop():
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
            process.wait()

        self.stack.callback(stop)
        return process

    def start_perch(self):
        config = self.folder / "perch.yaml"
        config.write_text(json.dumps({
            "listen": [f"127.0.0.1:{self.ports['perch']}"], "local": [f"127.0.0.1:{self.ports['local']}"],
            "mqtt": {"listen": f"127.0.0.1:{self.ports['mqtt']}"},
            "robots": {"mqtt": {"listen": f"127.0.0.1:{self.ports['robots']}"}, "udp": f"127.0.0.1:{self.ports['robots']}"},
            "mdns": {"enabled": False}}))
        self.start("perch", root / "bin/perch", "serve", "--config", config, "--data", self.folder / "perch")

    def start_home_assistant(self):
        config = self.folder / "config"
        config.mkdir()
        (config / "configuration.yaml").write_text(json.dumps({
            "http": {"server_host": "127.0.0.1", "server_port": self.ports["homeassistant"]}, "api": {}, "config": {}, "onboarding": {}}))
        self.start("homeassistant", venv / "bin/python", "-m", "homeassistant", "--config", config, "--skip-pip")

    async def until(self, what, attempt, seconds=600):
        """Calls attempt until it returns a true value."""
        import aiohttp
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(aiohttp.ClientError, FileNotFoundError, AssertionError):
                if (value := await attempt()):
                    return value
            await asyncio.sleep(0.2)
        raise SystemExit(f"{what}: not within {seconds} s; the logs are in {self.folder}")

    def robot(self, *arguments):
        """Runs a simulated robot to its end."""
        ota = f"http://127.0.0.1:{self.ports['perch']}/xiaozhi/ota/"
        return self.start("robot", root / "bin/perch-tools", "robot", "--ota", ota, *arguments)


class HomeAssistant:
    """A client of Home Assistant's interfaces for programs."""

    def __init__(self, session, url):
        self.session, self.url, self.token, self.number = session, url, "", 0

    async def call(self, method, path, **body):
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        async with self.session.request(method, self.url + path, json=body or None, headers=headers) as response:
            assert response.status < 300, f"{path}: {response.status} {await response.text()}"
            return await response.json()

    async def create_user(self):
        client = self.url + "/"
        user = await self.call("POST", "/api/onboarding/users", client_id=client, name="Owner", username="owner", password="owner of this", language="en")
        form = {"grant_type": "authorization_code", "code": user["auth_code"], "client_id": client}
        async with self.session.post(self.url + "/auth/token", data=form) as response:
            self.token = (await response.json())["access_token"]

    async def add_mqtt(self, port, password):
        flow = await self.call("POST", "/api/config/config_entries/flow", handler="mqtt")
        result = await self.call("POST", "/api/config/config_entries/flow/" + flow["flow_id"], broker="127.0.0.1", port=port, username="perch", password=password)
        assert result["type"] == "create_entry", result

    async def connect(self):
        self.socket = await self.session.ws_connect(self.url.replace("http", "ws", 1) + "/api/websocket", max_msg_size=0)
        await self.socket.receive_json()
        await self.socket.send_json({"type": "auth", "access_token": self.token})
        assert (await self.socket.receive_json())["type"] == "auth_ok"

    async def ask(self, kind, **arguments):
        """Sends a command and returns its result. Events that arrive meanwhile are dropped."""
        self.number += 1
        await self.socket.send_json({"id": self.number, "type": kind, **arguments})
        while True:
            message = await self.socket.receive_json()
            if message.get("id") == self.number and message["type"] == "result":
                assert message["success"], message
                return message["result"]


async def announced(port, password):
    """Returns the unique IDs of the entities in the retained announcements of a broker."""
    import paho.mqtt.client as mqtt
    payloads = {}
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.username_pw_set("perch", password)
    client.on_message = lambda _client, _data, m: payloads.__setitem__(m.topic, m.payload)
    client.connect("127.0.0.1", port)
    client.subscribe("homeassistant/#", 1)
    client.loop_start()
    await asyncio.sleep(2)
    client.loop_stop()
    client.disconnect()
    return {c["unique_id"] for payload in filter(None, payloads.values()) for c in json.loads(payload)["components"].values()}


def print_entities(entities, devices, states):
    print(f"\n{'entity':58} {'state':24} {'class':14} {'unit':5} {'category':10} device")
    for e in sorted(entities, key=lambda e: e["entity_id"]):
        state = states.get(e["entity_id"], {"state": "(disabled)" if e["disabled_by"] else "(missing)", "attributes": {}})
        a = state["attributes"]
        print(f"{e['entity_id']:58} {state['state'][:24]:24} {a.get('device_class') or '':14} {a.get('unit_of_measurement') or '':5} "
              f"{e['entity_category'] or '':10} {devices.get(e['device_id'], '')}")


def complaints(log):
    """Returns the warnings and errors in Home Assistant's log that name mqtt or perch, each with its traceback."""
    records = re.split(r"(?m)^(?=\S+ \S+ (?:DEBUG|INFO|WARNING|ERROR|CRITICAL) )", log)
    return [r for r in records if re.match(r"\S+ \S+ (WARNING|ERROR|CRITICAL) ", r) and re.search("mqtt|perch", r, re.IGNORECASE)]


async def run(peers):
    import aiohttp
    faults = []
    peers.start_perch()
    peers.start_home_assistant()
    async with aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{peers.ports['homeassistant']}"
        ha = HomeAssistant(session, url)

        async def password():
            return (peers.folder / "perch/mqtt-password").read_text().strip()

        secret = await peers.until("Perch's password for MQTT", password)
        began = time.monotonic()
        await peers.until("Home Assistant", lambda: ha.call("GET", "/api/onboarding"))
        print(f"Home Assistant answers after {time.monotonic() - began:.0f} s", flush=True)
        await ha.create_user()
        await ha.add_mqtt(peers.ports["mqtt"], secret)
        await ha.connect()
        version = (await ha.ask("get_config"))["version"]
        robot = peers.robot("--say", "what time is it", "--say", "look left")

        async def talked():
            for s in (await ha.call("GET", "/api/states")):
                if s["entity_id"].endswith("_agent_state"):
                    entry = s["entity_id"], s["state"]
                    if entry not in peers.states:
                        peers.states.append(entry)
            return robot.poll() is not None

        await peers.until("the talk", talked)
        if robot.returncode != 0:
            faults.append("the robot was not answered: " + (peers.folder / "robot.log").read_text())
        ids = await announced(peers.ports["mqtt"], secret)

        async def made():
            entities = [e for e in await ha.ask("config/entity_registry/list") if e["platform"] == "mqtt"]
            return entities if {e["unique_id"] for e in entities} >= ids else None

        try:
            await peers.until("the entities", made, 20)
        except SystemExit:
            pass
        entities = [e for e in await ha.ask("config/entity_registry/list") if e["platform"] == "mqtt"]
        devices = {d["id"]: d["name_by_user"] or d["name"] for d in await ha.ask("config/device_registry/list")}
        states = {s["entity_id"]: s for s in await ha.call("GET", "/api/states")}
    print_entities(entities, devices, states)
    missing = ids - {e["unique_id"] for e in entities}
    if missing or not ids:
        faults.append(f"announced entities that Home Assistant does not have: {sorted(missing) or 'none is announced'}")
    seen = {state for entity, state in peers.states if "stack_chan" in entity}
    if not {"listening", "speaking"} <= seen:
        faults.append(f"the robot's agent state was only {sorted(seen)} during the talk")
    faults += complaints((peers.folder / "config/home-assistant.log").read_text())
    print(f"\nHome Assistant {version}: {len(entities)} entities of {len({e['device_id'] for e in entities})} devices; "
          f"the agent state was {', '.join(sorted(seen))}")
    return faults


def main():
    if sys.argv[1:] == ["lock"]:
        return write_lock()
    install(["--require-hashes", "--no-deps", "--requirement", lock], hashlib.sha256(lock.read_bytes()).hexdigest())
    if pathlib.Path(sys.prefix) != venv:
        os.execv(venv / "bin/python", [venv / "bin/python", __file__])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="perch-peers-"))
    with contextlib.ExitStack() as stack:
        faults = asyncio.run(run(Peers(folder, stack)))
    for fault in faults:
        print("FAULT:", fault)
    if faults:
        sys.exit(f"{len(faults)} faults; the logs are in {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
