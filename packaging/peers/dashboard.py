"""Home Assistant's pages in Chromium: the card on a dashboard, the device and an automation."""

import asyncio
import base64
import json
import shutil
import time

from client import PATIENCE, Timeout, until
from entities import STACK_CHAN
from programs import free_port

# What the card shows: the state of its face and its line of text, of the first card that has a robot.
CARD = """(() => {
  const find = root => {
    for (const e of root.querySelectorAll("*")) {
      if (e.localName === "perch-card") return e;
      const found = e.shadowRoot && find(e.shadowRoot);
      if (found) return found;
    }
  };
  const card = find(document), face = card?.shadowRoot.querySelector("stack-chan-face");
  return face ? [face.state, card.shadowRoot.querySelector(".state").textContent] : null;
})()"""


class Browser:
    """A page in Chromium, by its DevTools protocol."""

    def __init__(self, run):
        self.run, self.number, self.answers, self.errors = run, 0, {}, []

    async def start(self):
        """Starts Chromium, whose user is logged in to Home Assistant."""
        programs, ha = self.run.programs, self.run.ha
        port = free_port()
        programs.start("chromium", find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                       f"--user-data-dir={programs.folder / 'chromium'}", f"--remote-debugging-port={port}", "about:blank")
        pages = await until("Chromium", lambda: self.pages(port))
        self.socket = await ha.session.ws_connect(next(p["webSocketDebuggerUrl"] for p in pages if p["type"] == "page"), max_msg_size=0)
        self.reader = asyncio.create_task(self.read())
        await self.send("Runtime.enable")
        await self.send("Page.enable")
        tokens = json.dumps({"hassUrl": ha.url, "clientId": ha.url + "/", "access_token": ha.token, "refresh_token": ha.refresh_token,
                             "token_type": "Bearer", "expires_in": 1800, "expires": int(time.time() * 1000) + 1800_000})
        await self.send("Page.addScriptToEvaluateOnNewDocument", source=f"localStorage.setItem('hassTokens', {json.dumps(tokens)})")

    async def pages(self, port):
        async with self.run.ha.session.get(f"http://127.0.0.1:{port}/json") as response:
            return await response.json()

    async def read(self):
        """Passes each answer to whom it is for, and keeps the errors of the page."""
        async for frame in self.socket:
            message = json.loads(frame.data)
            if "id" in message:
                self.answers.pop(message["id"]).set_result(message)
            elif message["method"] == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"])

    async def send(self, method, **parameters):
        """Sends a command and returns its result."""
        self.number += 1
        answer = self.answers[self.number] = asyncio.get_running_loop().create_future()
        await self.socket.send_json({"id": self.number, "method": method, "params": parameters})
        message = await asyncio.wait_for(answer, 60)
        if "error" in message:
            raise Timeout(f"{method}: {message['error']}")
        return message["result"]

    async def open(self, path, width, height):
        """Opens a page of Home Assistant in a window of this size."""
        await self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=0.75, mobile=False)
        await self.send("Page.navigate", url=self.run.ha.url + path)

    async def evaluate(self, script):
        result = await self.send("Runtime.evaluate", expression=script, returnByValue=True)
        return result["result"].get("value")

    async def shows(self, text):
        """Waits until the page shows a text, in whatever element."""
        script = """(() => {
          const text = root => [...root.querySelectorAll("*")].map(e => e.shadowRoot ? text(e.shadowRoot) : "").join(" ") + " " + (root.textContent || root.body?.textContent || "");
          return text(document);
        })()"""

        async def is_there():
            return text in (await self.evaluate(script) or "")
        await until(f"the page shows {text!r}", is_there)

    async def picture(self, name):
        """Keeps a picture of the page in bin/peers/pictures."""
        await asyncio.sleep(1)  # until what moves has come to rest
        data = base64.b64decode((await self.send("Page.captureScreenshot", format="jpeg", quality=80))["data"])
        folder = self.run.installation.venv.parent / "pictures"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.jpg").write_bytes(data)
        print(f"  bin/peers/pictures/{name}.jpg: {len(data) // 1024} KB")


