"""The automations of the documentation, the blueprints and device triggers, each with its cause and its effect."""

import asyncio
import datetime
import json
import pathlib
import re
import time

import yaml

from client import Timeout, until
from entities import STACK_CHAN, talk
from programs import ROBOT

root = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = ["docs/home-assistant.md", "docs/how-to/home-assistant-asks.md"]


def examples():
    """Returns the automations of the documentation, by their aliases."""
    found = {}
    for page in PAGES:
        for text in re.findall("```yaml\n(.*?)```", (root / page).read_text(), re.DOTALL):
            block = yaml.safe_load(text)
            if "triggers" in block:
                found[block["alias"]] = block
    return found


class Scenarios:
    """Causes of automations, and their effects. A scenario returns what it has done and when it began and ended."""

    def __init__(self, run):
        self.run, self.ha, self.robot = run, run.ha, None

    def entity(self, platform, key):
        return f"{platform}.{STACK_CHAN}_{key}"

    async def turn(self, helper, on=True):
        """Switches a helper, the cause of an automation, and returns when it was switched."""
        since = time.monotonic()
        await self.ha.act("input_boolean.turn_on" if on else "input_boolean.turn_off", f"input_boolean.{helper}")
        return (await until(helper, lambda: self.ha.changed(f"input_boolean.{helper}", since))).at

    async def effect(self, what, entity, since, accept=lambda _: True):
        """Waits for the change of an entity since a time, and returns when it was."""
        return (await until(what, lambda: self.ha.changed(entity, since, accept))).at

    async def heard(self, robot, text):
        """Waits until a robot says a text, and returns when it does."""
        await until(f"the robot says {text!r}", lambda: text in robot.spoken())
        return time.monotonic()

    async def connected(self):
        """Returns a robot whose channel is open."""
        robot = self.run.programs.robot("--stay")
        await self.ha.await_state(self.entity("sensor", "agent_state"), "listening")
        return robot

    async def ends(self, robot):
        """Switches a robot off."""
        robot.end()
        await self.ha.await_state(self.entity("binary_sensor", "talking"), "off")

    async def new_robot(self):
        since = time.monotonic()
        robot = self.run.programs.robot(mac="a0b1c2d3e4f6")
        began = await self.effect("the event", "event.perch_new_robot", since)
        at, notification = await until("the phone's notification", lambda: self.run.phone.notified(since, "has come from"))
        action = notification["data"]["actions"][0]["action"]
        await self.run.phone.press(action)
        await until("the robot's device", lambda: self.ha.device("Stack-chan E4F6"))
        adopted = time.monotonic()
        await until("the robot goes on", robot.has_ended)
        await self.ha.act("mqtt.publish", topic="perch/bridge/request/forget", payload='{"robot": "a0b1c2d3e4f6"}')
        await until("its entities are gone", lambda: self.ha.state("sensor.stack_chan_e4f6_agent_state") is None)
        return f"a new robot came: the phone says {notification['message']!r}; {action} was pressed, adopted {1000 * (adopted - at):.0f} ms later", began, at

    async def ask_permission(self, command):
        """Asks for a permission as a coding agent does, and returns the answer."""
        body = {"hook_event_name": "PermissionRequest", "session_id": "one", "tool_name": "Bash", "tool_input": {"command": command}}
        async with self.ha.session.post(self.run.programs.url("local", "/permission"), json=body) as response:
            return await response.text()

    async def agent_waits(self):
        await self.ha.act("light.turn_on", "light.desk", rgb_color=[10, 200, 30], brightness=77)
        since = time.monotonic()
        answer = asyncio.create_task(self.ask_permission("make test"))
        began = await self.effect("the agent waits", "sensor.perch_agents_waiting", since, lambda c: c.state == "1")
        red = await self.effect("the lamp is red", "light.desk", since, lambda c: c.attributes.get("rgb_color") == [255, 0, 0])
        await until("the question", lambda: self.ha.state("sensor.coding_1_question") not in (None, "unknown", "unavailable"))
        question = self.ha.state("sensor.coding_1_question")
        await until("the button Allow", lambda: self.ha.state("button.coding_1_allow") not in (None, "unavailable"))
        await asyncio.sleep(1.2)  # it does nothing in the question's first second
        pressed = time.monotonic()
        await self.ha.act("button.press", "button.coding_1_allow")
        text = await asyncio.wait_for(answer, 60)
        assert '"allow"' in text, text
        back = await self.effect("the lamp is as before", "light.desk", pressed, lambda c: c.attributes.get("rgb_color") == [10, 200, 30])
        return (f"the agent asks {question!r}, the lamp is red; Allow was pressed, the agent went on, "
                f"the lamp was as before {1000 * (back - pressed):.0f} ms later"), began, red

    async def agent_works(self):
        async def report(**body):
            async with self.ha.session.post(self.run.programs.url("local", "/state"), json={"session_id": "one", **body}) as response:
                assert response.status < 300, await response.text()
        since = time.monotonic()
        await report(state="working", event="PreToolUse", tool_name="Bash", tool_use_id="one")
        began = await self.effect("the agent works", "sensor.coding_1_agent_state", since, lambda c: c.state == "working")
        on = await self.effect("the helper is on", "input_boolean.agent_works", since, lambda c: c.state == "on")
        rest = time.monotonic()
        await report(state="idle")
        off = await self.effect("the helper is off", "input_boolean.agent_works", rest, lambda c: c.state == "off")
        return f"the agent works with {self.ha.state('sensor.coding_1_tool')}: the helper is on, and off {1000 * (off - rest):.0f} ms after its end", began, on

    async def listens(self):
        await self.ha.act("light.turn_on", "light.desk", brightness=200)
        since = time.monotonic()
        await talk(self.run, "who are you")
        began = await self.effect("the robot listens", self.entity("sensor", "agent_state"), since, lambda c: c.state == "listening")
        dim = await self.effect("the lamp is dim", "light.desk", began, lambda c: c.attributes.get("brightness") == 51)
        await self.effect("the lamp is bright", "light.desk", dim, lambda c: c.attributes.get("brightness") == 255)
        return "the robot listens: the lamp is dimmed, and bright when the robot is idle", began, dim

    async def washing(self):
        await self.turn("washer")
        began = await self.turn("washer", on=False)
        queued = await self.effect("the sentence waits", self.entity("event", "conversation"), began, lambda c: c.attributes.get("event_type") == "queued")
        robot, _ = await talk(self.run, "look up", "who are you")
        assert "The washing is done." in robot.spoken(), robot.spoken()
        return "the washer stops while the robot is away: the sentence waits, and is said in the next talk", began, queued

    async def sense(self, name):
        await self.ha.act("mqtt.publish", topic=f"perch/{ROBOT}/perception/set", payload=json.dumps({"name": name}))

    async def hold(self, seconds):
        """Has a hand on the robot's head for a while, and returns when its end is seen."""
        since = time.monotonic()
        await self.sense("head_pet_started")
        await asyncio.sleep(seconds)
        await self.sense("head_pet_ended")
        return await self.effect("the touch ends", self.entity("event", "touch"), since, lambda c: str(c.attributes.get("event_type")).endswith("press_end"))

    async def hand(self):
        began = await self.hold(2.5)
        muted = await self.effect("the robot is mute", self.entity("switch", "mute"), began - 1, lambda c: c.state == "on")
        again = await self.hold(2.5)
        await self.effect("the robot is not mute", self.entity("switch", "mute"), again - 1, lambda c: c.state == "off")
        return "a hand on its head: the robot is mute; again: it is not", began, muted

    async def wrong(self):
        since = time.monotonic()
        await self.ha.act("mqtt.publish", topic=f"perch/{ROBOT}/volume/set", payload="101")
        began = await self.effect("the event", self.entity("event", "conversation"), since, lambda c: c.attributes.get("event_type") == "command_rejected")
        at, notification = await until("the phone's notification", lambda: self.run.phone.notified(since, "did not"))
        return f"a volume of 101: the phone says {notification['message']!r}", began, at

    async def doorbell(self):
        since = time.monotonic()
        robot = self.run.programs.robot("--say", "what can you do", "--say", "who are you")
        await self.effect("the robot speaks", self.entity("sensor", "agent_state"), since, lambda c: c.state == "speaking")
        began = await self.turn("doorbell")
        heard = await self.heard(robot, "Somebody is at the door.")
        await until("the talk", robot.has_ended)
        await self.turn("doorbell", on=False)
        assert "Ask me to remember where your keys are." not in robot.spoken(), "the robot has spoken on before"
        return "the doorbell rings while the robot speaks: the robot breaks off and says it", began, heard

    async def garage(self):
        await self.ha.act("cover.open_cover", "cover.garage")
        since = time.monotonic()
        robot = self.run.programs.robot("--say", "what can you do", "--say", "yes please")
        await self.effect("the robot speaks", self.entity("sensor", "agent_state"), since, lambda c: c.state == "speaking")
        await self.turn("garage")  # a question is not kept for a robot that is away
        asked = await self.heard(robot, "Shall I close it?")
        answer = await self.effect("the answer", self.entity("event", "answer"), since)
        closed = await self.effect("the garage is closed", "cover.garage", since, lambda c: c.state == "closed")
        await self.ha.act("notify.send_message", self.entity("notify", "say"), message="Done.")
        await until("the talk", robot.has_ended)
        await self.turn("garage", on=False)
        return (f"the door is open: the robot asks, hears {self.ha.attribute(self.entity('event', 'answer'), 'text')!r} "
                f"{1000 * (answer - asked):.0f} ms after it began to ask, and the garage closes"), answer, closed

    async def bright(self):
        await self.ha.act("light.turn_on", "light.desk", rgb_color=[10, 200, 30], brightness=77)
        since = time.monotonic()
        robot = self.run.programs.robot("--say", "what can you do", "--say", "make it bright")
        await self.effect("the robot speaks", self.entity("sensor", "agent_state"), since, lambda c: c.state == "speaking")
        sunset = time.monotonic() + 3
        await self.move_sunset(3)
        asked = await self.heard(robot, "Shall I make it bright or cosy?")
        answer = await self.effect("the answer", self.entity("event", "answer"), since)
        kind, text = (self.ha.attribute(self.entity("event", "answer"), a) for a in ("event_type", "text"))
        lit = await self.effect("the scene", "light.desk", answer - 1, lambda c: c.attributes.get("brightness") == 255)
        await self.ha.act("notify.send_message", self.entity("notify", "say"), message="Done.")
        await until("the talk", robot.has_ended)
        return (f"the sun sets: the robot asks {1000 * (asked - sunset):.0f} ms later, and hears {kind} {text!r}, and the scene is Bright"), answer, lit

    async def move_sunset(self, seconds):
        """Moves the house to where the sun sets in some seconds."""
        import astral
        import astral.sun
        now = datetime.datetime.now(datetime.timezone.utc)
        at, longitude = now + datetime.timedelta(seconds=seconds), 0
        for _ in range(8):
            day = (at + datetime.timedelta(hours=longitude / 15)).date()
            sunset = astral.sun.sunset(astral.Observer(0, longitude, 0), day)
            longitude = (longitude + (sunset - at).total_seconds() / 240 + 180) % 360 - 180
        await self.ha.ask("config/core/update", latitude=0, longitude=longitude, elevation=0)


