// <p-config-form>: a form with a field for each key of the configuration, grouped by section.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { explained, type Explained } from "../lib/explained.js";
import { english, type Said } from "../lib/said.js";
import { base } from "../lib/ui.js";
import { Spoken } from "../lib/view.js";
import { catalogue, language, type Language } from "../lib/words.js";
import { list } from "./list.js";
import { below, faulty, isSet, plain, type Changes, type Fault, type Key } from "./settings.types.js";

const t = catalogue("settings");

// Entry is an entry of a list of sections, such as an engine. The names of its keys begin with its path.
interface Entry {
  path: string; // speech.recognizers.0
  list: string; // speech.recognizers
  n: number;
  keys: Key[];
}

export class ConfigForm extends Spoken {
  static properties = { keys: { attribute: false }, changes: { attribute: false }, faults: { attribute: false }, query: { state: true }, texts: { state: true } };
  declare keys: readonly Key[];
  declare changes: Changes;
  declare faults: readonly Fault[];
  declare private query: string;
  declare private texts: Explained;
  private textsOf: Language = "en";

  static styles = [base, list, css`
    details.section { background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); box-shadow: var(--shadow); padding: 0.4rem 1.1rem; }
    details.section > summary { display: flex; flex-wrap: wrap; gap: 0.3rem 1rem; align-items: center; justify-content: space-between; min-height: 2.6rem; }
    details.section > summary::before { content: "▸"; color: var(--muted); transition: rotate 0.15s; }
    details.section[open] > summary::before { rotate: 90deg; }
    details.section > summary h2 { flex: 1; }
    details.section > summary::-webkit-details-marker { display: none; }
    .key { padding: 0.9rem 0; border-top: 1px solid var(--line); display: grid; gap: 0.4rem; }
    .doc { color: var(--muted); font-size: 0.875rem; white-space: pre-line; }
    .changed { border-inline-start: 3px solid var(--accent); padding-inline-start: 0.8rem; margin-inline-start: -0.8rem; }
    .entry { border: 1px solid var(--line); border-radius: 10px; padding: 0.6rem 0.9rem; margin: 0.6rem 0; }
    .entry header { display: flex; flex-wrap: wrap; gap: 0.6rem; justify-content: space-between; align-items: center; }
    .entry .key:first-of-type { border-top: 0; }
    .adding { display: flex; flex-wrap: wrap; gap: 0.6rem; align-items: end; padding: 0.6rem 0; }
  `];

  constructor() {
    super();
    this.keys = [];
    this.changes = new Map();
    this.faults = [];
    this.query = "";
    this.texts = {};
  }

  protected willUpdate(): void {
    const l = language();
    if (l === this.textsOf) return;
    this.textsOf = l;
    // If the translations cannot be loaded, the server's English texts are shown.
    explained(l).then((texts) => l === this.textsOf && (this.texts = texts), () => (this.texts = {}));
  }

  // doc returns the description of a key.
  private doc(k: Key): Said {
    return this.texts[k.about ?? ""] ?? english(k.doc);
  }

  render() {
    const words = this.query.toLowerCase().split(/\s+/).filter((w) => w !== "");
    const found = this.keys.filter((k) => words.every((w) => `${k.key} ${this.texts[k.about ?? ""] ?? k.doc ?? ""}`.toLowerCase().includes(w)));
    const sections = group(found);
    const unplaced = this.faults.filter((f) => !this.keys.some((k) => k.key === f.key));
    return html`<div class="stack">
      ${unplaced.length > 0 ? html`<ul class="trouble" role="alert" id="faults">${unplaced.map((f) => html`<li>${faulty(f)}</li>`)}</ul>` : nothing}
      <p-field label=${t("search")}><input type="search" id="find" autocomplete="off" @input=${(e: Event) => (this.query = (e.target as HTMLInputElement).value)} /></p-field>
      ${sections.size === 0 ? html`<p-empty heading=${t("noneFound")}></p-empty>` : nothing}
      ${repeat(sections, ([name]) => name, ([name, keys]) => this.section(name, keys, words.length > 0))}
    </div>`;
  }

  private section(name: string, keys: readonly Key[], searching: boolean): unknown {
    const set = keys.filter((k) => k.from !== "default").length;
    const open = searching || keys.some((k) => this.faults.some((f) => f.key === k.key));
    const entries = entriesOf(keys);
    const inEntry = new Set(entries.flatMap((e) => e.keys));
    return html`<details class="section" data-section=${name} ?open=${open}>
      <summary><h2>${name === "" ? t("general") : name}</h2>
        <span class="small muted">${t("changed", { n: set, all: keys.length })}</span></summary>
      ${keys.filter((k) => !inEntry.has(k)).map((k) => (k.kinds || holdsSections(k, keys) ? this.entries(k, entries.filter((e) => e.list === k.key)) : this.key(k)))}
    </details>`;
  }

