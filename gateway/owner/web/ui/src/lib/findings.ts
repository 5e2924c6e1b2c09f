// Translations of the server's sentences, which are English. findings.json of a language has translations by the English
// format, with {1} for the first value. A sentence without a translation stays English.

import { inWords, translations, type Formats, type Translation } from "./translate.js";
import { language, languageChanged, languageTarget, type Language } from "./words.js";

const chunks = {
  de: () => import("../../../../../../language/de/findings.json", { with: { type: "json" } }),
  ja: () => import("../../../../../../language/ja/findings.json", { with: { type: "json" } }),
  "zh-Hans": () => import("../../../../../../language/zh-Hans/findings.json", { with: { type: "json" } }),
  es: () => import("../../../../../../language/es/findings.json", { with: { type: "json" } }),
  fr: () => import("../../../../../../language/fr/findings.json", { with: { type: "json" } }),
} satisfies Record<Exclude<Language, "en">, () => Promise<{ default: Formats }>>;

const loaded = new Map<Language, readonly Translation[]>();

// translated returns an English sentence of the server in the page's language, or undefined if there is no translation,
// the language is English, or the translations are not loaded yet. In the last case languageChanged is dispatched once
// they are loaded, so that views render again.
export function translated(text: string): string | undefined {
  const l = language();
  if (l === "en") return undefined;
  const all = loaded.get(l);
  if (all) return inWords(text, all);
  loaded.set(l, []); // sentences stay English until the translations are loaded
  chunks[l]().then((m) => {
    loaded.set(l, translations(m.default));
    languageTarget.dispatchEvent(new Event(languageChanged));
  }, () => loaded.delete(l));
  return undefined;
}