SCENARIOS = {
    "The telephone asks whether a new robot is mine": Scenarios.new_robot,
    "The lamp is red while an agent waits for me": Scenarios.agent_waits,
    "A helper is on while a coding agent works": Scenarios.agent_works,
    "The lamp gives way while the robot listens": Scenarios.listens,
    "The robot says when the washing is done": Scenarios.washing,
    "A hand on its head mutes the robot": Scenarios.hand,
    "The telephone hears what the robot could not do": Scenarios.wrong,
    "The doorbell interrupts the robot": Scenarios.doorbell,
    "The robot asks whether to close the garage": Scenarios.garage,
    "The robot asks how bright it should be": Scenarios.bright,
}


async def add(run, alias, block):
    """Adds an automation as the editor does, and returns its entity."""
    ident = re.sub("[^a-z0-9]+", "_", alias.lower())
    await run.ha.call("POST", f"/api/config/automation/config/{ident}", **block)
    entity = await until("the automation", lambda: next((e for e, (_, a) in run.ha.states.items() if e.startswith("automation.") and a.get("id") == ident), None))
    await run.ha.await_state(entity, "on")
    return entity, ident


async def run_one(run, alias, block, scenario):
    """Adds an automation, has a scenario cause it, prints what it did, and removes it."""
    async with run.step_of(alias):
        entity, ident = await add(run, alias, block)
        try:
            done, began, ended = await scenario(Scenarios(run))
            assert run.ha.attribute(entity, "last_triggered"), "the automation was not triggered"
            run.did(1000 * (ended - began))
            print(f"  {alias}: {done}")
        finally:
            await run.ha.call("DELETE", f"/api/config/automation/config/{ident}")


