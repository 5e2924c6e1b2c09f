// A robot's body: its face, which can be dragged to turn the head, and controls for its tools.

import { css, html, nothing } from "lit";
import { emotions, type StackChanFace } from "../face/face.js";
import { send } from "../lib/api.js";
import { board, follow, gestures as makes } from "../lib/board.js";
import { icon } from "../lib/icons.js";
import { nameOf, type Device } from "../lib/robots.js";
import { controlsOf, run, within, type Control, type Controls, type Tool } from "../lib/tools.js";
import { base } from "../lib/ui.js";
import { Spoken } from "../lib/view.js";
import { catalogue } from "../lib/words.js";

const sayOf = catalogue("character");
const say = catalogue("robot");

const colours = [["off", "#000000"], ["red", "#ff0000"], ["green", "#00ff00"], ["blue", "#0000ff"], ["white", "#ffffff"], ["warm", "#ff9a3c"]] as const;
const gestureNames = ["wave", "nod", "shake", "think", "celebrate", "concern", "bow", "point", "shrug", "fidget", "dance", "idle"] as const;
const degreesPerPixel = 0.45;
const keyStep = 8; // degrees

export class Body extends Spoken {
  static properties = { device: { attribute: false }, tools: { attribute: false }, yaw: { state: true }, pitch: { state: true }, lit: { state: true } };
  declare device: Device;
  declare tools: Tool[];
  declare yaw: number;
  declare pitch: number;
  declare lit: string;
  private loud = 50; // the volume before it was muted
  private turning = false;
  private next: [number, number] | undefined;
  private from: { x: number; y: number; yaw: number; pitch: number } | undefined;
  private asked = "";
  static styles = [base, css`
    .face { display: grid; place-items: center; touch-action: none; cursor: grab; border-radius: 18px; }
    .face.fixed { cursor: default; touch-action: auto; } .face:active { cursor: grabbing; } .face.fixed:active { cursor: default; }
    stack-chan-face { width: min(100%, 24rem); }
    .how { text-align: center; margin-bottom: 0.8rem; }
    .controls { display: grid; gap: 0.9rem; }
    .slide { display: grid; grid-template-columns: minmax(0, 1fr) 3.2rem; gap: 0.6rem; align-items: center; }
    .slide output { text-align: end; font-variant-numeric: tabular-nums; }
    .loud { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0.6rem; align-items: end; }
    .swatch { width: 2.2rem; height: 2.2rem; border-radius: 50%; border: 2px solid var(--control); cursor: pointer; padding: 0; }
    .swatch[aria-pressed="true"] { outline: 3px solid var(--accent); outline-offset: 2px; }
    .shut { background: var(--raised); border-radius: 12px; padding: 0.7rem 0.9rem; margin-bottom: 0.9rem; }
    fieldset { border: 0; margin: 0; padding: 0; min-width: 0; } legend { font-weight: 600; font-size: 0.9rem; padding: 0; margin-bottom: 0.35rem; }
    form { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0.6rem; align-items: end; }
  `];

  constructor() {
    super();
    this.yaw = 0;
    this.pitch = 0;
    this.lit = "";
    follow(this, () => this.device?.id, () => void this.look());
    makes(this, () => this.device?.id);
  }

  protected updated(): void {
    void this.look();
  }

  private get online(): boolean {
    return board.now(this.device.id)?.online ?? this.device.connected;
  }

  // look asks the robot for its head angles and its status, once in each session.
  private async look(): Promise<void> {
    const now = board.now(this.device.id);
    const talk = this.online ? now?.session || "on" : "";
    if (talk === this.asked) return;
    this.asked = talk;
    const c = controlsOf(this.tools);
    if (talk === "") return;
    if (c.angles) {
      const at = await this.read<{ yaw?: number; pitch?: number }>(c.angles);
      if (typeof at?.yaw === "number") this.yaw = at.yaw;
      if (typeof at?.pitch === "number") this.pitch = at.pitch;
    }
    if (c.status && !now?.status) {
      const s = await this.read<{ audio_speaker?: { volume?: number }; screen?: { brightness?: number }; battery?: { level?: number; charging?: boolean } }>(c.status);
      if (s) board.report(this.device.id, { volume: s.audio_speaker?.volume ?? null, brightness: s.screen?.brightness ?? null, battery: s.battery?.level ?? null, charging: s.battery?.charging ?? null });
    }
  }

