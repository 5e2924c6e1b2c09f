#!/usr/bin/env python3
"""Runs a real Home Assistant beside Perch, and uses it as an owner does:

    packaging/peers/homeassistant.py [install|embedded|mosquitto|older|short|lock RELEASE]

The script installs Home Assistant from PyPI into bin/peers, with the versions and hashes in the
lock files. docs/peers.md says what it does then. It fails if something is not as documented, or
if Home Assistant's log has a warning or an error about MQTT, Wyoming or Perch.

If a Python or PyPI is missing, the script says so and succeeds. With no Python but 3.11, it runs only
the part for an older Home Assistant. An argument names one of the three parts, or the beginning of the
first one (short), only installs (install), or writes the lock file of a release for this machine.
"""

import asyncio
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from installation import RELEASES, Installation, Missing


async def begin(run):
    """Adopts a robot, and follows a talk and the documentation's automations."""
    import automations
    import entities
    await run.set_up()
    await run.ha.await_state("binary_sensor.perch_connection", "on")
    await run.phone.register()
    await entities.adopt(run)
    async with run.step("the entities follow a talk"):
        await entities.follow(run)
    async with run.step("the documentation's automations"):
        await automations.run_examples(run)


async def use_some(run):
    """Does the beginning of use_everything, and compares the entities."""
    import entities
    await begin(run)
    async with run.step("the entities as Home Assistant reports them"):
        await entities.compare(run)


async def use_everything(run):
    """Does with Perch's own broker what an owner does."""
    import assist
    import automations
    import controls
    import dashboard
    import entities
    import restarts
    await begin(run)
    async with run.step("the blueprints"):
        await automations.run_blueprints(run)
    async with run.step("device triggers"):
        await automations.run_device_triggers(run)
    async with run.step("controls"):
        await controls.use_all(run)
    async with run.step("adoption by a button and by an address"):
        await controls.adopt_new(run)
    async with run.step("an update"):
        await controls.update(run)
    engines = {}
    async with run.step("Wyoming: Perch's engines in Home Assistant"):
        engines = await assist.add_wyoming(run)
        await assist.use_perch(run, engines)
    async with run.step("Assist: Home Assistant's engines in Perch"):
        await assist.use_home_assistant(run, engines)
    async with run.step("Assist: an answer that is written while it is spoken"):
        await assist.stream(run, engines)
    async with run.step("the entities as Home Assistant reports them"):
        await entities.compare(run)
        await entities.diagnose(run)
    async with run.step("Home Assistant's pages in Chromium"):
        await dashboard.use(run)
    async with run.step("names and areas"):
        await entities.rename(run)
    async with run.step("the button Restart"):
        await controls.restart_perch(run)
    await restarts.restart_all(run)
    async with run.step("removal"):
        await entities.remove(run)


async def use_mosquitto(run):
    """Does with mosquitto what depends on the broker."""
    import entities
    import restarts
    await run.set_up()
    await entities.adopt(run)
    await restarts.restart_all(run)
    async with run.step("the entities as Home Assistant reports them"):
        await entities.compare(run)


async def use_older(run):
    """Shows what an older Home Assistant has of Perch."""
    import older
    await older.use(run)


async def perform(installation, broker, use):
    """Runs use with new programs and data, and returns the faults."""
    import aiohttp
    from programs import Programs, find_mosquitto
    from run import Run
    if broker == "mosquitto" and not find_mosquitto():
        print("skipped: mosquitto is not installed")
        return []
    folder = pathlib.Path(tempfile.mkdtemp(prefix="peers-"))
    with contextlib.ExitStack() as stack:
        programs = Programs(folder, stack, broker)
        async with aiohttp.ClientSession() as session:
            run = Run(installation, programs, session)
            task = asyncio.current_task()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: task.cancelling() or task.cancel())  # timeout sends two
            try:
                await use(run)
            except asyncio.CancelledError:
                print("skipped: the rest, because the run was ended")
                return run.faults
            finally:
                print(f"\nthe logs are in {folder}")
                complaints = run.complaints()
    ours = [c for c in complaints if any(name in c.lower() for name in ("mqtt", "perch", "wyoming"))]
    unexpected = [c for c in ours if not run.expected(c)]
    print(f"Home Assistant {installation.release} with the broker {broker}: {len(complaints)} warnings and errors in its log; {len(ours)} are about "
          f"MQTT, Perch or Wyoming, of which {len(ours) - len(unexpected)} follow from what this run did")
    for c in complaints:
        if c not in ours:
            print("  of others:", c.splitlines()[0])
    for c in unexpected:
        run.fault(c)
    if not run.faults:
        shutil.rmtree(folder)
    return run.faults


def perform_part(part, newest, oldest):
    """Runs a part, and reports whether nothing was wrong. A part that this machine cannot run is skipped."""
    installation, broker, use = {"embedded": (newest, "embedded", use_everything), "mosquitto": (newest, "mosquitto", use_mosquitto),
                                 "older": (oldest, "embedded", use_older), "short": (newest, "embedded", use_some)}[part]
    try:
        installation.install()
    except Missing as e:
        print(f"skipped: {e}")
        return True
    faults = asyncio.run(perform(installation, broker, use))
    for fault in faults:
        print("FAULT:", fault)
    print(f"{len(faults)} faults")
    return not faults


def end(*_):
    """Ends the installation, or the three parts."""
    print("skipped: the rest, because the run was ended")
    sys.exit(0)


def main():
    signal.signal(signal.SIGTERM, end)
    if sys.argv[1:2] == ["lock"]:
        return Installation(sys.argv[2]).write_lock()
    releases = [Installation(release) for release in RELEASES]
    newest, oldest = next((i for i in releases if i.has_python()), releases[-1]), releases[-1]
    try:
        newest.install()
        if sys.argv[1:] == ["install"]:
            return oldest.install()
    except Missing as e:
        print(f"skipped: {e}")
        return
    if pathlib.Path(sys.prefix) != newest.venv:
        os.execv(newest.venv / "bin/python", [newest.venv / "bin/python", *sys.argv])
    if newest is oldest:
        sys.exit(not perform_part("older", newest, oldest))
    if len(sys.argv) > 1:
        sys.exit(not perform_part(sys.argv[1], newest, oldest))
    # The parts mostly wait, so that they run at the same time.
    others = [subprocess.Popen([sys.executable, __file__, part], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
              for part in ("mosquitto", "older")]
    try:
        failed = [] if perform_part("embedded", newest, oldest) else ["embedded"]
        for other in others:
            print("\n" + other.communicate()[0], flush=True)
            if other.returncode:
                failed.append(other.args[-1])
    finally:
        for other in others:
            other.terminate()
    if failed:
        sys.exit(f"failed: {' '.join(failed)}")


if __name__ == "__main__":
    main()
