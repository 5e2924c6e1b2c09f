// The controls for values of keys: durations with units, hours, languages, lists and others.

import { html, nothing } from "lit";
import type { Said } from "../lib/said.js";
import { catalogue, languageName, locale } from "../lib/words.js";
import type { Texts } from "./settings.texts.js";
import { isSet, plain, type Key } from "./settings.types.js";

const t = catalogue("settings");

// Use is a key with what is shown of it.
export interface Use {
  key: Key;
  value: unknown;
  fixed: boolean; // it cannot be changed here
  typed: boolean; // value was changed and is not saved
  fault: Said;
  texts: Texts;
  change: (value: unknown) => void; // undefined reverts a change, null resets the key
}

// field renders the label and the control of a key.
export function field(u: Use): unknown {
  const k = u.key;
  const label = u.texts.label(k.key, k.label);
  const typed = (e: Event) => u.change((e.target as HTMLInputElement).value);
  const one = (control: unknown) => html`<p-field .label=${label} .error=${u.fault}>${control}</p-field>`;
  if (k.sections) {
    const text = u.typed ? u.value : (k.text ?? "");
    return one(html`<textarea rows="6" .value=${plain(text)} ?disabled=${u.fixed} spellcheck="false" @change=${typed}></textarea>`);
  }
  switch (k.format) {
    case "hours":
      return hours(u, label);
    case "languages":
      return one(tongues(u));
    case "timezone":
      return one(html`<select ?disabled=${u.fixed} .value=${plain(u.value)} @change=${typed}>${choice("", plain(u.value), t("machineZone"))}
        ${zones(plain(u.value)).map((z) => choice(z, plain(u.value), z.replaceAll("_", " ")))}</select>`);
  }
  switch (k.type) {
    case "bool":
      return html`<p-field inline .label=${label} .error=${u.fault}><input type="checkbox" .checked=${u.value === true} ?disabled=${u.fixed}
        @change=${(e: Event) => u.change((e.target as HTMLInputElement).checked)} /></p-field>`;
    case "choice": {
      const value = plain(u.value);
      const choices = k.choices ?? [];
      return one(html`<select ?disabled=${u.fixed} .value=${value} @change=${typed}>${(choices.includes(value) ? choices : [value, ...choices]).map((c) =>
        choice(c, value, c === "" ? "–" : u.texts.option(k, c)))}</select>`);
    }
    case "duration":
      return one(duration(u));
    case "number":
      return one(html`<span class="compound"><input type="number" step="any" .value=${plain(u.value)} ?disabled=${u.fixed} @change=${(e: Event) => {
        const text = (e.target as HTMLInputElement).value;
        u.change(text === "" ? null : Number(text));
      }} />${k.unit ? html`<span>${k.unit}</span>` : nothing}</span>`);
    case "secret":
      return one(html`<input type="password" autocomplete="new-password" placeholder=${isSet(k) ? "••••••" : ""}
        .value=${u.typed ? plain(u.value) : ""} ?disabled=${u.fixed} @change=${(e: Event) => {
          const text = (e.target as HTMLInputElement).value;
          u.change(text === "" ? undefined : text); // an empty field leaves the secret unchanged
        }} />`);
    case "list":
      return one(html`<textarea rows="3" .value=${plain(u.value)} ?disabled=${u.fixed} spellcheck="false"
        @change=${(e: Event) => u.change((e.target as HTMLTextAreaElement).value.split("\n").map((l) => l.trim()).filter((l) => l !== ""))}></textarea>`);
  }
  if (k.options) return one(orOther(u, typed));
  return one(html`<input autocomplete="off" spellcheck="false" .value=${plain(u.value)} ?disabled=${u.fixed} @change=${typed} />`);
}

