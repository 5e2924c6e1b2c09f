// The card for Home Assistant's dashboards, /perch-card.js:
//
//   type: custom:perch-card
//   entity: sensor.stack_chan_e4f5_agent_state
//
// It shows the robot's face from the entities that Perch announces by MQTT (docs/home-assistant.md). It has no
// connection to Perch. A tap opens the entity.

import { isState, type StackChanFace } from "./face/face.js";
import { stateIn } from "./face/words.js";

interface Entity {
  state: string;
  attributes: Record<string, unknown>;
}

interface Hass {
  states: Record<string, Entity | undefined>;
  language?: string;
  locale?: { language?: string };
}

// The other entities of a robot: their domains, and the ends of their names.
const others = {
  emotion: ["select", "emotion"], mute: ["switch", "mute"], yaw: ["number", "head_yaw"], pitch: ["number", "head_pitch"], lights: ["light", "lights"],
} as const;
type Other = keyof typeof others;

type Config = { type: string; entity: string; name?: string; look?: string } & Partial<Record<Other, string>>;

const suffix = "_agent_state";

const sheetText = `
  :host { display: block; height: 100%; }
  ha-card { display: block; height: 100%; overflow: hidden; }
  button { all: unset; box-sizing: border-box; width: 100%; height: 100%; padding: 16px; gap: 4px; justify-items: center; text-align: center;
    display: grid; grid-template-rows: minmax(0, 1fr) auto auto; grid-template-columns: minmax(0, 1fr);
    cursor: pointer; color: var(--primary-text-color, #1c2126); font-family: inherit; }
  button:focus-visible { outline: 3px solid var(--primary-color, #0b6b66); outline-offset: -4px; border-radius: var(--ha-card-border-radius, 12px); }
  stack-chan-face { width: min(100%, 320px); }
  .away stack-chan-face { opacity: .5; }
  .name { font-weight: 500; overflow-wrap: anywhere; } .state { color: var(--secondary-text-color, #5a646c); font-size: .9em; }
`;

class PerchCard extends HTMLElement {
  private config: Config | undefined;
  private states: Hass["states"] = {};
  private readonly face: StackChanFace = document.createElement("stack-chan-face");
  private readonly button = document.createElement("button");
  private readonly title_ = document.createElement("span");
  private readonly line = document.createElement("span");

  constructor() {
    super();
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(sheetText);
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [sheet];
    this.title_.className = "name";
    this.line.className = "state";
    this.button.type = "button";
    this.button.append(this.face, this.title_, this.line);
    this.button.addEventListener("click", () => this.more());
    const card = document.createElement("ha-card");
    card.append(this.button);
    root.append(card);
  }

  // setConfig is called by Home Assistant with the user's configuration. Home Assistant shows an error that it throws.
  setConfig(c: Config): void {
    if (typeof c?.entity !== "string" || !c.entity.endsWith(suffix)) {
      throw new Error(`perch-card: entity is the robot's agent state, such as sensor.stack_chan_e4f5${suffix}`);
    }
    this.config = { ...c };
    if (c.look) this.face.setAttribute("look", String(c.look));
    this.show("en");
  }

  // hass is set by Home Assistant whenever any entity changes.
  set hass(h: Hass) {
    if (!this.config) return;
    const language = (h.locale?.language ?? h.language ?? "en").slice(0, 2);
    const before = this.states;
    this.states = h.states;
    if (this.entities().some((id) => before[id] !== h.states[id]) || this.face.lang !== language) this.show(language);
  }

  getCardSize(): number {
    return 5;
  }

  getGridOptions(): Record<string, number> {
    return { columns: 6, rows: 5, min_columns: 3, min_rows: 3 };
  }

  static getStubConfig(h: Hass): { entity: string } {
    const found = Object.keys(h?.states ?? {}).find((id) => id.startsWith("sensor.") && id.endsWith(suffix));
    return { entity: found ?? `sensor.stack_chan${suffix}` };
  }

  static getConfigForm(): unknown {
    return { schema: [{ name: "entity", required: true, selector: { entity: { domain: "sensor" } } }, { name: "name", selector: { text: {} } }] };
  }

  private entities(): string[] {
    return [this.config!.entity, ...(Object.keys(others) as Other[]).map((o) => this.idOf(o))];
  }

  private idOf(o: Other): string {
    const [domain, end] = others[o];
    return this.config![o] ?? `${domain}.${this.config!.entity.slice("sensor.".length, -suffix.length)}_${end}`;
  }

  private valueOf(o: Other): string {
    return this.states[this.idOf(o)]?.state ?? "";
  }

  private show(language: string): void {
    const c = this.config!;
    const robot = this.states[c.entity];
    const state = robot && isState(robot.state) ? robot.state : undefined;
    this.face.lang = language;
    this.face.state = state ?? "sleeping";
    this.face.emotion = this.valueOf("emotion") || "neutral";
    this.face.muted = this.valueOf("mute") === "on";
    this.face.yaw = Number(this.valueOf("yaw")) || 0;
    this.face.pitch = Number(this.valueOf("pitch")) || 0;
    this.face.leds = [this.colour()];
    this.button.classList.toggle("away", !state);
    this.title_.textContent = c.name ?? nameOf(robot) ?? "";
    this.line.textContent = stateIn(state, language);
  }

  private colour(): string {
    const light = this.states[this.idOf("lights")];
    const rgb = light?.state === "on" ? light.attributes["rgb_color"] : undefined;
    if (!Array.isArray(rgb) || rgb.length !== 3) return "";
    return "#" + rgb.map((v) => Math.min(255, Math.max(0, Math.round(Number(v) || 0))).toString(16).padStart(2, "0")).join("");
  }

  private more(): void {
    this.dispatchEvent(new CustomEvent("hass-more-info", { detail: { entityId: this.config?.entity }, bubbles: true, composed: true }));
  }
}

// nameOf returns the name of an entity's device: "Kitchen" for the entity "Kitchen Agent state".
function nameOf(e: Entity | undefined): string | undefined {
  const name = e?.attributes["friendly_name"];
  return typeof name === "string" ? name.replace(/ agent state$/i, "") : undefined;
}

declare global {
  interface Window {
    customCards?: { type: string; name: string; description: string; preview?: boolean }[];
  }
}

if (!customElements.get("perch-card")) {
  customElements.define("perch-card", PerchCard);
  window.customCards = window.customCards ?? [];
  window.customCards.push({ type: "perch-card", name: "Perch", description: "The face of a robot that talks with Perch", preview: true });
}
