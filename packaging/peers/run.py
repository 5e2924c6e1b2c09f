"""A run: its programs, its user of Home Assistant, and what is wrong so far."""

import asyncio
import contextlib
import json
import pathlib
import re
import shutil
import time

import aiohttp
import aiohttp.web

from client import START, HomeAssistant, Timeout, until

HERE = pathlib.Path(__file__).resolve().parent

# Home Assistant's configuration: what an owner has besides Perch, in the names of docs/home-assistant.md.
CONFIGURATION = """
http: {server_host: 127.0.0.1, server_port: PORT}
api:
automation: !include automations.yaml
config:
conversation:
diagnostics:
ffmpeg: {ffmpeg_bin: FFMPEG}
frontend:
media_source:
mobile_app:
onboarding:
recorder:
sun:
"""

# The rest of the house.
HOUSE = """
input_boolean: {washer: , doorbell: , garage: , door: , agent_works: , seen: , touched: , heard: }
storyteller:
template:
  - binary_sensor:
      - {name: Washer running, state: "{{ is_state('input_boolean.washer', 'on') }}"}
      - {name: Doorbell, state: "{{ is_state('input_boolean.doorbell', 'on') }}"}
      - {name: Garage door, state: "{{ is_state('input_boolean.garage', 'on') }}"}
mqtt:
  - light: {name: Desk, unique_id: house_desk, command_topic: house/desk, schema: json, brightness: true, supported_color_modes: [rgb]}
  - cover: {name: Garage, unique_id: house_garage, command_topic: house/garage}
scene:
  - {name: Bright, entities: {light.desk: {state: "on", brightness: 255, color_mode: rgb, rgb_color: [255, 255, 255]}}}
  - {name: Cosy, entities: {light.desk: {state: "on", brightness: 60, color_mode: rgb, rgb_color: [255, 180, 100]}}}
"""