// inWords returns a value as a sentence shows it.
export function inWords(k: Key, value: unknown, texts: Texts): string {
  const text = plain(value).split("\n").join(", ");
  if (k.format === "hours" && text === "") return t("off");
  if (k.format === "timezone" && text === "") return t("machineZone");
  if (k.type === "bool") return t(value === true ? "on" : "off");
  if (k.type === "duration") return lasting(text);
  if (k.format === "languages") return tags(text).map(languageName).join(", ");
  if (k.options) return texts.option(k, text);
  return k.unit && text !== "" ? `${text} ${k.unit}` : text;
}

// same reports whether two values of a key are equal, such as 60s and 1m.
export function same(k: Key, a: unknown, b: unknown): boolean {
  if (k.type === "duration") return seconds(plain(a)) === seconds(plain(b)) && seconds(plain(a)) !== undefined;
  return plain(a) === plain(b);
}

function choice(value: string, chosen: string, label: string) {
  return html`<option value=${value} ?selected=${value === chosen}>${label}</option>`;
}

// orOther renders a choice among the known values of a text, and a field for any other.
function orOther(u: Use, typed: (e: Event) => void) {
  const value = plain(u.value);
  const known = u.key.options!.map((o) => o.value);
  const other = !known.includes(value);
  return html`<select ?disabled=${u.fixed} .value=${other ? "" : value} @change=${typed}>${known.map((v) => choice(v, value, u.texts.option(u.key, v)))}
      <option value="" ?selected=${other}>${t("other")}</option></select>
    ${other ? html`<input class="other" aria-label=${t("otherOf", { label: u.texts.name(u.key.key, u.key.label) })} autocomplete="off" spellcheck="false" .value=${value}
      ?disabled=${u.fixed} @change=${typed} />` : nothing}`;
}

// ---- durations

const lengths = { d: 86400, h: 3600, m: 60, s: 1 } as const;
type Unit = keyof typeof lengths;
const units = { d: "day", h: "hour", m: "minute", s: "second" } as const;
const parts: Readonly<Record<string, number>> = { ...lengths, ms: 1e-3, us: 1e-6, "µs": 1e-6, ns: 1e-9 };

// seconds returns the length of a duration such as 1h30m, or undefined for another text.
function seconds(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?([hms]|ms|us|µs|ns))+$/.test(text)) return undefined;
  let sum = 0;
  for (const [, n, unit] of text.matchAll(/([\d.]+)(\D+)/g)) sum += Number(n) * parts[unit!]!;
  return Number(sum.toFixed(9));
}

// fitting returns the longest unit of which a length is a multiple.
function fitting(length: number): Unit {
  return (Object.keys(lengths) as Unit[]).find((u) => length > 0 && length % lengths[u] === 0) ?? "s";
}

function lasting(text: string): string {
  const length = seconds(text);
  if (length === undefined) return text;
  const unit = fitting(length);
  return new Intl.NumberFormat(locale(), { style: "unit", unit: units[unit], unitDisplay: "long" }).format(length / lengths[unit]);
}

function unitName(unit: Unit, n: number): string {
  return new Intl.NumberFormat(locale(), { style: "unit", unit: units[unit], unitDisplay: "long" }).formatToParts(n).find((p) => p.type === "unit")?.value ?? unit;
}

function duration(u: Use) {
  const text = plain(u.value);
  const length = seconds(text);
  if (length === undefined && text !== "") return html`<input autocomplete="off" .value=${text} ?disabled=${u.fixed} @change=${(e: Event) => u.change((e.target as HTMLInputElement).value)} />`;
  const unit = fitting(length ?? 0);
  const n = (length ?? 0) / lengths[unit];
  const typed = (e: Event) => {
    const at = (e.target as HTMLElement).closest(".compound")!;
    const typedText = at.querySelector("input")!.value;
    const chosen = at.querySelector("select")!.value as Unit;
    if (typedText === "") u.change(undefined);
    else u.change(chosen === "d" ? `${Number((Number(typedText) * 24).toFixed(6))}h` : typedText + chosen);
  };
  return html`<span class="compound"><input type="number" min="0" step="any" .value=${length === undefined ? "" : String(n)} ?disabled=${u.fixed} @change=${typed} />
    <select aria-label=${t("unitOf", { label: u.texts.name(u.key.key, u.key.label) })} ?disabled=${u.fixed} .value=${unit} @change=${typed}>
      ${(Object.keys(units) as Unit[]).reverse().map((one) => choice(one, unit, unitName(one, n)))}</select></span>`;
}

