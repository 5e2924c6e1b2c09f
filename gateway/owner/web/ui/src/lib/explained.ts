// What each key of the configuration means. The server says it in English, as the
// annotated sample does; other languages have it in the folder language, by key.

import type { Language } from "./words.js";

export type Explained = Readonly<Record<string, string>>;

const chunks = {
  de: () => import("../../../../../../language/de/keys.json", { with: { type: "json" } }),
  ja: () => import("../../../../../../language/ja/keys.json", { with: { type: "json" } }),
  "zh-Hans": () => import("../../../../../../language/zh-Hans/keys.json", { with: { type: "json" } }),
  es: () => import("../../../../../../language/es/keys.json", { with: { type: "json" } }),
  fr: () => import("../../../../../../language/fr/keys.json", { with: { type: "json" } }),
} satisfies Record<Exclude<Language, "en">, () => Promise<{ default: Explained }>>;

// explained loads the words of a language. In English there are none.
export async function explained(l: Language): Promise<Explained> {
  return l === "en" ? {} : (await chunks[l]()).default;
}
