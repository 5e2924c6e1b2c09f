"""What an owner presses, chooses and types in Home Assistant, and what the robot does."""

import asyncio
import hashlib
import json
import time

import aiohttp
import aiohttp.web

from client import until
from entities import STACK_CHAN
from programs import ROBOT, address


def entity(platform, key):
    return f"{platform}.{STACK_CHAN}_{key}"


async def use_all(run):
    """Uses each control while the robot's channel is open, and prints what came of it and when."""
    ha = run.ha
    robot = run.programs.robot("--stay")
    await ha.await_state(entity("binary_sensor", "talking"), "on")
    await ha.await_state(entity("sensor", "agent_state"), "listening")

    def called(tool, **arguments):
        return lambda: any(name == tool and arguments.items() <= given.items() for name, given in robot.calls())

    def spoken(text):
        return lambda: text in robot.spoken()

    def sent(**fields):
        return lambda: any(fields.items() <= m.items() for m in robot.messages("server"))

    def shows(entity_id, state):
        return lambda: ha.state(entity_id) == state

    def event(key, kind):
        since = time.monotonic()
        return lambda: ha.changed(entity("event", key), since, lambda c: c.attributes.get("event_type") == kind)

    uses = [
        ("notify.send_message", entity("notify", "say"), {"message": "One and two."}, spoken("One and two.")),
        ("notify.send_message", "notify.perch_announce", {"message": "Dinner is ready."}, spoken("Dinner is ready.")),
        ("button.press", "button.perch_test_notification", {}, spoken("This is a test.")),
        ("text.set_value", entity("text", "say_text"), {"value": "Three and four."}, spoken("Three and four.")),
        ("number.set_value", entity("number", "volume"), {"value": 35}, called("self.audio_speaker.set_volume", volume=35)),
        ("number.set_value", entity("number", "brightness"), {"value": 45}, called("self.screen.set_brightness", brightness=45)),
        ("number.set_value", entity("number", "head_yaw"), {"value": -20}, called("self.robot.set_head_angles", yaw=-20)),
        ("number.set_value", entity("number", "head_pitch"), {"value": 30}, called("self.robot.set_head_angles", pitch=30)),
        ("light.turn_on", entity("light", "lights"), {"rgb_color": [0, 128, 255]}, called("self.robot.set_led_color")),
        ("light.turn_off", entity("light", "lights"), {}, called("self.robot.set_led_color", red=0, green=0, blue=0)),
        ("select.select_option", entity("select", "emotion"), {"option": "sad"}, sent(type="llm", emotion="sad")),
        ("select.select_option", entity("select", "gesture"), {"option": "nod"}, called("self.robot.set_head_angles")),
        ("select.select_option", entity("select", "language"), {"option": "de"}, shows(entity("select", "language"), "de")),
        ("select.select_option", entity("select", "language"), {"option": "default"}, shows(entity("select", "language"), "default")),
        ("select.select_option", entity("select", "character"), {"option": "default"}, shows(entity("select", "character"), "default")),
        ("select.select_option", entity("select", "brain"), {"option": "reflex"}, shows(entity("select", "brain"), "reflex")),
        ("select.select_option", entity("select", "voice"), {"option": "en-gb"}, shows(entity("select", "voice"), "en-gb")),
        ("select.select_option", entity("select", "voice"), {"option": "default"}, shows(entity("select", "voice"), "default")),
        ("switch.turn_on", entity("switch", "mute"), {}, shows(entity("switch", "mute"), "on")),
        ("switch.turn_off", entity("switch", "mute"), {}, shows(entity("switch", "mute"), "off")),
        ("button.press", entity("button", "identify"), {}, sent(type="alert", status="Perch")),
        ("select.select_option", entity("select", "transport"), {"option": "mqtt"}, shows(entity("select", "transport"), "mqtt")),
        ("select.select_option", entity("select", "transport"), {"option": "websocket"}, shows(entity("select", "transport"), "websocket")),
        ("button.press", entity("button", "stop"), {}, lambda: True),
        ("button.press", entity("button", "reboot"), {}, sent(type="system", command="reboot")),
    ]
    for action, target, data, effect in uses:
        async with run.step_of(f"{action} {target} {json.dumps(data) if data else ''}"):
            began = time.monotonic()
            await ha.act(action, target, **data)
            await until(f"{action} {target}", effect)
            run.did(1000 * (time.monotonic() - began))
    robot.end()
    print("  the robot's tools were called:", ", ".join(f"{name.removeprefix('self.')} {json.dumps(given)}" for name, given in robot.calls() if given))
    await ha.await_state(entity("binary_sensor", "talking"), "off")


async def adopt_new(run):
    """Presses Adopt new robots, which leaves robots alone that show a code, and adopts such a robot by its MAC address."""
    robot = run.programs.robot(mac="a0b1c2d3e4f7")
    await run.ha.await_state("sensor.perch_robots_not_adopted", "1")
    await run.ha.act("button.press", "button.perch_adopt_new_robots")
    run.check(run.ha.state("sensor.perch_robots_not_adopted") == "1", "a robot that shows a code was adopted by the button")
    began = time.monotonic()
    await run.ha.act("text.set_value", "text.perch_adopt_by_code", value=address("a0b1c2d3e4f7"))
    await until("the device", lambda: run.ha.device("Stack-chan E4F7"))
    print(f"  another robot is a device {1000 * (time.monotonic() - began):.0f} ms after its MAC address was entered")
    await until("the robot goes on", robot.has_ended)
    await run.ha.act("mqtt.publish", topic="perch/bridge/request/forget", payload='{"robot": "a0b1c2d3e4f7"}')
    await until("its entities are gone", lambda: run.ha.state("sensor.stack_chan_e4f7_agent_state") is None)


