"""A client of Home Assistant's interfaces for programs, as its pages in a browser are one."""

import asyncio
import contextlib
import datetime
import json
import time
from typing import NamedTuple

import aiohttp

PATIENCE = 60  # seconds in which something happens, on a busy machine too
START = 300  # the same for Home Assistant's start


class Timeout(Exception):
    """Something that did not happen in time."""


class Change(NamedTuple):
    """A change of an entity's state."""
    at: float  # time.monotonic when it happened
    entity: str
    state: str
    attributes: dict


async def until(what, condition, seconds=PATIENCE):
    """Calls condition, which may be a coroutine function, until it returns a true value, and returns that."""
    began = time.monotonic()
    while True:
        with contextlib.suppress(aiohttp.ClientError, OSError):
            value = condition()
            if asyncio.iscoroutine(value):
                value = await value
            if value:
                return value
        waited = time.monotonic() - began
        if waited > seconds:
            raise Timeout(f"{what}: not within {seconds} s")
        await asyncio.sleep(min(0.02 + waited / 50, 0.5))  # what takes long is not asked for all the time


def initial(field):
    """Returns what a field of a dialog shows at first."""
    suggested = (field.get("description") or {}).get("suggested_value")
    select = field.get("selector", {}).get("select")
    return field.get("default", suggested if suggested is not None else select["options"][0] if select else False)


class HomeAssistant:
    """A user of Home Assistant."""

    def __init__(self, session, url):
        self.session, self.url, self.token, self.refresh_token = session, url, "", ""
        self.socket = self.reader = None
        self.number = 0
        self.answers = {}  # futures, by the number of the command
        self.handlers = {}  # functions that get the events of a subscription, by its number
        self.states = {}  # (state, attributes), by entity
        self.changes = []  # in the order of their arrival

    async def call(self, method, path, **body):
        """Sends a request to the REST API, and returns the answer."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        async with self.session.request(method, self.url + path, json=body or None, headers=headers) as response:
            if response.status >= 300:
                raise aiohttp.ClientError(f"{path}: {response.status} {await response.text()}")
            return await response.json()

    async def is_running(self):
        """Reports whether Home Assistant has started completely."""
        return (await self.call("GET", "/api/config"))["state"] == "RUNNING"

    async def create_user(self):
        """Creates the owner, as the first page of Home Assistant does, and logs in."""
        client = self.url + "/"
        user = await self.call("POST", "/api/onboarding/users", client_id=client, name="Owner", username="owner", password="owner of this", language="en")
        form = {"grant_type": "authorization_code", "code": user["auth_code"], "client_id": client}
        async with self.session.post(self.url + "/auth/token", data=form) as response:
            tokens = await response.json()
        self.token, self.refresh_token = tokens["access_token"], tokens["refresh_token"]

    async def add(self, integration, **settings):
        """Adds an integration by its dialog, and returns the entry."""
        flow = await self.call("POST", "/api/config/config_entries/flow", handler=integration)
        for section in (field for field in flow["data_schema"] if field.get("type") == "expandable"):  # is left as it is
            settings[section["name"]] = {field["name"]: initial(field) for field in section["schema"] if field.get("required")}
        result = await self.call("POST", "/api/config/config_entries/flow/" + flow["flow_id"], **settings)
        if result["type"] != "create_entry":
            raise Timeout(f"{integration} was not added: {result}")
        return result["result"]

    async def connect(self):
        """Opens the WebSocket, and follows all states."""
        self.socket = await self.session.ws_connect(self.url.replace("http", "ws", 1) + "/api/websocket", max_msg_size=0)
        await self.socket.receive_json()
        await self.socket.send_json({"type": "auth", "access_token": self.token})
        greeting = await self.socket.receive_json()
        if greeting["type"] != "auth_ok":
            raise aiohttp.ClientError(str(greeting))
        self.answers, self.handlers = {}, {}
        self.reader = asyncio.create_task(self.read())
        await self.subscribe(self.record, "subscribe_events", event_type="state_changed")
        self.states = {s["entity_id"]: (s["state"], s["attributes"]) for s in await self.ask("get_states")}

    def record(self, event):
        """Keeps a change of a state."""
        entity, new = event["data"]["entity_id"], event["data"]["new_state"]
        if new is None:
            self.states.pop(entity, None)
            return
        self.states[entity] = new["state"], new["attributes"]
        age = time.time() - datetime.datetime.fromisoformat(new["last_updated"]).timestamp()  # Home Assistant's clock is ours
        self.changes.append(Change(time.monotonic() - age, entity, new["state"], new["attributes"]))

    async def read(self):
        """Passes each message to whom it is for, until the connection ends."""
        async for frame in self.socket:
            for message in (m if isinstance(m := json.loads(frame.data), list) else [m]):
                if message["type"] == "event" and message["id"] in self.handlers:
                    self.handlers[message["id"]](message["event"])
                elif message["type"] == "result" and message["id"] in self.answers:
                    self.answers.pop(message["id"]).set_result(message)
        for answer in self.answers.values():
            answer.set_exception(aiohttp.ClientError("the connection has ended"))

    async def ask(self, kind, **arguments):
        """Sends a command and returns its result."""
        self.number += 1
        answer = self.answers[self.number] = asyncio.get_running_loop().create_future()
        await self.socket.send_json({"id": self.number, "type": kind, **arguments})
        message = await asyncio.wait_for(answer, 60)
        if not message["success"]:
            raise Timeout(f"{kind} {arguments}: {message['error']}")
        return message["result"]

    async def subscribe(self, handler, kind, **arguments):
        """Sends a command whose events go to handler."""
        self.handlers[self.number + 1] = handler
        return await self.ask(kind, **arguments)

    async def act(self, action, entity=None, **data):
        """Performs an action, such as light.turn_on."""
        domain, service = action.split(".")
        await self.ask("call_service", domain=domain, service=service, service_data=data, **({"target": {"entity_id": entity}} if entity else {}))

    def state(self, entity):
        """Returns the state of an entity, or None."""
        return self.states.get(entity, (None, {}))[0]

    def attribute(self, entity, name):
        return self.states.get(entity, (None, {}))[1].get(name)

    def changed(self, entity, since, accept=lambda _: True):
        """Returns the first change of an entity since a time that accept takes, or None."""
        return next((c for c in self.changes if c.entity == entity and c.at >= since and accept(c)), None)

    async def await_state(self, entity, state):
        await until(f"{entity} is {state!r}, not {self.state(entity)!r}", lambda: self.state(entity) == state)

    async def entities(self, platform="mqtt"):
        """Returns the registered entities of a platform."""
        return [e for e in await self.ask("config/entity_registry/list") if e["platform"] == platform]

    async def devices(self):
        """Returns the registered devices, by ID."""
        return {d["id"]: d for d in await self.ask("config/device_registry/list")}

    async def device(self, name):
        """Returns the device with a name, or None."""
        return next((d for d in (await self.devices()).values() if name in (d["name"], d["name_by_user"])), None)
