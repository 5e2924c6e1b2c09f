"""What Home Assistant makes of Perch's announcements, and how the states follow a talk."""

import re
import time

from client import PATIENCE, until
from programs import ROBOT

STACK_CHAN = "stack_chan_e4f5"  # how the IDs of the robot's entities begin


async def adopt(run):
    """Adopts the robot by the code that it shows."""
    robot = run.programs.robot()
    code = await until("the robot's code", lambda: re.search(r"\b\d{6}\b", run.programs.log(robot.name)))
    await run.ha.await_state("sensor.perch_robots_not_adopted", "1")
    began = time.monotonic()
    await run.ha.act("text.set_value", "text.perch_adopt_by_code", value=code.group())
    await until("the robot's device", lambda: run.ha.state(f"sensor.{STACK_CHAN}_agent_state"))
    print(f"the robot is a device {1000 * (time.monotonic() - began):.0f} ms after its code was entered")
    await until("the robot goes on", robot.has_ended)


async def talk(run, *sentences):
    """Has a person talk with the robot, and returns the robot and the changes meanwhile."""
    since = time.monotonic()
    robot = run.programs.robot(*[argument for s in sentences for argument in ("--say", s)])
    await until("the talk", robot.has_ended, PATIENCE + 15 * len(sentences))
    await run.ha.await_state(f"binary_sensor.{STACK_CHAN}_talking", "off")
    await run.ha.await_state(f"sensor.{STACK_CHAN}_agent_state", "idle")
    await run.ha.await_state("sensor.perch_robots_connected", "0")
    run.check(robot.process.returncode == 0, f"the robot was not answered: {run.programs.log(robot.name)}")
    return robot, [c for c in run.ha.changes if c.at >= since]


def contains(sequence, part):
    """Reports whether part is in a sequence, in order, with anything between."""
    rest = iter(sequence)
    return all(any(x == wanted for x in rest) for wanted in part)


async def follow(run):
    """Compares the changes of the entities with what happens in a talk."""
    await talk(run, "hello")  # in which the robot lists its tools
    _, changes = await talk(run, "what time is it", "set the volume to forty percent", "set the brightness to thirty percent",
                            "look left", "turn the lights blue", "i love you")
    by_entity = {}
    for c in changes:
        value = c.attributes.get("event_type") if c.entity.startswith("event.") else c.state
        if c.entity.startswith("light."):
            value = f"{c.state} {c.attributes.get('rgb_color')}"
        if by_entity.setdefault(c.entity, [None])[-1] != value:
            by_entity[c.entity].append(value)
    for entity, values in sorted(by_entity.items()):
        print(f"  {entity:42} {' '.join(map(str, values[1:]))}")
    turn = ["listening", "thinking", "speaking", "attention"]
    expected = {
        "sensor.{}_agent_state": turn * 6 + ["idle"],
        "binary_sensor.{}_talking": ["on", "off"],
        "binary_sensor.{}_connected": ["on", "off"],
        "event.{}_conversation": ["heard", "replied", "tool_called", "turn_ended"],
        "number.{}_volume": ["40"],
        "number.{}_brightness": ["30"],
        "light.{}_lights": ["on [0, 0, 255]"],
        "select.{}_emotion": ["happy"],
        "sensor.perch_robots_connected": ["1", "0"],
    }
    for entity, values in expected.items():
        entity = entity.format(STACK_CHAN)
        seen = by_entity.get(entity, [None])[1:]
        run.check(contains(seen, values), f"{entity} was {seen} during the talk, which does not contain {values}")
    yaw = by_entity.get(f"number.{STACK_CHAN}_head_yaw", ["0"])[-1]
    run.check(float(yaw) < 0, f"the head's yaw is {yaw} after it has looked left")


