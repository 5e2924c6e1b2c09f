"""What a Home Assistant older than 2024.11 has of Perch: no devices, but the topics."""

import re
import time

from client import until
from entities import contains, talk
from programs import ROBOT, root

PAGE = root / "docs/home-assistant.md"


def configuration():
    """Returns the part of configuration.yaml that the documentation has for an older Home Assistant."""
    return re.search("```yaml\n# configuration.yaml\n(.*?)```", PAGE.read_text(), re.DOTALL).group(1)


async def use(run):
    """Has the robot adopted and talk, and prints what Home Assistant shows."""
    ha, state = run.ha, "sensor.stack_chan_agent_state"
    await run.set_up(configuration())
    async with run.step("what it makes of Perch"):
        robot = run.programs.robot()
        await until("the code", lambda: "code" in run.programs.log(robot.name))
        await ha.act("mqtt.publish", topic="perch/bridge/request/adopt", payload=f'{{"robot": "{ROBOT}"}}')
        await until("the robot goes on", robot.has_ended)
        await until("the robot's state", lambda: ha.state(state) == "idle")
        since = time.monotonic()
        robot = run.programs.robot("--say", "what time is it")
        await until("the talk", robot.has_ended)
        seen = [c.state for c in ha.changes if c.entity == state and c.at >= since]
        run.check(contains(seen, ["listening", "thinking", "speaking"]), f"the agent state was {seen}")
        await ha.act("mqtt.publish", topic=f"perch/{ROBOT}/say/set", payload="The washing is done.")
        robot = run.programs.robot("--say", "look up", "--say", "who are you")
        await until("the talk", robot.has_ended)
        run.check("The washing is done." in robot.spoken(), f"the robot said {robot.spoken()!r}")
        devices = [d["name"] for d in (await ha.devices()).values()]
        print(f"  devices: {devices or 'none'}; by configuration.yaml: {state} was {' '.join(seen)}, and the robot said what mqtt.publish had")
