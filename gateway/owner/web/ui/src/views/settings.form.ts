// <p-config-form>: a form with a field for each key of the configuration, grouped by what people think of, and a search.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import type { Said } from "../lib/said.js";
import { base } from "../lib/ui.js";
import { Spoken } from "../lib/view.js";
import { catalogue } from "../lib/words.js";
import { list } from "./list.js";
import { field, inWords } from "./settings.fields.js";
import { places, titleOf, wordsFor, type Place } from "./settings.places.js";
import { Texts, find } from "./settings.texts.js";
import { below, faulty, isSet, plain, type Changes, type Fault, type Group, type Key } from "./settings.types.js";

const t = catalogue("settings");

// Entry is an entry of a list of sections, such as an engine. The names of its keys begin with its path.
interface Entry {
  path: string; // speech.recognizers.0
  list: string; // speech.recognizers
  n: number;
  keys: Key[];
}

const others = "advanced"; // the group of keys in no other group

export class ConfigForm extends Spoken {
  static properties = {
    keys: { attribute: false }, groups: { attribute: false }, changes: { attribute: false }, faults: { attribute: false }, file: {}, first: {},
    texts: { attribute: false }, query: { state: true }, open: { state: true },
  };
  declare keys: readonly Key[];
  declare groups: readonly Group[];
  declare changes: Changes;
  declare faults: readonly Fault[];
  declare file: string; // path of the owner's file
  declare texts: Texts;
  declare first: string; // name of the group that is open at first
  declare private query: string;
  declare private open: ReadonlySet<string>; // names of open groups

  static styles = [base, list, css`
    .groups { display: grid; gap: var(--s2); grid-template-columns: minmax(0, 1fr); }
    details.group { background: var(--surface); border-radius: var(--radius); box-shadow: var(--shadow); padding: 0 var(--s4); }
    details.group > summary { display: grid; grid-template-columns: auto 1fr auto; gap: 0 var(--s3); align-items: center; padding: var(--s3) 0; min-height: var(--target); list-style: none; }
    details.group > summary::before { content: "▸"; color: var(--muted); transition: rotate var(--quick); grid-row: span 2; }
    details.group[open] > summary::before { rotate: 90deg; }
    details.group > summary::-webkit-details-marker { display: none; }
    summary .about { grid-column: 2 / -1; font-weight: 400; }
    h3.under { padding-top: var(--s5); font-size: var(--t-lead); }
    .key p-field { max-width: 34rem; }
    .key { padding: var(--s3) 0; border-top: 1px solid var(--line); display: grid; gap: var(--s2); grid-template-columns: minmax(0, 1fr); }
    h3.under + .key { border-top: 0; }
    .found .key { background: var(--surface); border: 0; border-radius: var(--radius); box-shadow: var(--shadow); padding: var(--s4); }
    .doc { color: var(--muted); font-size: var(--t-small); white-space: pre-line; max-width: 46rem; }
    .changed { border-inline-start: 3px solid var(--accent); padding-inline-start: var(--s3); }
    .trail { padding-bottom: var(--s1); }
    .found .changed { padding-inline-start: calc(var(--s4) - 3px); }
    .compound { display: flex; gap: var(--s2); align-items: center; max-width: 22rem; }
    .compound select { width: auto; flex: 0 1 auto; } .compound input { flex: 1 1 6rem; }
    .several .compound > select { flex: 1; }
    .several { display: grid; gap: var(--s2); }
    .other { margin-top: var(--s2); }
    .times { display: flex; flex-wrap: wrap; gap: var(--s3); } .times label { display: grid; gap: var(--s1); font-size: var(--t-small); font-weight: 600; flex: 0 1 9rem; }
    .entry { border: 1px solid var(--line); border-radius: var(--round); padding: var(--s2) var(--s3); }
    .entry header { display: flex; flex-wrap: wrap; gap: var(--s2); justify-content: space-between; align-items: center; }
    .entry .key:first-of-type { border-top: 0; }
    .adding { display: flex; flex-wrap: wrap; gap: var(--s2); align-items: end; }
    .links { display: grid; gap: var(--s1); padding: var(--s3) 0; }
    .links a { display: inline-flex; min-height: var(--target); align-items: center; }
    .found .links { padding: 0; } p-empty .links { text-align: start; }
  `];