async def run_examples(run):
    """Runs each automation of the documentation as it is written there."""
    found = examples()
    run.check(found.keys() == SCENARIOS.keys(), f"the pages' automations and the scenarios differ: {found.keys() ^ SCENARIOS.keys()}")
    for alias, block in found.items():
        for trigger in block["triggers"]:
            if trigger.get("for"):
                print(f"  {alias}: for {trigger['for']} is shortened to 1 s")
                trigger["for"] = "00:00:01"
        if alias in SCENARIOS:
            await run_one(run, alias, block, SCENARIOS[alias])


async def run_blueprints(run):
    """Imports each blueprint from Perch by its address, and uses it."""
    for name, inputs, scenario in (
            ("announce", announce_inputs, announce), ("touch_or_face", touch_inputs, touch), ("quiet_hours", quiet_inputs, quiet)):
        url = run.programs.url("perch", f"/blueprints/{name}.yaml")
        imported = await run.ha.ask("blueprint/import", url=url)
        assert not imported["validation_errors"], imported
        path = f"perch/{name}.yaml"
        await run.ha.ask("blueprint/save", domain="automation", path=path, yaml=imported["raw_data"], source_url=url)
        title = f"blueprint {imported['blueprint']['metadata']['name']!r} from {url}"
        await run_one(run, title, {"alias": title, "use_blueprint": {"path": path, "input": inputs(run)}}, scenario)