  private entries(k: Key, entries: readonly Entry[]): unknown {
    const kinds = k.kinds ?? {};
    const next = `${k.key}.${(Array.isArray(k.value) ? k.value : []).length}`;
    const added = this.changes.get(next);
    const fixed = !!k.by;
    const back = this.changes.get(k.key) === null;
    return html`<div class="key ${back ? "changed" : ""}" data-key=${k.key}>
      <h3 class="code">${k.key}</h3>
      ${k.doc ? html`<p class="doc">${this.doc(k)}</p>` : nothing}
      ${this.origin(k)}
      ${entries.map((e) => {
        const removed = this.changes.has(e.path);
        return html`<div class="entry ${removed ? "changed" : ""}"><header><h4>${t("entry", { list: k.key, n: e.n + 1 })}</h4>
          ${fixed || back ? nothing : removed
            ? html`<p-button label=${t("undoOf", { key: e.path })} @click=${() => this.change(e.path, undefined)}>${t("undo")}</p-button>`
            : html`<p-button kind="danger" label=${t("removeOf", { list: k.key, n: e.n + 1 })} @click=${() => this.change(e.path, null)}>${t("removeEntry")}</p-button>`}</header>
          ${removed ? html`<p class="small">${t("willRemove")}</p>` : e.keys.map((one) => this.key(one))}</div>`;
      })}
      ${fixed || back ? nothing : added !== undefined
        ? html`<div class="changed" data-key=${next}><p-field label=${t("addEntry", { list: k.key })} hint=${t("asYAML")} .error=${below(this.faults, next)}>
            <textarea rows="6" spellcheck="false" .value=${plain(added)} @change=${(e: Event) => this.change(next, (e.target as HTMLTextAreaElement).value)}></textarea></p-field>
            <p-button label=${t("undoOf", { key: next })} @click=${() => this.change(next, undefined)}>${t("undo")}</p-button></div>`
        : html`<form class="adding" @submit=${(e: Event) => {
            e.preventDefault();
            const kind = new FormData(e.target as HTMLFormElement).get("kind");
            this.change(next, kind === null ? "" : (kinds[String(kind)] ?? []).map((key) => (key === "kind" ? `kind: ${kind}\n` : `${key}:\n`)).join(""));
          }}>${Object.keys(kinds).length === 0 ? nothing : html`<p-field label=${t("addEntry", { list: k.key })}>
            <select name="kind">${Object.keys(kinds).sort().map((c) => html`<option value=${c}>${c}</option>`)}</select></p-field>`}
            <p-button type="submit" label=${t("addEntry", { list: k.key })}>${t("add")}</p-button></form>`}
    </div>`;
  }

  private key(k: Key): unknown {
    const changed = this.changes.has(k.key);
    const fixed = this.isFixed(k);
    const fault = below(this.faults, k.key);
    const standard = plain(k.default).split("\n").join(", ");
    const note = [
      k.type === "secret" ? t(isSet(k) ? "secretSet" : "secretNone") : "",
      k.sections ? t("asYAML") : k.type === "list" ? t("perLine") : "",
      k.type === "secret" || k.sections ? "" : standard === "" ? t("defaultEmpty") : t("default", { value: k.type === "bool" ? t(k.default === true ? "on" : "off") : standard }),
    ].filter((s) => s !== "").join(" ");
    return html`<div class="key ${changed ? "changed" : ""}" data-key=${k.key} data-test="key">
      ${this.field(k, fixed, fault)}
      ${k.doc ? html`<p class="doc">${this.doc(k)}</p>` : nothing}
      <p class="meta"><span>${note}</span></p>
      ${this.origin(k)}
      ${fixed || !changed || this.changes.get(k.key) === null ? nothing
        : html`<div class="row"><p-button label=${t("undoOf", { key: k.key })} @click=${() => this.change(k.key, undefined)} data-test="undo">${t("undo")}</p-button></div>`}
    </div>`;
  }

  private isFixed(k: Key): boolean {
    return !!k.by || k.from === "environment" || k.from === "flag";
  }

  // origin renders the origin of a value, and a button that resets the value: a changed key to the value in the owner's
  // file, and a key of an entry to its default.
  private origin(k: Key): unknown {
    const inEntry = ofEntry.test(k.key);
    if (this.isFixed(k)) return html`<p class="small">${this.by(k)}</p>`;
    if (this.changes.get(k.key) === null) {
      return html`<div class="row"><p class="small grow">${t(inEntry ? "willReset" : "willGiveBack")}</p>
        <p-button label=${t("undoOf", { key: k.key })} @click=${() => this.change(k.key, undefined)} data-test="undo">${t("undo")}</p-button></div>`;
    }
    if (k.from === "default") return nothing;
    const back = !this.changes.has(k.key) && (inEntry || k.from === "settings");
    return html`<div class="row"><span class="tag" data-from=${k.from}>${t(k.from === "settings" ? "changedHere" : "given")}</span>
      ${!back ? nothing : html`<p-button label=${t(inEntry ? "resetOf" : "giveBackOf", { key: k.key })} @click=${() => this.change(k.key, null)} data-test="reset">${t(inEntry ? "reset" : "giveBack")}</p-button>`}</div>`;
  }

