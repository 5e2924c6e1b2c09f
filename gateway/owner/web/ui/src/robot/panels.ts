// <p-robot-body> and <p-robot-server>: the settings of the robot in the page.

import { LitElement, css, html, nothing } from "lit";
import { ask, base } from "../lib/ui.js";
import { catalogue } from "../lib/words.js";
import type { Framing, Mode } from "./flash.js";
import type { Robot } from "./robot.js";

const words = catalogue("webRobot");

// Panel shows a robot, and renders again when the robot changes.
class Panel extends LitElement {
  static properties = { robot: { attribute: false } };
  declare robot: Robot;

  connectedCallback(): void {
    super.connectedCallback();
    this.robot.addEventListener("change", this.again);
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    this.robot.removeEventListener("change", this.again);
  }

  private readonly again = (): void => this.requestUpdate();
}

const lamps = ["", "#a80000", "#a85400", "#00a800", "#0000a8", "#646464"];

export class BodyPanel extends Panel {
  static styles = [base, css`
    .two { display: grid; gap: 0.8rem 1.4rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 13rem), 1fr)); }
    figure { margin: 0.8rem 0 0; } img { width: 160px; border-radius: 10px; display: block; } figcaption { font-size: 0.875rem; color: var(--muted); }
    .lamp { width: 2.2rem; height: 2.2rem; border-radius: 50%; border: 2px solid var(--control); padding: 0; cursor: pointer; background: var(--surface); }
    .lamp[aria-pressed="true"] { outline: 3px solid var(--accent); outline-offset: 2px; }
  `];

  render() {
    const b = this.robot.body;
    return html`<div class="two">
        ${this.slider("volume", b.volume, 0, 100, "percent", (v) => (b.volume = v))}
        ${this.slider("brightness", b.brightness, 0, 100, "percent", (v) => (b.brightness = v))}
        ${this.slider("yaw", b.yaw, -128, 128, "degrees", (v) => (b.yaw = v))}
        ${this.slider("pitch", b.pitch, 0, 90, "degrees", (v) => (b.pitch = v))}
      </div>
      <div class="row" role="group" aria-label=${words("lights")}>
        <span class="small muted">${words("lights")}</span>
        ${lamps.map((c) => html`<button class="lamp" type="button" .style=${c ? `background:${c}` : ""} aria-label=${c || words("off")}
          aria-pressed=${(b.leds[6] === (c || "#000000")).toString()} @click=${() => this.light(c)}></button>`)}
        <span class="grow"></span>
        <p-button data-test="straight" @click=${() => ((b.yaw = 0), (b.pitch = 0))}>${words("straight")}</p-button>
      </div>
      ${b.reminders.list.length > 0 ? html`<p class="small muted">${words("reminders")}</p>
        <ul>${b.reminders.list.map((r) => html`<li>${words("reminderOf", { message: r.message, n: r.seconds })}</li>`)}</ul>` : nothing}
      ${b.lastPhoto ? html`<figure><img src=${b.lastPhoto.url} alt="" data-test="photo">
        <figcaption>${words(b.lastPhoto.drawn ? "drawn" : "photo")}</figcaption></figure>` : nothing}`;
  }

  private light(c: string): void {
    this.robot.body.leds = Array<string>(12).fill(c || "#000000");
    this.robot.dispatchEvent(new Event("change"));
  }

  private slider(name: "volume" | "brightness" | "yaw" | "pitch", value: number, least: number, most: number, unit: "percent" | "degrees",
    set: (v: number) => void) {
    const shown = words(unit, { n: value });
    return html`<p-field label=${words(name)} hint=${shown}><input type="range" data-test=${name} min=${least} max=${most} .value=${String(value)}
      aria-valuetext=${shown} @input=${(e: Event) => set(Number((e.target as HTMLInputElement).value))}></p-field>`;
  }
}

export class ServerPanel extends Panel {
  static properties = { ...Panel.properties, refused: { state: true } };
  declare refused: string;
  static styles = [base, css`
    form { display: grid; gap: 0.8rem; }
    dl { font-size: 0.9rem; margin: 1rem 0; }
  `];

  render() {
    const f = this.robot.keeper.flash;
    return html`<form @submit=${this.use}>
        <p-field label=${words("mode")}><select data-test="mode" @change=${(e: Event) => this.set({ mode: valueOf(e) as Mode })}>
          ${(["auto", "manual", "realtime"] as const).map((m) => html`<option value=${m} ?selected=${f.mode === m}>${words(m)}</option>`)}</select></p-field>
        <p-field label=${words("framing")} hint=${words("framingHint")}><select data-test="framing"
          @change=${(e: Event) => this.set({ framing: Number(valueOf(e)) as Framing | 0 })}>
          ${([0, 1, 2, 3] as const).map((n) => html`<option value=${n} ?selected=${f.framing === n}>
            ${words(n === 0 ? "asServer" : `framing${n}`)}</option>`)}</select></p-field>
        <p-field label=${words("ota")} hint=${words("otaHint")} error=${this.refused ?? ""}>
          <input id="ota" data-test="ota" type="url" autocomplete="off" spellcheck="false" maxlength="2000" placeholder="https://…/xiaozhi/ota/" .value=${f.ota}></p-field>
        <div class="row">
          <p-button type="submit" data-test="use">${words("use")}</p-button>
          ${f.ota ? html`<p-button kind="main" data-test="home" @click=${() => this.go("")}>${words("home")}</p-button>` : nothing}
        </div>
      </form>
      <dl><dt>${words("mac")}</dt><dd class="code" data-test="mac">${f.mac}</dd><dt>${words("client")}</dt><dd class="code" data-test="client">${f.uuid}</dd></dl>
      <div class="row">
        <p-button data-test="reboot" @click=${() => void this.robot.boot()}>${words("reboot")}</p-button>
        <p-button kind="danger" data-test="erase" @click=${this.erase}>${words("erase")}</p-button>
      </div>`;
  }

  private set(change: Partial<Robot["keeper"]["flash"]>): void {
    Object.assign(this.robot.keeper.flash, change);
    this.robot.keeper.save();
    this.robot.dispatchEvent(new Event("change"));
  }

  private readonly use = (e: Event): void => {
    e.preventDefault();
    const text = this.renderRoot.querySelector<HTMLInputElement>("#ota")!.value.trim();
    const isHTTP = URL.canParse(text) && ["http:", "https:"].includes(new URL(text).protocol);
    this.refused = text === "" || isHTTP ? "" : words("notURL");
    if (!this.refused) this.go(text);
  };

  // go boots with another server. It clears the address and token of the previous server's channel.
  private go(ota: string): void {
    this.set({ ota, websocket: { url: "", token: "", version: 1 } });
    void this.robot.boot();
  }

  private readonly erase = async (): Promise<void> => {
    if (!(await ask({ heading: words("erase"), text: words("eraseAsk"), yes: words("yes"), no: words("no"), danger: true }))) return;
    this.robot.keeper.erase();
    void this.robot.boot();
  };
}

const valueOf = (e: Event): string => (e.target as HTMLSelectElement).value;

customElements.define("p-robot-body", BodyPanel);
customElements.define("p-robot-server", ServerPanel);
