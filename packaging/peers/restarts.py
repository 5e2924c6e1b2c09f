"""Restarts and kills: afterwards every entity is available, and follows again."""

import os
import signal
import time

from client import START, until
from entities import STACK_CHAN, contains, talk


async def restart_all(run):
    """Ends each program with a signal and by killing it, and starts it again."""
    names = ["Perch", "Home Assistant", "the broker"]
    for name in names:
        for by in (signal.SIGTERM, signal.SIGKILL):
            embedded = name == "the broker" and run.programs.broker == "embedded"
            if embedded and by == signal.SIGTERM:
                continue  # Perch ends it only when it ends itself
            async with run.step(f"{name} {'is killed' if by == signal.SIGKILL else 'restarts'}"):
                await restart(run, name, by)


async def restart(run, name, by):
    """Ends a program, starts it again, and checks that Home Assistant shows a talk."""
    ha, programs = run.ha, run.programs
    await run.settle()
    before = available(ha)
    away = time.monotonic()
    run.ends += name != "Home Assistant"
    if name == "Perch":
        programs.stop("perch", by)
        await until("Perch is away", lambda: ha.state("binary_sensor.perch_connection") in ("off", "unavailable"))
        await ha.await_state(f"sensor.{STACK_CHAN}_agent_state", "unavailable")
        programs.start_perch()
    elif name == "Home Assistant":
        programs.stop("homeassistant", by)
        run.start_home_assistant()
        await until("Home Assistant runs", ha.is_running, START)
        await ha.connect()
    else:
        if programs.broker == "mosquitto":
            programs.stop("mosquitto", by)
        else:
            os.kill(programs.broker_process(), by)
        await ha.await_state(f"sensor.{STACK_CHAN}_agent_state", "unavailable")
        if programs.broker == "mosquitto":
            programs.start_broker()
    ended = time.monotonic()
    await until(f"all entities are available, but {before - available(ha)}", lambda: before <= available(ha))
    back = time.monotonic()
    _, changes = await talk(run, "who are you")
    seen = [c.state for c in changes if c.entity == f"sensor.{STACK_CHAN}_agent_state"]
    run.check(contains(seen, ["listening", "thinking", "speaking", "idle"]), f"afterwards the agent state was {seen}")
    print(f"its end and start took {ended - away:.1f} s; {len(before)} entities were available {back - ended:.1f} s later; then it followed a talk")


def available(ha):
    """Returns the entities of Perch that are available."""
    return {e for e, (state, _) in ha.states.items() if ("perch" in e or STACK_CHAN in e) and state != "unavailable"}
