// A robot's settings. Changes by other owners are shown at once, but do not replace a value that is being typed.

import { css, html } from "lit";
import { live } from "lit/directives/live.js";
import { send } from "../lib/api.js";
import type { Device } from "../lib/robots.js";
import { base } from "../lib/ui.js";
import { Spoken } from "../lib/view.js";
import { catalogue } from "../lib/words.js";

const say = catalogue("robotSettings");

// Character is an entry of the server's list of characters.
export interface Character {
  id: string;
  name: string;
}

const byDefault = "default"; // ID of the household's character

const fields = ["name", "persona", "language", "voice", "brain", "transport"] as const;
type Name = (typeof fields)[number];

export class RobotSettings extends Spoken {
  static properties = { device: { attribute: false }, characters: { attribute: false }, draft: { state: true } };
  declare device: Device;
  declare characters: Character[];
  declare draft: Partial<Record<Name, string>>; // typed values that are not saved
  private from: Partial<Record<Name, string>> = {}; // saved values when typing began
  static styles = [base, css`form { display: grid; gap: 0.9rem; } .fields { display: grid; gap: 0.9rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); align-items: start; }`];

  constructor() {
    super();
    this.draft = {};
  }

  private kept(name: Name): string {
    return this.device[name] ?? "";
  }

  private typed(name: Name, value: string): void {
    if (!(name in this.draft)) this.from[name] = this.kept(name);
    const draft = { ...this.draft, [name]: value };
    if (value === this.kept(name)) delete draft[name];
    this.draft = draft;
  }

  // clash returns a warning if another owner has changed the value that is being typed.
  private clash(name: Name): string {
    if (!(name in this.draft) || this.from[name] === this.kept(name) || this.draft[name] === this.kept(name)) return "";
    return say("other", { value: this.kept(name) || say("empty") });
  }

  private save(e: Event): void {
    e.preventDefault();
    const change = { ...this.draft };
    if (Object.keys(change).length === 0) return;
    this.wish(async () => {
      this.device = await send<Device>("PUT", `api/v1/devices/${encodeURIComponent(this.device.id)}`, change);
      // Values that were typed during the request are not saved.
      this.draft = Object.fromEntries(Object.entries(this.draft).filter(([name, value]) => change[name as Name] !== value));
    }, () => say("saved"));
  }

  render() {
    const dirty = Object.keys(this.draft).length > 0;
    return html`<form @submit=${this.save}><div class="fields">${fields.map((f) => this.field(f))}</div>
      <div class="row"><p-button kind="main" type="submit" data-test="save" ?disabled=${!dirty}>${say("save")}</p-button>
        <p-button data-test="undo" ?disabled=${!dirty} @click=${() => (this.draft = {})}>${say("undo")}</p-button></div></form>`;
  }

  // choice returns the values and labels of a setting, or undefined for a setting with any text.
  private choice(name: Name, value: string): [string, string][] | undefined {
    const all: [string, string][] = [["", say("byDefault")]];
    if (name === "transport") return [...all, ["websocket", "WebSocket"], ["mqtt", "MQTT + UDP"]];
    if (name !== "persona") return undefined;
    for (const c of this.characters ?? []) if (c.id !== byDefault) all.push([c.id, c.name === c.id ? c.id : `${c.name} (${c.id})`]);
    return all.some(([one]) => one === value) ? all : [...all, [value, value]]; // the character may no longer exist
  }

  private field(name: Name) {
    const value = this.draft[name] ?? this.kept(name);
    const typed = (e: Event) => this.typed(name, (e.target as HTMLInputElement).value);
    const hint = say(`${name}Hint`);
    const choice = this.choice(name, value);
    if (choice) {
      return html`<p-field label=${say(name)} hint=${hint} error=${this.clash(name)}><select data-test=${name} .value=${live(value)} @change=${typed}>
        ${choice.map(([one, word]) => html`<option value=${one} ?selected=${one === value}>${word}</option>`)}</select></p-field>`;
    }
    return html`<p-field label=${say(name)} hint=${hint} error=${this.clash(name)}><input data-test=${name} autocomplete="off" maxlength=${name === "name" ? 32 : 200} .value=${live(value)} @input=${typed}></p-field>`;
  }
}

customElements.define("p-robot-settings", RobotSettings);
