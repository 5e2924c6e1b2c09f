// A robot's settings. Changes by other owners are shown at once, but do not replace a value that is being typed. What Perch
// knows is chosen from a list, and what the server refuses is shown at the field.

import { css, html } from "lit";
import { live } from "lit/directives/live.js";
import { Refusal, get, send } from "../lib/api.js";
import { feed } from "../lib/feed.js";
import type { Device } from "../lib/robots.js";
import type { Said } from "../lib/said.js";
import { base } from "../lib/ui.js";
import { Spoken, sentence } from "../lib/view.js";
import { catalogue, languageName, languages } from "../lib/words.js";
import type { Engine } from "./engines.types.js";

const say = catalogue("robotSettings");

// Character is an entry of the server's list of characters.
export interface Character {
  id: string;
  name: string;
}

const byDefault = "default"; // ID of the household's character

const fields = ["name", "persona", "language", "voice", "brain", "transport"] as const;
type Name = (typeof fields)[number];

// others are languages that an engine may speak, besides those of the page.
const others = ("af ar az be bg bn bs ca cs cy da el en-GB en-US et eu fa fi fr-CA ga gl gu he hi hr hu hy id is it ka kk kn ko ky lb lt lv mk ml mn mr ms mt nb ne nl nn " +
  "pa pl pt pt-BR ro ru si sk sl sq sr sv sw ta te th tr uk ur uz vi zh-Hant").split(" ");

export class RobotSettings extends Spoken {
  static properties = { device: { attribute: false }, characters: { attribute: false }, draft: { state: true }, engines: { state: true }, refused: { state: true } };
  declare device: Device;
  declare characters: Character[];
  declare draft: Partial<Record<Name, string>>; // typed values that are not saved
  declare private engines: readonly Engine[];
  declare private refused: { at: Name; why: Said } | undefined;
  private stop: (() => void) | undefined;
  private from: Partial<Record<Name, string>> = {}; // saved values when typing began
  static styles = [base, css`form { display: grid; gap: 0.9rem; } .fields { display: grid; gap: 0.9rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); align-items: start; }`];

  constructor() {
    super();
    this.draft = {};
    this.engines = [];
  }

  connectedCallback(): void {
    super.connectedCallback();
    void this.read();
    this.stop = feed.on(["changed"], (e) => ["settings", "voices"].includes(String(e.data["what"])) && void this.read());
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    this.stop?.();
  }

  private async read(): Promise<void> {
    try {
      this.engines = (await get<Engine[] | null>("api/v1/engines")) ?? [];
    } catch {
      // What is known stays; the shell shows that the connection is lost.
    }
  }

  private kept(name: Name): string {
    return this.device[name] ?? "";
  }

  private typed(name: Name, value: string): void {
    if (!(name in this.draft)) this.from[name] = this.kept(name);
    const draft = { ...this.draft, [name]: value };
    if (value === this.kept(name)) delete draft[name];
    this.draft = draft;
    if (this.refused?.at === name) this.refused = undefined;
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
    this.refused = undefined;
    this.wish(async () => {
      try {
        this.device = await send<Device>("PUT", `api/v1/devices/${encodeURIComponent(this.device.id)}`, change);
      } catch (failure) {
        const at = failure instanceof Refusal ? wrong(failure, Object.keys(change) as Name[]) : undefined;
        if (!at) throw failure;
        this.refused = { at, why: sentence(failure) };
        await this.updateComplete;
        this.renderRoot.querySelector<HTMLElement>(`[data-test=${at}]`)?.focus();
        return;
      }
      // Values that were typed during the request are not saved.
      this.draft = Object.fromEntries(Object.entries(this.draft).filter(([name, value]) => change[name as Name] !== value));
    }, () => (this.refused ? "" : say("saved")));
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
    switch (name) {
      case "transport":
        return [...all, ["websocket", "WebSocket"], ["mqtt", "MQTT + UDP"]];
      case "persona":
        for (const c of this.characters ?? []) if (c.id !== byDefault) all.push([c.id, c.name === c.id ? c.id : `${c.name} (${c.id})`]);
        break;
      case "brain":
        for (const e of this.engines) if (e.list === "brain") all.push([e.part.slice("brain ".length), e.where ? `${e.kind} (${e.where})` : e.kind]);
        break;
      case "voice":
        for (const v of this.engines.find((e) => e.list === "synthesizer")?.voices ?? []) all.push([v.name, v.title || v.name]);
        if (all.length === 1) return undefined; // the engine does not tell its voices
        break;
      case "language":
        for (const l of [...languages, ...others]) all.push([l, languageName(l)]);
        break;
      default:
        return undefined;
    }
    return all.some(([one]) => one === value) ? all : [...all, [value, value]]; // what was chosen may no longer exist
  }

  private field(name: Name) {
    const value = this.draft[name] ?? this.kept(name);
    const typed = (e: Event) => this.typed(name, (e.target as HTMLInputElement).value);
    const choice = this.choice(name, value);
    const hint = say(name === "voice" && !choice ? "voiceTyped" : `${name}Hint`);
    const error = this.refused?.at === name ? this.refused.why : this.clash(name);
    return html`<p-field label=${say(name)} hint=${hint} .error=${error}>${choice
      ? html`<select data-test=${name} .value=${live(value)} @change=${typed}>${choice.map(([one, word]) => html`<option value=${one} ?selected=${one === value}>${word}</option>`)}</select>`
      : html`<input data-test=${name} autocomplete="off" maxlength=${name === "name" ? 32 : 200} .value=${live(value)} @input=${typed}>`}</p-field>`;
  }
}

// wrong returns the setting that was refused. If the error is about the robot and not about a setting, it returns undefined.
function wrong(r: Refusal, changed: readonly Name[]): Name | undefined {
  switch (r.code) {
    case "bad_name":
    case "name_taken":
      return "name";
    case "bad_setting":
    case "set_in_file":
      return changed.find((name) => r.message.split(/\W+/).includes(name)) ?? changed[0]; // the sentence names it
  }
  return undefined;
}

customElements.define("p-robot-settings", RobotSettings);