def announce_inputs(_):
    return {"what": [{"trigger": "state", "entity_id": "input_boolean.door", "to": "on"}], "robots": [f"notify.{STACK_CHAN}_say"],
            "message": "😮 The door is open since {{ now().strftime('%H:%M') }}."}


async def announce(s):
    robot = await s.connected()
    began = await s.turn("door")
    heard = await s.heard(robot, "The door is open since")
    await s.ends(robot)
    await s.turn("door", on=False)
    return f"a door opens: the robot says {robot.spoken()!r}", began, heard


def touch_inputs(_):
    return {"touch": [f"event.{STACK_CHAN}_touch"], "gestures": ["press_end"], "face": [f"binary_sensor.{STACK_CHAN}_face"], "pause": 0,
            "reaction": [{"action": "input_boolean.toggle", "target": {"entity_id": "input_boolean.touched"}}]}


async def touch(s):
    began = await s.hold(0.1)
    touched = await s.effect("the touch does something", "input_boolean.touched", began - 1)
    await s.sense("face_lost")
    await s.ha.await_state(s.entity("binary_sensor", "face"), "off")
    since = time.monotonic()
    await s.sense("face_detected")
    seen = await s.effect("the face does something", "input_boolean.touched", since)
    await s.sense("face_lost")
    return f"a short touch: the helper is switched; a face: again, after {1000 * (seen - since):.0f} ms", began, touched


def quiet_inputs(run):
    """The quiet hours begin in 12 seconds, and end 6 seconds later."""
    begin = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=12)).replace(microsecond=0)
    run.quiet = time.monotonic() + (begin - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    return {"begin": begin.strftime("%H:%M:%S"), "end": (begin + datetime.timedelta(seconds=6)).strftime("%H:%M:%S"),
            "volumes": [f"number.{STACK_CHAN}_volume"], "quiet_volume": 20, "day_volume": 70,
            "screens": [f"number.{STACK_CHAN}_brightness"], "quiet_brightness": 5, "day_brightness": 75, "mutes": [f"switch.{STACK_CHAN}_mute"]}


async def quiet(s):
    since = time.monotonic()
    robot = await s.connected()
    mute, volume = s.entity("switch", "mute"), s.entity("number", "volume")
    muted = await s.effect("the quiet hours begin", mute, since, lambda c: c.state == "on")
    low = await s.effect("the volume is low", volume, since, lambda c: c.state == "20")
    await s.effect("the quiet hours end", mute, muted, lambda c: c.state == "off")
    await s.effect("the volume is as by day", volume, muted, lambda c: c.state == "70")
    await s.ends(robot)
    levels = [given["volume"] for name, given in robot.calls() if name == "self.audio_speaker.set_volume"]
    return f"the hours begin: mute, and volume and brightness are low; they end: all is back; the robot's volume was set to {levels}", s.run.quiet, low


async def run_device_triggers(run):
    """Prints the triggers that Home Assistant offers for the robot's device, and uses one."""
    device = await run.ha.device("Stack-chan E4F5")
    triggers = await run.ha.ask("device_automation/trigger/list", device_id=device["id"])
    registered = {e["id"]: e["entity_id"] for e in await run.ha.entities()}
    for t in triggers:
        print(f"  offered: {registered.get(t.get('entity_id'), t.get('entity_id'))} {t['type']}")
    talking = next(t for t in triggers if t["type"] == "turned_on" and registered.get(t["entity_id"]) == f"binary_sensor.{STACK_CHAN}_talking")
    block = {"alias": "A helper is on once somebody has talked with the robot", "triggers": [{k: v for k, v in talking.items() if k != "metadata"}],
             "actions": [{"action": "input_boolean.turn_on", "target": {"entity_id": "input_boolean.seen"}}]}

    async def scenario(s):
        since = time.monotonic()
        await talk(run, "who are you")
        began = await s.effect("it talks", f"binary_sensor.{STACK_CHAN}_talking", since, lambda c: c.state == "on")
        on = await s.effect("the helper is on", "input_boolean.seen", since, lambda c: c.state == "on")
        return "device trigger 'Talking turned on': the helper is on", began, on

    await run_one(run, block["alias"], block, scenario)