  private by(k: Key): string {
    return t("byOther", { by: k.by || t(k.from === "flag" ? "flag" : "environment") });
  }

  private field(k: Key, fixed: boolean, fault: Said): unknown {
    const value = this.changes.has(k.key) ? this.changes.get(k.key) ?? k.default : k.value ?? k.default;
    const typed = (e: Event) => this.change(k.key, (e.target as HTMLInputElement).value);
    if (k.sections) {
      const text = this.changes.get(k.key) ?? k.text ?? "";
      return html`<p-field label=${k.key} .error=${fault}><textarea rows="6" .value=${plain(text)} ?disabled=${fixed} spellcheck="false" @change=${typed}></textarea></p-field>`;
    }
    switch (k.type) {
      case "bool":
        return html`<p-field inline label=${k.key} .error=${fault}><input type="checkbox" .checked=${value === true} ?disabled=${fixed}
          @change=${(e: Event) => this.change(k.key, (e.target as HTMLInputElement).checked)} /></p-field>`;
      case "choice": {
        const choices = k.choices ?? [];
        const all = choices.includes(plain(value)) ? choices : [plain(value), ...choices];
        return html`<p-field label=${k.key} .error=${fault}><select ?disabled=${fixed} .value=${plain(value)} @change=${typed}>
          ${all.map((c) => html`<option value=${c} ?selected=${c === plain(value)}>${c === "" ? "–" : c}</option>`)}</select></p-field>`;
      }
      case "number":
        return html`<p-field label=${k.key} .error=${fault}><input type="number" step="any" .value=${plain(value)} ?disabled=${fixed}
          @change=${(e: Event) => {
            const text = (e.target as HTMLInputElement).value;
            this.change(k.key, text === "" ? null : Number(text));
          }} /></p-field>`;
      case "secret":
        return html`<p-field label=${k.key} .error=${fault}><input type="password" autocomplete="new-password" placeholder=${isSet(k) ? "••••••" : ""}
          .value=${this.changes.has(k.key) ? plain(this.changes.get(k.key)) : ""} ?disabled=${fixed} @change=${(e: Event) => {
            const text = (e.target as HTMLInputElement).value;
            this.change(k.key, text === "" ? undefined : text); // an empty field leaves the secret unchanged
          }} /></p-field>`;
      case "list":
        return html`<p-field label=${k.key} .error=${fault}><textarea rows="3" .value=${plain(value)} ?disabled=${fixed} spellcheck="false"
          @change=${(e: Event) => this.change(k.key, (e.target as HTMLTextAreaElement).value.split("\n").map((l) => l.trim()).filter((l) => l !== ""))}></textarea></p-field>`;
      default:
        return html`<p-field label=${k.key} .error=${fault}><input autocomplete="off" spellcheck="false" .value=${plain(value)} ?disabled=${fixed} @change=${typed} /></p-field>`;
    }
  }

  // change dispatches a change; the value undefined reverts it.
  private change(key: string, value: unknown): void {
    this.dispatchEvent(new CustomEvent("changed", { detail: { key, value } }));
  }
}

// group groups keys by the first part of their path. Keys without a section have the name "", which is first.
function group(keys: readonly Key[]): Map<string, Key[]> {
  const sections = new Map<string, Key[]>([["", []]]);
  for (const k of keys) {
    const at = k.key.indexOf(".");
    const head = at < 0 ? k.key : k.key.slice(0, at);
    const name = at < 0 && !keys.some((other) => other.key.startsWith(`${k.key}.`)) ? "" : head;
    sections.set(name, [...(sections.get(name) ?? []), k]);
  }
  if (sections.get("")?.length === 0) sections.delete("");
  return sections;
}

const ofEntry = /^(.+)\.(\d+)\.[^.]+$/;

function entriesOf(keys: readonly Key[]): Entry[] {
  const all = new Map<string, Entry>();
  for (const k of keys) {
    const found = ofEntry.exec(k.key);
    if (!found) continue;
    const path = `${found[1]}.${found[2]}`;
    const entry = all.get(path) ?? { path, list: found[1]!, n: Number(found[2]), keys: [] };
    entry.keys.push(k);
    all.set(path, entry);
  }
  return [...all.values()];
}

function holdsSections(k: Key, keys: readonly Key[]): boolean {
  return k.type === "list" && keys.some((one) => ofEntry.exec(one.key)?.[1] === k.key);
}

customElements.define("p-config-form", ConfigForm);