  constructor() {
    super();
    this.keys = [];
    this.groups = [];
    this.changes = new Map();
    this.faults = [];
    this.file = "";
    this.first = "";
    this.query = "";
    this.texts = new Texts();
    this.open = new Set();
  }

  protected willUpdate(changed: Map<string, unknown>): void {
    if (changed.has("first") && this.first !== "") this.open = new Set([this.first]);
  }

  render() {
    const unplaced = this.faults.filter((f) => !this.keys.some((k) => f.key === k.key || f.key?.startsWith(`${k.key}.`)));
    return html`<div class="stack">
      ${unplaced.length > 0 ? html`<ul class="trouble" role="alert" id="faults">${unplaced.map((f) => html`<li>${faulty(f)}</li>`)}</ul>` : nothing}
      <p-field label=${t("search")} hint=${t("searchHint")}><input type="search" id="find" autocomplete="off" @input=${(e: Event) => (this.query = (e.target as HTMLInputElement).value)} /></p-field>
      ${this.query.trim() === "" ? html`<div class="groups">${repeat(this.groups, (g) => g.name, (g) => this.group(g))}</div>` : this.found(this.query.trim())}
    </div>`;
  }

  // ---- groups

  private group(g: Group): unknown {
    const names = this.groups.map((o) => o.name);
    const keys = this.keys.filter((k) => k.group === g.name || (g.name === others && !names.includes(k.group)));
    const open = this.open.has(g.name) || keys.some((k) => below(this.faults, k.key) !== "");
    return html`<details class="group" data-group=${g.name} ?open=${open} @toggle=${(e: Event) => this.toggled(g.name, (e.target as HTMLDetailsElement).open)}>
      <summary><h2>${this.texts.label(`group.${g.name}`, g.label)}</h2><span class="small muted about">${this.texts.label(`about.${g.name}`, g.about)}</span></summary>
      ${open ? html`${this.list(keys)}${this.links(places.filter((p) => p.group === g.name))}
        ${g.name === others ? html`<div class="key"><slot name="text"></slot></div>` : nothing}` : nothing}
    </details>`;
  }

  private toggled(name: string, open: boolean): void {
    if (open === this.open.has(name)) return;
    const names = new Set(this.open);
    if (open) names.add(name);
    else names.delete(name);
    this.open = names;
  }

  // list renders keys with the headings of their sections.
  private list(keys: readonly Key[]): unknown {
    const entries = entriesOf(keys);
    const inEntry = new Set(entries.flatMap((e) => e.keys));
    let under: string | undefined, about: string | undefined;
    return keys.filter((k) => !inEntry.has(k)).map((k) => {
      const told = k.about !== undefined && k.about === about; // the key before has the same description
      about = k.about;
      const heading = k.under && k.under.key !== under ? html`<h3 class="under">${this.texts.label(k.under.key, k.under.label)}</h3>` : nothing;
      under = k.under?.key;
      return html`${heading}${this.whole(told ? { ...k, doc: "" } : k, entries)}`;
    });
  }

  private whole(k: Key, entries = entriesOf(this.keys)): unknown {
    const own = entries.filter((e) => e.list === k.key);
    return k.kinds || own.length > 0 ? this.entries(k, own) : this.key(k);
  }

  private links(to: readonly Place[]): unknown {
    return to.length === 0 ? nothing : html`<ul class="links">${to.map((p) => html`<li><a href=${p.href}>${titleOf(p)}</a></li>`)}</ul>`;
  }

  // ---- search

