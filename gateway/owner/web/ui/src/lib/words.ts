// Words out of the folder language, and times as people say them.

import type english from "../../../../../../language/en/page.json";

type Words = typeof english;

// Each language is a chunk of its own, of which the page loads one. A language that
// lacks a sentence of the English one does not compile.
const chunks = {
  en: () => import("../../../../../../language/en/page.json", { with: { type: "json" } }),
  de: () => import("../../../../../../language/de/page.json", { with: { type: "json" } }),
  ja: () => import("../../../../../../language/ja/page.json", { with: { type: "json" } }),
  "zh-Hans": () => import("../../../../../../language/zh-Hans/page.json", { with: { type: "json" } }),
  es: () => import("../../../../../../language/es/page.json", { with: { type: "json" } }),
  fr: () => import("../../../../../../language/fr/page.json", { with: { type: "json" } }),
} satisfies Record<string, () => Promise<{ default: Words }>>;

export type Language = keyof typeof chunks;
export const languages = Object.keys(chunks) as readonly Language[];

// languageChanged is an event on `languageTarget`.
export const languageChanged = "language";
export const languageTarget = new EventTarget();

const kept = "perch.language";

// known is the language of a tag such as "de-AT" or "zh-CN", if the page has it.
export function known(tag: string | null | undefined): Language | undefined {
  const base = tag?.split("-")[0]?.toLowerCase();
  return languages.find((l) => l.split("-")[0] === base);
}

function first(): Language {
  try {
    const own = known(localStorage.getItem(kept));
    if (own) return own;
  } catch {
    // Storage may be forbidden; the browser's languages decide then.
  }
  for (const tag of navigator.languages ?? []) {
    const l = known(tag);
    if (l) return l;
  }
  return "en";
}

let current: Language = first();
let words: Words = (await chunks[current]()).default;
let wanted = current;
document.documentElement.lang = current;

// language is the one in which the page speaks.
export function language(): Language {
  return current;
}

// locale is the same for Intl, with the country that the browser says.
export function locale(): string {
  return current === "zh-Hans" ? current : navigator.languages.find((t) => known(t) === current) ?? current;
}

// languageName is what a language is called in the page's.
export function languageName(tag: string): string {
  try {
    return new Intl.DisplayNames(locale(), { type: "language" }).of(tag) ?? tag;
  } catch {
    return tag; // it may have subtags that nobody knows
  }
}

// setLanguage changes and keeps it; every View renders again. It fails where the
// language cannot be loaded, and the page stays as it is.
export async function setLanguage(l: Language): Promise<void> {
  wanted = l;
  const loaded = (await chunks[l]()).default;
  if (l !== wanted) return; // another was chosen meanwhile
  words = loaded;
  current = l;
  document.documentElement.lang = l;
  try {
    localStorage.setItem(kept, l);
  } catch {
    // It holds for this page then.
  }
  languageTarget.dispatchEvent(new Event(languageChanged));
}

const place = /\{(\w+)(?:,([^{}]*))?\}/g;

// chosen is the form for a number, out of "one: # robot, other: # robots".
function chosen(forms: string, n: number): string {
  const rule = new Intl.PluralRules(locale()).select(n);
  let other = "";
  for (const form of forms.split(/,\s*(?=(?:zero|one|two|few|many|other):)/)) {
    const at = form.indexOf(":");
    const name = form.slice(0, at).trim();
    const text = form.slice(at + 1).trim();
    if (name === rule) return text;
    if (name === "other") other = text;
  }
  return other;
}

// catalogue makes the function that says a view's sentences. "{n}" is a value;
// "{n, one: # robot, other: # robots}" is the form that belongs to a number, in which
// # is the number.
export function catalogue<V extends keyof Words>(view: V): (key: keyof Words[V], values?: Record<string, string | number>) => string {
  return (key, values = {}) =>
    (words[view][key] as string).replace(place, (whole, name: string, forms: string | undefined) => {
      const value = values[name];
      if (value === undefined) return whole;
      const shown = typeof value === "number" ? new Intl.NumberFormat(locale()).format(value) : value;
      return forms === undefined ? shown : chosen(forms, Number(value)).replace("#", shown);
    });
}

// message is the sentence for what the server calls by a name, if there is one.
export function message(view: "refusals" | "parts", name: string): string | undefined {
  return Object.hasOwn(words[view], name) ? (words[view] as Record<string, string>)[name] : undefined;
}

const steps: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 365 * 86400],
  ["month", 30 * 86400],
  ["week", 7 * 86400],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

// ago is "3 minutes ago", or "in 3 minutes".
export function ago(at: string | Date): string {
  const seconds = (new Date(at).getTime() - Date.now()) / 1000;
  if (Number.isNaN(seconds)) return "";
  const format = new Intl.RelativeTimeFormat(locale(), { numeric: "auto" });
  for (const [unit, size] of steps) {
    if (Math.abs(seconds) >= size || unit === "second") return format.format(Math.round(seconds / size), unit);
  }
  return "";
}

// clock is the time of day; a day before is named with it.
export function clock(at: string | Date): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return "";
  const today = time.toDateString() === new Date().toDateString();
  const options: Intl.DateTimeFormatOptions = today
    ? { hour: "2-digit", minute: "2-digit" }
    : { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
  return new Intl.DateTimeFormat(locale(), options).format(time);
}