  // read calls a tool and returns its result, which is JSON, or undefined if that fails.
  private async read<T>(c: Control): Promise<T | undefined> {
    try {
      return JSON.parse((await run(this.device.id, c.tool.name, {})).text) as T;
    } catch {
      return undefined;
    }
  }

  // turn turns the head. While a call is in progress, only the latest request waits.
  private turn(yaw: number, pitch: number): void {
    const head = controlsOf(this.tools).head;
    if (!head || !this.online) return;
    this.yaw = Math.min(128, Math.max(-128, Math.round(yaw)));
    this.pitch = Math.min(90, Math.max(0, Math.round(pitch)));
    this.next = [this.yaw, this.pitch];
    if (this.turning) return;
    this.turning = true;
    this.wish(async () => {
      try {
        while (this.next) {
          const [y, p] = this.next;
          this.next = undefined;
          await this.turnTo(head, y, p);
        }
      } finally {
        this.turning = false;
        this.next = undefined;
      }
    });
  }

  private turnTo(head: Control, yaw: number, pitch: number): Promise<unknown> {
    const [y = "yaw", p] = head.args;
    const args: Record<string, unknown> = { [y]: within(head, y, yaw) };
    if (p) args[p] = within(head, p, pitch);
    return run(this.device.id, head.tool.name, args);
  }

  // set sets the volume or the brightness. The new value is shown at once, because the robot reports it only in its next
  // turn.
  private set(c: Control, what: "volume" | "brightness", value: number): void {
    const arg = c.args[0] ?? "";
    this.wish(async () => {
      await run(this.device.id, c.tool.name, { [arg]: within(c, arg, value) });
      const before = board.now(this.device.id)?.status ?? { volume: null, brightness: null, battery: null, charging: null };
      board.report(this.device.id, { ...before, [what]: value });
    });
  }