async def restart_perch(run):
    """Presses the button that restarts Perch."""
    since = time.monotonic()
    run.ends += 1
    await run.ha.act("button.press", "button.perch_restart")
    away = (await until("Perch is away", lambda: run.ha.changed("sensor.perch_version", since, lambda c: c.state == "unavailable"))).at
    back = (await until("Perch is back", lambda: run.ha.changed("sensor.perch_version", away, lambda c: c.state != "unavailable"))).at
    print(f"  Perch was unavailable for {back - away:.1f} s")
    await until("the robot is available", lambda: run.ha.state(entity("sensor", "agent_state")) == "idle")


def firmware(version, size):
    """Returns an application for the ESP32-S3 in the format of ESP-IDF, with its checksums."""
    image = bytearray(24 + 8 + size)
    image[:4] = 0xE9, 1, 2, 0x4F
    image[12], image[23] = 9, 1
    image[24:28], image[28:32], image[32:36] = (0x3C000020).to_bytes(4, "little"), size.to_bytes(4, "little"), (0xABCD5432).to_bytes(4, "little")
    image[48:48 + len(version)], image[80:90] = version.encode(), b"stack-chan"
    image[176:208] = hashlib.sha256(version.encode()).digest()
    checksum = 0xEF
    for byte in image[32:]:
        checksum ^= byte
    image += bytes(-len(image) % 16 - 1 & 15) + bytes([checksum])
    return bytes(image + hashlib.sha256(image).digest())


async def update(run):
    """Fetches firmware into the catalogue, installs it with the update entity, and watches its progress."""
    ha, image = run.ha, firmware("9.9.9", 4_000_000)
    app = aiohttp.web.Application()
    app.router.add_get("/firmware.bin", lambda _: respond(image))
    server = aiohttp.web.AppRunner(app)
    await server.setup()
    site = aiohttp.web.TCPSite(server, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    device = await ha.device("Stack-chan E4F5")
    await ha.act("mqtt.publish", topic="perch/bridge/request/firmware", payload=json.dumps({
        "url": f"http://127.0.0.1:{port}/firmware.bin", "sha256": hashlib.sha256(image).hexdigest(), "board": device["model_id"]}))
    update_entity = entity("update", "firmware")
    await ha.await_state(update_entity, "on")
    print(f"  {update_entity}: {ha.attribute(update_entity, 'installed_version')} -> {ha.attribute(update_entity, 'latest_version')}")
    await server.cleanup()
    since = time.monotonic()
    await ha.act("update.install", update_entity)
    await until("the upgrade waits", lambda: ha.changed(entity("event", "conversation"), since, lambda c: c.attributes.get("event_type") == "queued"))
    flash = run.programs.folder / f"{ROBOT}.json"
    settings = json.loads(flash.read_text())
    offer = (await check_in(run, settings["uuid"], device["model_id"], device["sw_version"], "0123456789abcdef" * 4))["firmware"]
    async with ha.session.get(offer["url"], headers={"Connection": "close"}) as response:
        while await response.content.readany():
            await asyncio.sleep(0.1)
    settings["running"] = {"version": "9.9.9", "elf_sha256": image[176:208].hex()}
    flash.write_text(json.dumps(settings))
    await check_in(run, settings["uuid"], device["model_id"], "9.9.9", image[176:208].hex())
    await until("the new version", lambda: ha.attribute(update_entity, "installed_version") == "9.9.9")
    progress = [c.attributes.get("update_percentage") for c in ha.changes if c.entity == update_entity and c.at >= since and c.attributes.get("in_progress")]
    print(f"  progress in percent: {progress}; then {ha.state(update_entity)}, {ha.attribute(update_entity, 'installed_version')}")
    run.check(len({p for p in progress if p is not None}) > 1, f"the progress was only {progress}")
    run.check(ha.state(update_entity) == "off", f"afterwards the update is {ha.state(update_entity)}")


async def respond(body):
    return aiohttp.web.Response(body=body)


async def check_in(run, client, board, version, elf):
    """Checks in as the robot with a version of its firmware, and returns the answer."""
    body = {"version": 2, "mac_address": address(ROBOT), "uuid": client, "chip_model_name": "esp32s3", "flash_size": 16 << 20,
            "chip_info": {"model": 9, "cores": 2, "revision": 2, "features": 18},
            "application": {"name": "stack-chan", "version": version, "elf_sha256": elf},
            "partition_table": [{"label": f"ota_{i}", "type": 0, "subtype": 16 + i, "address": (1 + 40 * i) << 17, "size": 0x4F0000} for i in (0, 1)],
            "ota": {"label": "ota_0"}, "board": {"type": board, "name": board, "mac": address(ROBOT)}}
    headers = {"Device-Id": address(ROBOT), "Client-Id": client, "User-Agent": f"{board}/{version}", "Connection": "close"}
    async with run.ha.session.post(run.programs.url("perch", "/xiaozhi/ota/"), json=body, headers=headers) as response:
        return await response.json()