  private found(query: string): unknown {
    const pages = [...this.keys.map((k) => ({ it: k as Key | Place, names: this.texts.names(k) + this.group_(k), text: this.texts.help(k) })),
      ...places.map((p) => ({ it: p as Key | Place, names: `${titleOf(p)} ${wordsFor(p)}`, text: "" }))];
    const exact = this.keys.filter((k) => k.key === query);
    const results = [...exact, ...find(query, pages).filter((r) => !exact.includes(r as Key))];
    const keys = results.filter((r): r is Key => "key" in r);
    const shown = keys.filter((k, i) => !keys.slice(0, i).some((o) => k.key.startsWith(`${o.key}.`) || o.key.startsWith(`${k.key}.`)));
    const elsewhere = results.filter((r): r is Place => "href" in r);
    if (results.length === 0) return html`<p-empty heading=${t("noneFound")}><p>${t("lookElsewhere")}</p>${this.links(places)}</p-empty>`;
    const nearest = "href" in results[0]!; // the best result is elsewhere
    const also = elsewhere.length === 0 ? nothing : html`<p-card heading=${t("elsewhere")}>${this.links(elsewhere)}</p-card>`;
    return html`<div class="stack found" id="found">${nearest ? also : nothing}
      ${repeat(shown, (k) => k.key, (k) => html`<div><p class="small muted trail">${this.trail(k)}</p>${this.whole(k)}</div>`)}${nearest ? nothing : also}</div>`;
  }

  private group_(k: Key): string {
    const g = this.groups.find((o) => o.name === k.group);
    return g ? ` ${g.label} ${this.texts.name(`group.${g.name}`, g.label)}` : "";
  }

  // trail renders the names of what a key is in.
  private trail(k: Key): unknown {
    const g = this.groups.find((o) => o.name === k.group);
    const entry = ofEntry.exec(k.key);
    const list = entry ? this.keys.find((o) => o.key === entry[1]) : undefined;
    const parts = [g ? this.texts.label(`group.${g.name}`, g.label) : "", k.under ? this.texts.label(k.under.key, k.under.label) : "",
      list ? this.texts.label(list.key, list.label) : "", entry ? this.kindOf(`${entry[1]}.${entry[2]}`, Number(entry[2])) : ""];
    return parts.filter((p) => p !== "").map((p, i) => html`${i > 0 ? " › " : nothing}${p}`);
  }

  // kindOf returns the kind of an entry, or its number.
  private kindOf(path: string, n: number): string {
    return plain(this.keys.find((k) => k.key === `${path}.kind`)?.value) || String(n + 1);
  }

  // ---- keys

  private entries(k: Key, entries: readonly Entry[]): unknown {
    const kinds = k.kinds ?? {};
    const next = `${k.key}.${(Array.isArray(k.value) ? k.value : []).length}`;
    const added = this.changes.get(next);
    const fixed = !!k.by;
    const back = this.changes.get(k.key) === null;
    const name = this.texts.name(k.key, k.label);
    return html`<div class="key ${back ? "changed" : ""}" data-key=${k.key}>
      <h3>${this.texts.label(k.key, k.label)}</h3>
      ${k.doc ? html`<p class="doc">${this.texts.doc(k)}</p>` : nothing}
      ${this.meta(k, "")}
      ${entries.map((e) => {
        const removed = this.changes.has(e.path);
        return html`<div class="entry ${removed ? "changed" : ""}"><header><h4>${e.n + 1}. ${this.kindOf(e.path, e.n)}</h4>
          ${fixed || back ? nothing : removed
            ? html`<p-button label=${t("undoOf", { key: e.path })} @click=${() => this.change(e.path, undefined)}>${t("undo")}</p-button>`
            : html`<p-button kind="danger" label=${t("removeOf", { list: name, n: e.n + 1 })} @click=${() => this.change(e.path, null)}>${t("removeEntry")}</p-button>`}</header>
          ${removed ? html`<p class="small">${t("willRemove")}</p>` : e.keys.map((one) => this.key(one))}</div>`;
      })}
      ${fixed || back ? nothing : added !== undefined
        ? html`<div class="changed" data-key=${next}><p-field label=${t("addEntry", { list: name })} hint=${t("asYAML")} .error=${below(this.faults, next)}>
            <textarea rows="6" spellcheck="false" .value=${plain(added)} @change=${(e: Event) => this.change(next, (e.target as HTMLTextAreaElement).value)}></textarea></p-field>
            <p-button label=${t("undoOf", { key: next })} @click=${() => this.change(next, undefined)}>${t("undo")}</p-button></div>`
        : html`<form class="adding" @submit=${(e: Event) => {
            e.preventDefault();
            const kind = new FormData(e.target as HTMLFormElement).get("kind");
            this.change(next, kind === null ? "" : (kinds[String(kind)] ?? []).map((key) => (key === "kind" ? `kind: ${kind}\n` : `${key}:\n`)).join(""));
          }}>${Object.keys(kinds).length === 0 ? nothing : html`<p-field label=${t("addEntry", { list: name })}>
            <select name="kind">${Object.keys(kinds).sort().map((c) => html`<option value=${c}>${c}</option>`)}</select></p-field>`}
            <p-button type="submit" label=${t("addEntry", { list: name })}>${t("add")}</p-button></form>`}
    </div>`;
  }