  private shine(lights: Control, colour: string): void {
    this.lit = colour;
    const args = Object.fromEntries(lights.args.map((arg, i) => {
      const most = lights.tool.schema.properties?.[arg]?.maximum ?? 255;
      return [arg, Math.round((parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16) * most) / 255)];
    }));
    this.wish(() => run(this.device.id, lights.tool.name, args));
  }

  // ---- dragging the face

  private down(e: PointerEvent): void {
    (e.currentTarget as HTMLElement).setPointerCapture(e.pointerId);
    this.from = { x: e.clientX, y: e.clientY, yaw: this.yaw, pitch: this.pitch };
    this.face(true);
  }
  private drag(e: PointerEvent): void {
    if (!this.from) return;
    // The robot's left is the viewer's right.
    this.turn(this.from.yaw - (e.clientX - this.from.x) * degreesPerPixel, this.from.pitch - (e.clientY - this.from.y) * degreesPerPixel);
  }
  private up(): void {
    this.from = undefined;
    this.face(false);
  }
  private face(held: boolean): void {
    const face = this.renderRoot.querySelector<StackChanFace>("stack-chan-face");
    if (face) face.held = held;
  }
  private key(e: KeyboardEvent): void {
    const step: Record<string, [number, number]> = { ArrowLeft: [keyStep, 0], ArrowRight: [-keyStep, 0], ArrowUp: [0, keyStep], ArrowDown: [0, -keyStep] };
    const by = step[e.key];
    if (e.key === "Home") this.turn(0, 0);
    else if (by) this.turn(this.yaw + by[0], this.pitch + by[1]);
    else return;
    e.preventDefault();
  }

  render() {
    const now = board.now(this.device.id);
    const c = controlsOf(this.tools);
    const off = !this.online;
    const face = html`<stack-chan-face state=${now?.state ?? this.device.state} emotion=${now?.emotion ?? (this.device.emotion || "neutral")} .yaw=${this.yaw} .pitch=${this.pitch}
      .leds=${this.lit && this.lit !== "#000000" ? [this.lit] : []} .feels=${now?.mood ?? null} ?muted=${now?.status?.volume === 0} data-test="face"></stack-chan-face>`;
    return html`${c.head && !off
      ? html`<div class="face" tabindex="0" role="application" aria-label=${say("head")} aria-describedby="how" data-test="head"
          @pointerdown=${this.down} @pointermove=${this.drag} @pointerup=${this.up} @pointercancel=${this.up} @keydown=${this.key}>${face}</div>
          <p class="how small muted" id="how">${say("headHow")}</p>`
      : html`<div class="face fixed">${face}</div>`}
      ${off ? html`<p class="shut small" data-test="shut">${say("asleepNote")}</p>` : nothing}
      <div class="controls">${this.sliders(c, off)}${this.lights(c, off)}${this.gestures(off)}${this.faces()}</div>`;
  }

  private sliders(c: Controls, off: boolean) {
    const status = board.now(this.device.id)?.status;
    const volume = status?.volume ?? undefined;
    const silent = volume === 0;
    const mute = () => {
      if (!silent && volume) this.loud = volume;
      if (c.volume) this.set(c.volume, "volume", silent ? this.loud : 0);
    };
    return html`
      ${c.volume ? html`<div class="loud">${this.slider("volume", say("volume"), volume, 0, 100, off, (n) => this.set(c.volume!, "volume", n))}
        <p-button data-test="mute" pressed=${silent ? "true" : "false"} ?disabled=${off} @click=${mute}>${icon(silent ? "muted" : "volume")}${silent ? say("unmute") : say("mute")}</p-button></div>` : nothing}
      ${c.brightness ? this.slider("brightness", say("brightness"), status?.brightness ?? undefined, 0, 100, off, (n) => this.set(c.brightness!, "brightness", n)) : nothing}
      ${c.head ? html`${this.slider("yaw", say("yaw"), this.yaw, -128, 128, off, (n) => this.turn(n, this.pitch))}
        ${c.head.args[1] ? this.slider("pitch", say("pitch"), this.pitch, 0, 90, off, (n) => this.turn(this.yaw, n)) : nothing}
        <div class="row"><p-button data-test="ahead" ?disabled=${off} @click=${() => this.turn(0, 0)}>${say("ahead")}</p-button></div>` : nothing}`;
  }

  private slider(id: string, label: string, value: number | undefined, min: number, max: number, off: boolean, set: (n: number) => void) {
    return html`<p-field label=${label}><div class="slide"><input type="range" data-test=${id} min=${min} max=${max} .value=${String(value ?? (min + max) / 2)} ?disabled=${off}
      @change=${(e: Event) => set(Number((e.target as HTMLInputElement).value))}><output class="small">${value ?? "–"}</output></div></p-field>`;
  }

  private lights(c: Controls, off: boolean) {
    const lights = c.lights;
    if (!lights) return nothing;
    return html`<fieldset ?disabled=${off}><legend>${say("lights")}</legend><div class="row">
      ${colours.map(([name, colour]) => html`<button type="button" class="swatch" data-test="led-${name}" aria-label=${say(name)} title=${say(name)} aria-pressed=${this.lit === colour}
        .style=${`background:${colour}`} @click=${() => this.shine(lights, colour)}></button>`)}
      <input type="color" aria-label=${say("own")} title=${say("own")} .value=${this.lit || "#ffffff"} @change=${(e: Event) => this.shine(lights, (e.target as HTMLInputElement).value)}></div></fieldset>`;
  }

  private gestures(off: boolean) {
    const make = (name: string) => this.wish(() => send("POST", "api/agent-actions", { type: "gesture", payload: { name }, robot: this.device.id }));
    return html`<fieldset ?disabled=${off}><legend>${sayOf("gestures")}</legend><div class="row">
      ${gestureNames.map((g) => html`<p-button data-test="gesture-${g}" ?disabled=${off} @click=${() => make(g)}>${sayOf(g)}</p-button>`)}</div></fieldset>`;
  }

  private faces() {
    const show = (e: Event) => {
      e.preventDefault();
      const emotion = this.renderRoot.querySelector<HTMLSelectElement>("#emotion")?.value ?? "neutral";
      this.wish(() => send("POST", `api/v1/devices/${encodeURIComponent(this.device.id)}/alert`, { status: nameOf(this.device).slice(0, 20), message: emotion, emotion }), () => say("shown"));
    };
    return html`<form @submit=${show}><p-field label=${say("face")}><select id="emotion" data-test="emotion">
      ${emotions.map((name) => html`<option value=${name}>${name}</option>`)}</select></p-field><p-button type="submit" data-test="show-face">${say("show")}</p-button></form><p class="small muted">${say("faceHow")}</p>`;
  }
}

customElements.define("p-body", Body);