def find_chromium():
    """Returns the path of a Chromium, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


async def use(run):
    """Uses the card, and opens pages. Without Chromium this is left out."""
    if not find_chromium():
        print("skipped: Chromium is not installed")
        return
    client = run.ha.url + "/"
    for step, answer in (("core_config", {}), ("analytics", {}), ("integration", {"client_id": client, "redirect_uri": client})):
        await run.ha.call("POST", f"/api/onboarding/{step}", **answer)  # or every page would be the next question
    browser = Browser(run)
    await browser.start()
    try:
        await use_card(run, browser)
        await show_pages(run, browser)
    except Timeout:
        await browser.picture("fault")
        raise
    finally:
        run.programs.stop("chromium")


async def use_card(run, browser):
    """Adds the card to a dashboard, from Perch's address and from a copy, and follows a talk with each."""
    ha, programs = run.ha, run.programs
    async with ha.session.get(programs.url("perch", "/perch-card.js")) as response:
        (programs.folder / "config/www/perch-card.js").write_bytes(await response.read())
    # The first page of newer versions is made by Home Assistant, and shows no cards that an owner adds.
    await ha.ask("lovelace/dashboards/create", url_path="stack-chan", title="Stack-chan", mode="storage", show_in_sidebar=True, require_admin=False)
    await ha.ask("lovelace/config/save", url_path="stack-chan", config={"views": [{"title": "Home", "type": "sections", "sections": [
        {"type": "grid", "cards": [{"type": "custom:perch-card", "entity": f"sensor.{STACK_CHAN}_agent_state", "name": "Kitchen"}]},
        {"type": "grid", "cards": [{"type": "entities", "title": "Stack-chan", "entities": [
            f"{platform}.{STACK_CHAN}_{key}" for platform, key in (("sensor", "agent_state"), ("select", "emotion"), ("number", "volume"),
                                                                   ("select", "voice"), ("switch", "mute"), ("event", "conversation"))]}]}]}]})
    resource = await ha.ask("lovelace/resources/create", res_type="module", url=programs.url("perch", "/perch-card.js"))
    for url in (programs.url("perch", "/perch-card.js"), "/local/perch-card.js"):
        await ha.ask("lovelace/resources/update", resource_id=resource["id"], res_type="module", url=url)
        began = time.monotonic()
        await browser.open("/stack-chan/0", 1280, 720)
        await until("the card", lambda: browser.evaluate(CARD))
        shown = time.monotonic()
        seen, texts = await follow(run, browser, picture="home-assistant-card" if url.startswith("/") else None)
        wanted = ["listening", "speaking", "idle"]  # the reflex brain thinks for less time than a picture takes
        rest = iter(seen)
        run.check(all(any(x == w for x in rest) for w in wanted), f"the card from {url} showed {seen} in a talk")
        print(f"  the card from {url}: {shown - began:.1f} s until it is there; in a talk its face was {' '.join(map(str, seen))} ({', '.join(texts)})")
    mine = [e for e in browser.errors if "perch" in json.dumps(e)]
    run.check(not mine, f"the page has errors of the card: {mine}")


async def follow(run, browser, picture):
    """Has a person talk with the robot, and returns the states and texts that the card shows meanwhile."""
    robot = run.programs.robot("--say", "who are you", "--say", "i love you")
    seen, texts, taken, end = [], [], False, time.monotonic() + PATIENCE
    while time.monotonic() < end and not (robot.has_ended() and seen[-1:] == ["idle"]):
        state, text = await browser.evaluate(CARD) or (None, "")
        if seen[-1:] != [state]:
            seen.append(state)
            texts.append(text)
        if picture and state == "speaking" and not taken and run.ha.state(f"select.{STACK_CHAN}_emotion") != "neutral":
            taken = True
            await browser.picture(picture)
        await asyncio.sleep(0.02)
    return seen, texts


async def show_pages(run, browser):
    """Opens the device's page and an automation in the editor, which must show what is announced."""
    ha = run.ha
    device = await ha.device("Stack-chan E4F5")
    await browser.open(f"/config/devices/device/{device['id']}", 1150, 1450)
    for text in ("Agent state", "Firmware" if ha.state(f"update.{STACK_CHAN}_firmware") else "Conversation", "Reboot", "Brain"):
        await browser.shows(text)
    await browser.picture("home-assistant-device")
    await ha.call("POST", "/api/config/automation/config/peers", alias="Light while the robot listens", description="", mode="single",
                  triggers=[{"trigger": "state", "entity_id": f"sensor.{STACK_CHAN}_agent_state", "to": "listening"}], conditions=[],
                  actions=[{"action": "light.turn_on", "target": {"entity_id": "light.desk"}}])
    await browser.open("/config/automation/edit/peers", 1280, 720)
    await browser.shows("Light while the robot listens")
    await browser.shows("listening")
    await browser.picture("home-assistant-automation")
    await ha.call("DELETE", "/api/config/automation/config/peers")
