// The page /face?robot=ID: only the face, without a background, for OBS and for a tablet on the wall. It shows the
// frames of the skins' WebSocket. robot is a name or an ID; without it the face shows the latest frame of any robot.
// Other parameters are background=COLOUR, captions=1 and look=robot|screen|bare.

import { moodOf } from "./face/face.js";
import { noRobot } from "./face/words.js";
import { fieldsOf, textOf } from "./robot/wire.js";
import { get, socketURL } from "./lib/api.js";
import { language } from "./lib/words.js";

const captionFor = 8000;
const toolFor = 2500;
const mostDelay = 30_000;

class Fed {
  private delay = 1000;
  private captionTimer = 0;

  constructor(private readonly face: HTMLElementTagNameMap["stack-chan-face"], private readonly robot: string, private readonly captions: boolean) {}

  // connect connects, and connects again after each end, with increasing delays.
  connect(): void {
    const socket = new WebSocket(socketURL("v1/vtuber/ws"));
    socket.onopen = () => {
      // Wakes the face, because the first frame may come much later.
      this.face.state = "idle";
      this.face.emotion = "neutral";
      socket.send(JSON.stringify({
        type: "subscribe", events: ["agent_state", "emotion", "mood", "gesture", ...(this.captions ? ["tool_status", "notification"] : [])], states: "all", vocabulary: "xiaozhi",
        ...(this.robot ? { session_ids: [`robot:${this.robot}`] } : {}),
      }));
    };
    socket.onmessage = (e: MessageEvent<unknown>) => {
      this.delay = 1000; // the server has accepted the connection
      if (typeof e.data === "string") this.show(e.data);
    };
    socket.onclose = () => {
      this.face.state = "sleeping";
      setTimeout(() => this.connect(), this.delay * (0.75 + Math.random() / 2));
      this.delay = Math.min(mostDelay, this.delay * 2);
    };
  }

  private show(text: string): void {
    let frame: Record<string, unknown>;
    try {
      frame = fieldsOf(JSON.parse(text));
    } catch {
      return;
    }
    switch (frame["type"]) {
      case "agent_state":
        this.face.state = textOf(frame["state"]) ?? "idle";
        break;
      case "emotion":
        this.face.emotion = textOf(frame["tag"]) ?? "neutral";
        break;
      case "mood":
        this.face.feels = moodOf(frame);
        break;
      case "gesture":
        void this.face.gesture(textOf(frame["name"]) ?? "");
        break;
      case "tool_status":
        if (frame["status"] === "running") this.caption(textOf(frame["content"]) || plain(textOf(frame["tool_name"]) ?? ""), toolFor);
        break;
      case "notification":
        this.caption(textOf(frame["text"]) ?? "", captionFor);
        break;
    }
  }

  private caption(text: string, ms: number): void {
    this.face.text = text;
    clearTimeout(this.captionTimer);
    this.captionTimer = window.setTimeout(() => (this.face.text = ""), ms);
  }
}

// mustKnow shows a sentence if there is no such robot.
async function mustKnow(robot: string): Promise<void> {
  const simple = (name = "") => name.toLowerCase().replaceAll(":", "");
  try {
    const all = await get<{ id: string; name?: string }[]>("api/v1/devices");
    if (!all.some((d) => simple(d.id) === simple(robot) || simple(d.name) === simple(robot))) face.text = noRobot(language(), robot);
  } catch {
    // The connection is lost; the face sleeps until it is back.
  }
}

// plain returns the name of a tool for people: "set led color" for "self.robot.set_led_color".
function plain(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1).replaceAll("_", " ");
}

// dress makes the page as large as its window, and sets the background colour if the parameter is a colour.
function dress(background: string): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("html, body { margin: 0; height: 100%; overflow: hidden; background: transparent; } " +
    "stack-chan-face { width: 100vw; height: 100vh; aspect-ratio: auto; }");
  document.adoptedStyleSheets = [sheet];
  if (CSS.supports("color", background)) document.documentElement.style.background = background;
}

const asked = new URLSearchParams(location.search);
dress(asked.get("background") ?? "");
const face = document.createElement("stack-chan-face");
face.lang = language();
face.setAttribute("look", asked.get("look") ?? "robot");
face.dataset["test"] = "face";
face.state = "sleeping";
const main = document.createElement("main");
main.append(face);
document.body.append(main);
const robot = asked.get("robot") ?? "";
new Fed(face, robot, asked.get("captions") === "1").connect();
if (robot !== "") void mustKnow(robot);
