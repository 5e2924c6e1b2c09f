// Sentences of the server's that other languages have: in findings.json of the folder
// language, by their English format, with {1} for its first value.

import { language, languageChanged, languageTarget, type Language } from "./words.js";

// Sentence is a format and its values.
export type Sentence = readonly (string | Sentence)[];

type Formats = Readonly<Record<string, string>>;

const chunks = {
  de: () => import("../../../../../language/de/findings.json", { with: { type: "json" } }),
  ja: () => import("../../../../../language/ja/findings.json", { with: { type: "json" } }),
  "zh-Hans": () => import("../../../../../language/zh-Hans/findings.json", { with: { type: "json" } }),
  es: () => import("../../../../../language/es/findings.json", { with: { type: "json" } }),
  fr: () => import("../../../../../language/fr/findings.json", { with: { type: "json" } }),
} satisfies Record<Exclude<Language, "en">, () => Promise<{ default: Formats }>>;

const loaded = new Map<Language, Formats>();

// inWords is a sentence in the page's language; nothing where that lacks its format, is
// English, or is not loaded yet. What shows it renders again then.
export function inWords(s: Sentence): string | undefined {
  const l = language();
  if (l === "en") return undefined;
  const all = loaded.get(l);
  if (all) return filled(s, all);
  loaded.set(l, {}); // where it cannot be loaded, notes stay English
  chunks[l]().then((m) => {
    loaded.set(l, m.default);
    languageTarget.dispatchEvent(new Event(languageChanged));
  }, () => loaded.delete(l));
  return undefined;
}

// filled puts the values into the words for a format. A format without a letter of its own
// is that of every language.
function filled(s: Sentence, all: Formats): string | undefined {
  const [format, values] = parts(s);
  const own = all[format];
  if (own === undefined && /\p{L}/u.test(format.replace(verb, ""))) return undefined;
  const texts = values.map((v) => (typeof v === "string" ? v : filled(v, all) ?? inEnglish(v)));
  return own === undefined ? put(format, texts) : own.replace(/\{(\d+)\}/g, (place, n: string) => texts[Number(n) - 1] ?? place);
}

function inEnglish(s: Sentence): string {
  const [format, values] = parts(s);
  return put(format, values.map((v) => (typeof v === "string" ? v : inEnglish(v))));
}

function parts(s: Sentence): [string, readonly (string | Sentence)[]] {
  return [String(s[0]), s.slice(1)];
}

const verb = /%[-+# 0]*[0-9]*(?:\.[0-9]+)?[a-zA-Z]/g;

function put(format: string, texts: readonly string[]): string {
  let n = 0;
  return format.replace(verb, (place) => texts[n++] ?? place);
}