class Run:
    """A run of one release of Home Assistant with Perch and one broker."""

    def __init__(self, installation, programs, session):
        self.installation, self.programs = installation, programs
        self.ha = HomeAssistant(session, programs.url("homeassistant", ""))
        self.phone = Phone(self)
        self.faults = []
        self.ends = 0  # of the connection between Home Assistant and the broker
        self.began = time.monotonic()

    @contextlib.asynccontextmanager
    async def step(self, title):
        """Runs a part, whose failure does not end the run."""
        print(f"\n[{time.monotonic() - self.began:.0f} s] {title}", flush=True)
        try:
            yield
        except (Timeout, aiohttp.ClientError, AssertionError, KeyError, TypeError, AttributeError) as e:
            self.fault(f"{title}: {type(e).__name__} {e}")

    @contextlib.asynccontextmanager
    async def step_of(self, title):
        """Runs a small part of a step, which calls did."""
        try:
            yield
        except (Timeout, aiohttp.ClientError, AssertionError, KeyError, AttributeError) as e:
            self.fault(f"{title}: {type(e).__name__} {e}")
        else:
            print(f"  {self.took:6.0f} ms  {title}", flush=True)

    def did(self, milliseconds):
        """Keeps how long the current part took."""
        self.took = milliseconds

    def fault(self, text):
        print("FAULT:", text, flush=True)
        self.faults.append(text)

    def check(self, right, text):
        """Reports a fault if something is not right."""
        if not right:
            self.fault(text)

    def start_home_assistant(self, house=HOUSE):
        """Starts Home Assistant, in a house with these entities."""
        config = self.programs.folder / "config"
        if not config.exists():
            (config / "www").mkdir(parents=True)  # must exist when Home Assistant starts
            shutil.copytree(HERE / "storyteller", config / "custom_components/storyteller")
            (config / "automations.yaml").write_text("[]")
            (config / "configuration.yaml").write_text(
                CONFIGURATION.replace("PORT", str(self.programs.ports["homeassistant"])).replace("FFMPEG", str(self.installation.ffmpeg())) + house)
        self.programs.start("homeassistant", self.installation.venv / "bin/python", "-m", "homeassistant", "--config", config,
                            "--skip-pip", "--log-no-color")

    async def set_up(self, house=HOUSE):
        """Starts everything, and sets Home Assistant up as an owner does."""
        if self.programs.broker == "mosquitto":
            self.programs.start_broker()
        self.programs.start_perch()
        self.start_home_assistant(house)
        began = time.monotonic()
        await until("Home Assistant's first page", lambda: self.ha.call("GET", "/api/onboarding"), START)
        await self.ha.create_user()
        password = await until("the broker's password", self.programs.password)
        await until("Home Assistant has started", self.ha.is_running, START)
        print(f"Home Assistant has started after {time.monotonic() - began:.1f} s", flush=True)
        await self.ha.add("mqtt", broker="127.0.0.1", port=self.programs.ports["mqtt"], username="perch", password=password)
        await self.ha.connect()
        with contextlib.suppress(Timeout):  # 2026.11 ends after five minutes with an address that nobody has confirmed
            await self.ha.ask("http/config/promote")

    async def announcements(self):
        """Returns the announced components by unique ID, each with the name of its device, as Home Assistant listens to topics."""
        found = {}

        def read(message):
            if message["payload"]:
                announced = json.loads(message["payload"])
                found.update({c["unique_id"]: {**c, "device_name": announced["device"]["name"]} for c in announced["components"].values()
                              if "unique_id" in c})

        await self.ha.subscribe(read, "mqtt/subscribe", topic="homeassistant/device/+/config")
        await until("announcements", lambda: found)
        return found

    async def settle(self):
        """Waits until Home Assistant has greeted the broker, 5 s after the last announcement: it logs an error if it is cut off before."""
        await asyncio.sleep(6)

    def expected(self, complaint):
        """Reports whether a complaint is about what the run itself has done: it has ended the broker, deleted a device, for
        which Home Assistant removes the announcement once for each entity, ended Perch, whose Wyoming server 2026.11 asks now and
        then, been slow on a busy machine, or used a release that knows no devices by MQTT."""
        first = complaint.splitlines()[0]
        if first.endswith("Error returned from MQTT server: The connection was lost."):
            self.ends -= 1
            return self.ends >= 0
        return any(part in first for part in ("mqtt.discovery] No device components to cleanup for", "helpers.entity] Updating state for",
                                              "bootstrap] Waiting for integrations to complete setup", "setup] Setup of",
                                              "mqtt.discovery] Integration device is not supported",
                                              "wyoming.coordinator] Error fetching 127.0.0.1:"))

    def complaints(self):
        """Returns the warnings and errors in Home Assistant's log, each with its traceback and without our own folders."""
        log = self.programs.log("homeassistant").replace(str(self.programs.folder), "").replace(str(self.installation.venv), "")
        records = re.split(r"(?m)^(?=\d{4}-\d\d-\d\d \S+ [A-Z]+ \()", log)
        return [r.strip() for r in records if re.match(r"\S+ \S+ (WARNING|ERROR|CRITICAL) ", r)]


class Phone:
    """A phone with Home Assistant's app: it is registered, gets notifications and sends which button is pressed."""

    def __init__(self, run):
        self.run, self.notifications, self.webhook = run, [], ""

    async def register(self):
        """Registers the phone, which makes notify.mobile_app_your_phone."""
        app = aiohttp.web.Application()
        app.router.add_post("/push", self.receive)
        server = aiohttp.web.AppRunner(app)
        await server.setup()
        await aiohttp.web.TCPSite(server, "127.0.0.1", self.run.programs.ports["push"]).start()
        registered = await self.run.ha.call(
            "POST", "/api/mobile_app/registrations", device_id="phone", app_id="peers", app_name="Peers", app_version="1", device_name="Your phone",
            manufacturer="Perch", model="Test", os_name="Test", os_version="1", supports_encryption=False,
            app_data={"push_token": "token", "push_url": self.run.programs.url("push", "/push")})
        self.webhook = registered["webhook_id"]

    async def receive(self, request):
        self.notifications.append((time.monotonic(), await request.json()))
        limits = {"successful": 1, "errors": 0, "maximum": 500, "resetsAt": "2100-01-01T00:00:00.000Z"}
        return aiohttp.web.json_response({"rateLimits": limits}, status=201)

    async def press(self, action):
        """Presses a button of a notification."""
        async with self.run.ha.session.post(f"{self.run.ha.url}/api/webhook/{self.webhook}", json={
                "type": "fire_event", "data": {"event_type": "mobile_app_notification_action", "event_data": {"action": action}}}) as response:
            assert response.status == 200, await response.text()

    def notified(self, since, part):
        """Returns the first notification since a time that has a text, with the time, or None."""
        return next(((at, n) for at, n in self.notifications if at >= since and part in n.get("message", "")), None)
