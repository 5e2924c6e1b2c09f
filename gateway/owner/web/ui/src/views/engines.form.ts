// <p-engine-form>: a form for a new engine, or for the options of one that is there. It dispatches "done" once the server
// has taken the values, and shows what the server refuses at the field.

import { css, html, nothing, type PropertyValues } from "lit";
import { Refusal, send } from "../lib/api.js";
import { explained, type Explained } from "../lib/explained.js";
import { english, type Said } from "../lib/said.js";
import { base } from "../lib/ui.js";
import { Spoken, sentence } from "../lib/view.js";
import { catalogue, language, type Language } from "../lib/words.js";
import type { Kind, Named, Option, Preset } from "./engines.types.js";
import { list } from "./list.js";
import { below, faulty, isSet, plain, type Fault, type Key } from "./settings.types.js";

const t = catalogue("engines");

// labels has the names of the options that have one in people's words.
const labels = { url: "optionUrl", model: "optionModel", voice: "optionVoice", key: "optionKey", token: "optionToken", command: "optionCommand", speed: "optionSpeed" } as const;

// usual are the options that are shown at once.
const usual = ["url", "model", "voice", "key", "token", "command"];

export class EngineForm extends Spoken {
  static properties = {
    list: {}, kinds: { attribute: false }, preset: { attribute: false }, at: {}, keys: { attribute: false }, others: { attribute: false },
    kind: { state: true }, values: { state: true }, faults: { state: true }, refused: { state: true }, busy: { state: true }, texts: { state: true },
  };
  declare list: string; // key of the list
  declare kinds: readonly Kind[];
  declare preset: Preset | undefined;
  declare at: string; // key of the engine that is changed; "" for a new one
  declare keys: readonly Key[]; // the present options of the engine that is changed
  declare others: readonly unknown[]; // the entries of the list, before which a new engine is put
  declare private kind: string;
  declare private values: Readonly<Record<string, unknown>>; // typed values by option
  declare private faults: readonly Fault[];
  declare private refused: Said;
  declare private busy: boolean;
  declare private texts: Explained;
  private textsOf: Language = "en";

  static styles = [base, list, css`
    :host { flex: 1 1 100%; }
    .kinds { display: grid; gap: var(--s2); grid-template-columns: repeat(auto-fill, minmax(min(100%, 16rem), 1fr)); border: 0; padding: 0; margin: 0; min-width: 0; }
    .kinds legend { font-weight: 600; padding: 0; margin-bottom: var(--s2); }
    .kinds label { display: flex; gap: var(--s3); align-items: flex-start; padding: var(--s3); background: var(--surface); border-radius: var(--round); cursor: pointer; min-height: var(--target); }
    .kinds label:has(:checked) { background: var(--soft); }
    .kinds span { display: grid; gap: var(--s1); }
    .fields { grid-template-columns: repeat(auto-fill, minmax(min(100%, 16rem), 1fr)); }
  `];

  constructor() {
    super();
    this.kinds = [];
    this.at = this.kind = "";
    this.keys = this.others = [];
    this.values = {};
    this.faults = [];
    this.refused = "";
    this.busy = false;
    this.texts = {};
  }

  protected willUpdate(changed: PropertyValues<this>): void {
    if (changed.has("preset") && (!this.at || !this.hasUpdated)) this.choose(this.preset?.kind ?? "", this.preset?.values);
    const l = language();
    if (l === this.textsOf) return;
    this.textsOf = l;
    explained(l).then((texts) => l === this.textsOf && (this.texts = texts), () => (this.texts = {})); // else in English
  }

  private said(about: string | undefined, doc: string | undefined): Said {
    return this.texts[about ?? ""] ?? english(doc);
  }

  // path returns the key under which the server reports faults of the engine.
  private get path(): string {
    return this.at || `${this.list}.0`;
  }

  render() {
    const k = this.kinds.find((one) => one.kind === this.kind);
    const fields = (k?.options ?? []).filter((o) => !o.sections); // sections are YAML, for the settings
    const more = fields.filter((o) => !usual.includes(o.key));
    const unplaced = this.faults.filter((f) => !fields.some((o) => f.key === `${this.path}.${o.key}`));
    return html`<form class="form well" novalidate @submit=${this.save} data-test="engine-form">
      ${this.preset?.fixed ? nothing : html`<fieldset class="kinds"><legend>${t("which")}</legend>
        ${this.kinds.map((one) => html`<label><input type="radio" name="kind" value=${one.kind} .checked=${one.kind === this.kind} @change=${() => this.choose(one.kind)}>
          <span><b>${one.kind}</b><span class="small">${this.said(one.about, one.summary)}</span></span></label>`)}</fieldset>`}
      ${unplaced.length + (this.refused ? 1 : 0) > 0 ? html`<div class="trouble" role="alert" data-test="refused">${this.refused ? html`<p>${this.refused}</p>` : nothing}
        ${unplaced.map((f) => html`<p>${faulty({ ...f, key: "" })}</p>`)}</div>` : nothing}
      ${k ? html`<div class="fields">${fields.filter((o) => usual.includes(o.key)).map((o) => this.field(o))}</div>` : nothing}
      ${more.length > 0 ? html`<details ?open=${more.some((o) => this.faults.some((f) => f.key === `${this.path}.${o.key}`))}><summary>${t("more")}</summary>
        <div class="fields">${more.map((o) => this.field(o))}</div></details>` : nothing}
      ${k ? html`<p class="small muted">${t(this.at ? "nextTurn" : "comesFirst")}</p>` : nothing}
      <div class="row"><p-button kind="main" type="submit" ?busy=${this.busy} ?disabled=${!k} data-test="engine-save">${t(this.at ? "save" : "add")}</p-button>
        <p-button kind="quiet" @click=${() => this.dispatchEvent(new Event("cancel"))} data-test="engine-cancel">${t("cancel")}</p-button></div>
    </form>`;
  }