  private key(k: Key): unknown {
    const typed = this.changes.has(k.key);
    const fixed = this.isFixed(k);
    const value = typed ? (this.changes.get(k.key) ?? k.default) : (k.value ?? k.default);
    const standard = inWords(k, k.default, this.texts);
    const note = k.type === "secret" ? t(isSet(k) ? "secretSet" : "secretNone")
      : k.sections ? t("asYAML")
      : `${k.type === "list" ? `${t("perLine")} ` : ""}${standard === "" ? t("defaultEmpty") : t("default", { value: standard })}`;
    return html`<div class="key ${typed ? "changed" : ""}" data-key=${k.key} data-test="key">
      ${field({ key: k, value, fixed, typed, fault: this.fault(k), texts: this.texts, change: (v) => this.change(k.key, v) })}
      ${k.doc ? html`<p class="doc">${this.texts.doc(k)}</p>` : nothing}
      ${this.meta(k, note)}
      ${fixed || !typed || this.changes.get(k.key) === null ? nothing
        : html`<div class="row"><p-button kind="quiet" label=${t("undoOf", { key: k.key })} @click=${() => this.change(k.key, undefined)} data-test="undo">${t("undo")}</p-button></div>`}
    </div>`;
  }

  // fault returns the faults of a key, without those that are shown at a key in it.
  private fault(k: Key): Said {
    return below(this.faults.filter((f) => !this.keys.some((o) => o.key.length > k.key.length && (f.key === o.key || f.key?.startsWith(`${o.key}.`)))), k.key);
  }

  private isFixed(k: Key): boolean {
    return !!k.by || k.from === "environment" || k.from === "flag";
  }

  // meta renders the small print of a key: its default, whether it needs a restart, its name in the file and where the
  // value is from.
  private meta(k: Key, note: string): unknown {
    return html`<p class="meta">${note ? html`<span>${note}</span>` : nothing}${k.restart ? html`<span data-test="later">${t("later")}</span>` : nothing}<code>${k.key}</code></p>
      ${this.origin(k)}`;
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
    return html`<div class="row"><span class="tag" data-from=${k.from}>${k.from === "settings" ? t("changedHere") : t("given", { file: this.file.split("/").at(-1)! })}</span>
      ${!back ? nothing : html`<p-button kind="quiet" label=${t(inEntry ? "resetOf" : "giveBackOf", { key: k.key })} @click=${() => this.change(k.key, null)} data-test="reset">${t(inEntry ? "reset" : "giveBack")}</p-button>`}</div>`;
  }

  private by(k: Key): string {
    return t("byOther", { by: k.by || t(k.from === "flag" ? "flag" : "environment") });
  }

  // change dispatches a change; the value undefined reverts it.
  private change(key: string, value: unknown): void {
    this.dispatchEvent(new CustomEvent("changed", { detail: { key, value } }));
  }
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

customElements.define("p-config-form", ConfigForm);