// ---- hours of a day

const night = "22:00-07:00";

function hours(u: Use, label: Said) {
  const value = plain(u.value);
  const [from = "", to = ""] = value.split("-");
  const name = u.texts.name(u.key.key, u.key.label);
  const typed = (e: Event) => {
    const [first, last] = [...(e.target as HTMLElement).closest(".times")!.querySelectorAll("input")].map((i) => i.value);
    if (first && last) u.change(`${first}-${last}`);
  };
  const time = (word: "from" | "until", at: string) => html`<label><span>${t(word)}</span>
    <input type="time" aria-label=${`${name}: ${t(word)}`} .value=${at === "24:00" ? "00:00" : at} ?disabled=${u.fixed} @change=${typed} /></label>`;
  return html`<p-field inline .label=${label} .error=${u.fault}><input type="checkbox" .checked=${value !== ""} ?disabled=${u.fixed}
      @change=${(e: Event) => u.change((e.target as HTMLInputElement).checked ? plain(u.key.default) || night : "")} /></p-field>
    ${value === "" ? nothing : html`<div class="times">${time("from", from)}${time("until", to)}</div>`}`;
}

// ---- languages and time zones

function tags(text: string): string[] {
  return text.split(",").map((l) => l.trim()).filter((l) => l !== "");
}

const letters = [..."abcdefghijklmnopqrstuvwxyz"];

// all returns the tags of the languages that the browser can name, sorted by their names.
function all(): string[] {
  const names = new Intl.DisplayNames(locale(), { type: "language", fallback: "none" });
  const known = letters.flatMap((a) => letters.map((b) => a + b)).filter((l) => l !== "zh" && Intl.getCanonicalLocales(l)[0] === l && names.of(l) !== undefined);
  return [...known, "zh-Hans", "zh-Hant"].sort((a, b) => languageName(a).localeCompare(languageName(b), locale()));
}

// tongues renders the languages of a household, the usual one first.
function tongues(u: Use) {
  const chosen = tags(plain(u.value));
  const known = all();
  const name = u.texts.name(u.key.key, u.key.label);
  const set = (i: number, l: string) => u.change([...chosen.slice(0, i), ...(l === "" ? [] : [l]), ...chosen.slice(i + 1)].join(", "));
  return html`<span class="several">${[...chosen, ""].map((tag, i) => html`<span class="compound"><select aria-label=${i === 0 ? nothing : `${name} ${i + 1}`} ?disabled=${u.fixed}
      .value=${tag} @change=${(e: Event) => {
        set(i, (e.target as HTMLSelectElement).value);
        (e.target as HTMLSelectElement).value = tag; // the next rendering sets it
      }}>${tag === "" ? choice("", "", t("addLanguage")) : nothing}
      ${(tag === "" || known.includes(tag) ? known : [tag, ...known]).filter((l) => l === tag || !chosen.includes(l)).map((l) => choice(l, tag, languageName(l)))}</select>
    ${tag === "" || chosen.length === 1 || u.fixed ? nothing : html`<p-button kind="quiet" label=${t("removeOf", { list: name, n: languageName(tag) })} @click=${() => set(i, "")}>${t("removeEntry")}</p-button>`}</span>`)}</span>`;
}

// zones returns the browser's time zones, this browser's first.
function zones(own: string): string[] {
  const list = typeof Intl.supportedValuesOf === "function" ? Intl.supportedValuesOf("timeZone") : [];
  return [...new Set([Intl.DateTimeFormat().resolvedOptions().timeZone, ...(own ? [own] : []), ...list])];
}