  private choose(kind: string, values: Readonly<Record<string, unknown>> = {}): void {
    this.kind = kind;
    this.values = values;
    this.faults = [];
    this.refused = "";
  }

  private present(o: Option): Key | undefined {
    return this.keys.find((k) => k.key === `${this.at}.${o.key}`);
  }

  private field(o: Option): unknown {
    const now = this.present(o);
    const value = o.key in this.values ? this.values[o.key] : o.type === "secret" ? "" : now?.value;
    const label = o.key in labels ? t(labels[o.key as keyof typeof labels]) : o.key;
    const hint = o.type === "secret" && isSet(now) ? t("secretSet") : this.said(o.about, o.doc);
    const error = below(this.faults, `${this.path}.${o.key}`);
    const typed = (e: Event) => this.type(o, (e.target as HTMLInputElement).value);
    const field = (control: unknown, inline = false) => html`<p-field ?inline=${inline} label=${label} .hint=${hint} .error=${error} data-option=${o.key}>${control}</p-field>`;
    const known = this.preset?.lists?.[o.key] ?? (o.type === "choice" ? (o.choices ?? []).map((name) => ({ name })) : []);
    if (known.length > 0) {
      const chosen = plain(value);
      const all: readonly Named[] = [{ name: "" }, ...known, ...(chosen === "" || known.some((k) => k.name === chosen) ? [] : [{ name: chosen }])];
      return field(html`<select @change=${typed}>${all.map((k) => html`<option value=${k.name} ?selected=${k.name === chosen}>${k.title || k.name || "–"}</option>`)}</select>`);
    }
    switch (o.type) {
      case "bool":
        return field(html`<input type="checkbox" .checked=${value === true} @change=${(e: Event) => this.type(o, (e.target as HTMLInputElement).checked)} />`, true);
      case "number":
        return field(html`<input type="number" step="any" inputmode="decimal" .value=${plain(value)} @input=${typed} />`);
      case "secret":
        return field(html`<input type="password" autocomplete="new-password" placeholder=${isSet(now) ? "••••••" : ""} .value=${plain(value)} @input=${typed} />`);
      case "list":
        return field(html`<textarea rows="2" spellcheck="false" .value=${plain(value)} @input=${typed}></textarea>`);
    }
    return field(html`<input autocomplete="off" autocapitalize="none" spellcheck="false" inputmode=${o.key === "url" ? "url" : "text"} .value=${plain(value)} @input=${typed} />`);
  }

  private type(o: Option, value: unknown): void {
    this.values = { ...this.values, [o.key]: value };
    this.faults = this.faults.filter((f) => f.key !== `${this.path}.${o.key}`);
  }

  // value returns a typed value as the server wants it; null for none.
  private value(o: Option, typed: unknown): unknown {
    if (typeof typed !== "string") return typed;
    const text = typed.trim();
    if (text === "") return null;
    if (o.type === "number") return Number(text);
    return o.type === "list" ? text.split("\n").map((line) => line.trim()).filter((line) => line !== "") : text;
  }

  private async save(e: Event): Promise<void> {
    e.preventDefault();
    const k = this.kinds.find((one) => one.kind === this.kind);
    if (!k || this.busy) return;
    const set: Record<string, unknown> = {};
    for (const o of k.options) {
      if (!(o.key in this.values)) continue;
      const value = this.value(o, this.values[o.key]);
      if (value === null && (!this.at || o.type === "secret" || !this.present(o))) continue; // an empty secret leaves the present one
      set[this.at ? `${this.at}.${o.key}` : o.key] = value;
    }
    this.busy = true;
    this.faults = [];
    this.refused = "";
    try {
      if (!this.at) await send("PUT", `api/v1/config/${this.list}`, [{ kind: this.kind, ...set }, ...this.others]);
      else if (Object.keys(set).length > 0) await send("PUT", "api/v1/config", { set });
      this.dispatchEvent(new Event("done"));
    } catch (failure) {
      const faults = failure instanceof Refusal ? (failure.body as { faults?: Fault[] } | undefined)?.faults : undefined;
      if (faults && faults.length > 0) this.faults = faults;
      else this.refused = sentence(failure);
      await this.updateComplete;
      this.renderRoot.querySelector<HTMLElement>("[aria-invalid]")?.focus();
    }
    this.busy = false;
  }
}

customElements.define("p-engine-form", EngineForm);
