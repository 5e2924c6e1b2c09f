// The page's texts, from the folder language, and the formats of times.

import { keep, kept } from "./store.js";
import type home from "../../../../../../language/en/home.json";
import type page from "../../../../../../language/en/page.json";

type First = typeof home;
type Rest = typeof page;
type Words = First & Rest;

// Each language has a chunk for the first view and another for the other views, and the page loads only one language. A
// language without one of the English texts does not compile.
const chunks = {
  en: {
    name: "English",
    first: () => import("../../../../../../language/en/home.json", { with: { type: "json" } }),
    rest: () => import("../../../../../../language/en/page.json", { with: { type: "json" } }),
  },
  de: {
    name: "Deutsch",
    first: () => import("../../../../../../language/de/home.json", { with: { type: "json" } }),
    rest: () => import("../../../../../../language/de/page.json", { with: { type: "json" } }),
  },
  ja: {
    name: "日本語",
    first: () => import("../../../../../../language/ja/home.json", { with: { type: "json" } }),
    rest: () => import("../../../../../../language/ja/page.json", { with: { type: "json" } }),
  },
  "zh-Hans": {
    name: "简体中文",
    first: () => import("../../../../../../language/zh-Hans/home.json", { with: { type: "json" } }),
    rest: () => import("../../../../../../language/zh-Hans/page.json", { with: { type: "json" } }),
  },
  es: {
    name: "Español",
    first: () => import("../../../../../../language/es/home.json", { with: { type: "json" } }),
    rest: () => import("../../../../../../language/es/page.json", { with: { type: "json" } }),
  },
  fr: {
    name: "Français",
    first: () => import("../../../../../../language/fr/home.json", { with: { type: "json" } }),
    rest: () => import("../../../../../../language/fr/page.json", { with: { type: "json" } }),
  },
} satisfies Record<string, { name: string; first: () => Promise<{ default: First }>; rest: () => Promise<{ default: Rest }> }>;

export type Language = keyof typeof chunks;
export const languages = Object.keys(chunks) as readonly Language[];

// ownName returns the name of a language in that language. Intl takes some ms for each.
export function ownName(l: Language): string {
  return chunks[l].name;
}

// languageChanged is the name of an event of languageTarget.
export const languageChanged = "language";
export const languageTarget = new EventTarget();

const key = "perch.language";

// known returns the page's language for a tag such as "de-AT" or "zh-CN", if there is one.
export function known(tag: string | null | undefined): Language | undefined {
  const base = tag?.split("-")[0]?.toLowerCase();
  return languages.find((l) => l.split("-")[0] === base);
}

function first(): Language {
  for (const tag of [kept(key), ...(navigator.languages ?? [])]) {
    const l = known(tag);
    if (l) return l;
  }
  return "en";
}

let current: Language = first();
let words: First & Partial<Rest> = (await chunks[current].first()).default;
let wanted = current;
let whole = false; // words has the texts of all views
document.documentElement.lang = current;

// language returns the page's language.
export function language(): Language {
  return current;
}

// locale returns the page's language for Intl, with the browser's region.
export function locale(): string {
  return current === "zh-Hans" ? current : navigator.languages.find((t) => known(t) === current) ?? current;
}

// languageName returns the name of a language in the page's language.
export function languageName(tag: string): string {
  try {
    return new Intl.DisplayNames(locale(), { type: "language" }).of(tag) ?? tag;
  } catch {
    return tag; // the tag is invalid
  }
}

// allWords loads the texts of the views other than the first.
export async function allWords(): Promise<void> {
  const l = current;
  if (whole) return;
  const { default: rest } = await chunks[l].rest();
  if (l !== current || whole) return allWords(); // the language was changed while this one was loading
  words = { ...words, ...rest };
  whole = true;
}

// setLanguage changes and stores the language; all views render again. It fails, and changes nothing, if the language
// cannot be loaded.
export async function setLanguage(l: Language): Promise<void> {
  wanted = l;
  const [first, rest] = await Promise.all([chunks[l].first(), chunks[l].rest()]);
  if (l !== wanted) return; // another language was chosen while this one was loading
  words = { ...first.default, ...rest.default };
  whole = true;
  current = l;
  document.documentElement.lang = l;
  keep(key, l);
  languageTarget.dispatchEvent(new Event(languageChanged));
}

const place = /\{(\w+)(?:,([^{}]*))?\}/g;

// chosen returns the plural form for a number, from forms such as "one: # robot, other: # robots".
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

// catalogue returns the function that returns a view's texts by key. In a text, "{n}" stands for a value, and
// "{n, one: # robot, other: # robots}" for the plural form of a number, which replaces #.
export function catalogue<V extends keyof Words>(view: V): (key: keyof Words[V], values?: Record<string, string | number>) => string {
  return (key, values = {}) =>
    ((words as Words)[view][key] as string).replace(place, (match, name: string, forms: string | undefined) => {
      const value = values[name];
      if (value === undefined) return match;
      const shown = typeof value === "number" ? new Intl.NumberFormat(locale()).format(value) : value;
      return forms === undefined ? shown : chosen(forms, Number(value)).replace("#", shown);
    });
}

// message returns the text for a name or code of the server, if there is one.
export function message(view: "refusals" | "parts", name: string): string | undefined {
  const texts: Record<string, string> = words[view] ?? {};
  return Object.hasOwn(texts, name) ? texts[name] : undefined;
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

// ago returns a relative time: "3 minutes ago" or "in 3 minutes".
export function ago(at: string | Date): string {
  const seconds = (new Date(at).getTime() - Date.now()) / 1000;
  if (Number.isNaN(seconds)) return "";
  const format = new Intl.RelativeTimeFormat(locale(), { numeric: "auto" });
  for (const [unit, size] of steps) {
    if (Math.abs(seconds) >= size || unit === "second") return format.format(Math.round(seconds / size), unit);
  }
  return "";
}

// clock returns the time of day, with the date unless that is today.
export function clock(at: string | Date): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return "";
  const today = time.toDateString() === new Date().toDateString();
  const options: Intl.DateTimeFormatOptions = today
    ? { hour: "2-digit", minute: "2-digit" }
    : { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
  return new Intl.DateTimeFormat(locale(), options).format(time);
}
