// Descriptions and labels of the configuration keys. The server sends them in English; the folder language has translations.

import type { Language } from "./words.js";

export type Explained = Readonly<Record<string, string>>;

const chunks = {
  de: () => import("../../../../../../language/de/keys.json", { with: { type: "json" } }),
  ja: () => import("../../../../../../language/ja/keys.json", { with: { type: "json" } }),
  "zh-Hans": () => import("../../../../../../language/zh-Hans/keys.json", { with: { type: "json" } }),
  es: () => import("../../../../../../language/es/keys.json", { with: { type: "json" } }),
  fr: () => import("../../../../../../language/fr/keys.json", { with: { type: "json" } }),
} satisfies Record<Exclude<Language, "en">, () => Promise<{ default: Explained }>>;

// explained loads the translated descriptions by key. For English it returns none.
export async function explained(l: Language): Promise<Explained> {
  return l === "en" ? {} : (await chunks[l]()).default;
}

// Labels has a label by key, and perhaps other words for it.
export type Labels = Readonly<Record<string, readonly string[]>>;

const labelChunks = {
  de: () => import("../../../../../../language/de/labels.json"),
  ja: () => import("../../../../../../language/ja/labels.json"),
  "zh-Hans": () => import("../../../../../../language/zh-Hans/labels.json"),
  es: () => import("../../../../../../language/es/labels.json"),
  fr: () => import("../../../../../../language/fr/labels.json"),
} satisfies Record<Exclude<Language, "en">, () => Promise<{ default: Labels }>>;

// labels loads the translated labels by key. For English it returns none.
export async function labels(l: Language): Promise<Labels> {
  return l === "en" ? {} : (await labelChunks[l]()).default;
}