async def compare(run):
    """Prints the entities as Home Assistant reports them, and compares them with the announcements."""
    announced = await run.announcements()
    await until("all entities", lambda: has_all(run, announced))
    entities, devices = await run.ha.entities(), await run.ha.devices()
    print(f"  {'entity':48} {'state':26} {'class':13} {'unit':4} {'category':10} {'icon':30} device")
    for e in sorted(entities, key=lambda e: e["entity_id"]):
        c, device = announced.get(e["unique_id"]), devices.get(e["device_id"])
        state, a = run.ha.states.get(e["entity_id"], ("(none)", {}))
        if device is None:
            continue  # of the house, not of Perch
        name = device["name_by_user"] or device["name"]
        print(f"  {e['entity_id']:48} {state[:26]:26} {a.get('device_class') or '':13} {a.get('unit_of_measurement') or '':4} "
              f"{e['entity_category'] or '':10} {a.get('icon') or '':30} {name}")
        if c is None:
            run.fault(f"{e['entity_id']} is not announced any more")
            continue
        wanted = {"friendly_name": f"{c['device_name']} {c['name']}", "icon": c.get("icon"), "device_class": c.get("device_class"),
                  "unit_of_measurement": c.get("unit_of_measurement"), "options": c.get("options"), "event_types": c.get("event_types"),
                  "state_class": c.get("state_class")}
        if c["platform"] in ("number", "text"):
            wanted |= {"min": c["min"], "max": c["max"]}
        different = {k: (a.get(k), v) for k, v in wanted.items() if a.get(k) != v}
        run.check(not different, f"{e['entity_id']} is not as announced: {different}")
        run.check(e["entity_category"] == c.get("entity_category"), f"{e['entity_id']} has the category {e['entity_category']}")
    run.check(announced.keys() <= {e["unique_id"] for e in entities},
              f"Home Assistant lacks {announced.keys() - {e['unique_id'] for e in entities}}")
    for device in devices.values():
        if any(e["device_id"] == device["id"] for e in entities):
            print(f"  device {device['name']}: {device['manufacturer']}, {device['model']}, {device['sw_version']}, {device['configuration_url']}")
    ours = [e for e in entities if e["device_id"]]
    print(f"{len(ours)} entities of {len({e['device_id'] for e in ours})} devices; {len(announced)} are announced")


async def has_all(run, announced):
    return announced.keys() <= {e["unique_id"] for e in await run.ha.entities()}


async def diagnose(run):
    """Downloads Home Assistant's diagnostics of the integration, which must not contain the password."""
    entry = next(e for e in await run.ha.ask("config_entries/get") if e["domain"] == "mqtt")
    diagnostics = await run.ha.call("GET", f"/api/diagnostics/config_entry/{entry['entry_id']}")
    devices = diagnostics["data"]["devices"]
    print(f"Home Assistant's diagnostics of MQTT have {sum(len(d['entities']) for d in devices)} entities of {len(devices)} devices")
    run.check(run.programs.password() not in str(diagnostics), "the diagnostics contain the password")


async def rename(run):
    """Renames the robot in Perch and in Home Assistant, and gives it an area."""
    ha = run.ha
    await ha.act("text.set_value", f"text.{STACK_CHAN}_name", value="Kitchen")
    device = await until("the device's new name", lambda: ha.device("Kitchen"))
    await until("the entities' new names", lambda: ha.attribute(f"sensor.{STACK_CHAN}_agent_state", "friendly_name") == "Kitchen Agent state")
    area = await ha.ask("config/area_registry/create", name="Attic")
    await ha.ask("config/device_registry/update", device_id=device["id"], area_id=area["area_id"], name_by_user="Robbie")
    await until("the owner's name", lambda: ha.attribute(f"sensor.{STACK_CHAN}_agent_state", "friendly_name") == "Robbie Agent state")
    await ha.act("text.set_value", f"text.{STACK_CHAN}_name", value="Pantry")
    device = await until("Perch's newer name", lambda: ha.device("Pantry"))
    run.check((device["name_by_user"], device["area_id"]) == ("Robbie", area["area_id"]), f"the owner's choices are gone: {device}")
    await ha.ask("config/device_registry/update", device_id=device["id"], name_by_user=None)
    await ha.act("text.set_value", f"text.{STACK_CHAN}_name", value="")
    await until("the default name", lambda: ha.device("Stack-chan E4F5"))
    print("the names of Perch and of Home Assistant are shown, Home Assistant's first; the area and the entities' IDs stay")


async def remove(run):
    """Removes the robot: in Home Assistant, where it comes back, and in Perch, where it is forgotten."""
    ha, entity = run.ha, f"sensor.{STACK_CHAN}_agent_state"
    device = await ha.device("Stack-chan E4F5")
    await ha.ask("config/device_registry/remove_config_entry", device_id=device["id"], config_entry_id=device["config_entries"][0])
    await until("the device is gone", lambda: ha.state(entity) is None)
    began = time.monotonic()
    await run.settle()
    run.ends += 1
    run.programs.stop("perch")
    run.programs.start_perch()
    await until("the device is announced again", lambda: ha.state(entity))
    print(f"removed in Home Assistant, it came back {time.monotonic() - began:.1f} s after a restart of Perch")
    await ha.act("mqtt.publish", topic="perch/bridge/request/forget", payload=f'{{"robot": "{ROBOT}"}}')
    await until("the forgotten robot is gone", lambda: ha.state(entity) is None)
    await until("its device too", lambda: device_is_gone(ha))
    print("forgotten by Perch, it is gone with all its entities")


async def device_is_gone(ha):
    return await ha.device("Stack-chan E4F5") is None
