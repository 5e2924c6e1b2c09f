// The texts of keys in the page's language, and the search by what people call them.

import type { Explained, Labels } from "../lib/explained.js";
import { english, type Said } from "../lib/said.js";
import { locale } from "../lib/words.js";
import type { Key } from "./settings.types.js";

// Texts has the translations of labels and descriptions.
export class Texts {
  constructor(private readonly docs: Explained = {}, private readonly labels: Labels = {}) {}

  // name returns the label at a path, as plain text. The label of a path without a translation is that of all keys with
  // the same last part, or else the English one.
  name(path: string, label: string): string {
    return this.translated(path) ?? label;
  }

  // label returns the label at a path, marked as English if there is no translation.
  label(path: string, label: string): Said {
    return this.translated(path) ?? english(label);
  }

  doc(k: Key): Said {
    return this.docs[k.about ?? ""] ?? english(k.doc);
  }

  // option returns the label of a value of a key.
  option(k: Key, value: string): string {
    const label = k.options?.find((o) => o.value === value)?.label;
    return label === undefined ? value : this.name(`${k.key}=${value}`, label);
  }

  // names returns a key's names, in the page's language and in English.
  names(k: Key): string {
    const own = [k.key, ...(k.under ? [k.under.key] : [])].flatMap((path) => this.texts(path) ?? []);
    const options = k.options?.map((o) => this.option(k, o.value)) ?? [];
    return [k.key, k.label, k.under?.label, k.words, ...own, ...options].join(" ");
  }

  // help returns a key's description as plain text.
  help(k: Key): string {
    return this.docs[k.about ?? ""] ?? k.doc ?? "";
  }

  private translated(path: string): string | undefined {
    return this.texts(path)?.[0];
  }

  private texts(path: string): readonly string[] | undefined {
    return this.labels[path] ?? this.labels[`*${path.slice(path.lastIndexOf("."))}`];
  }
}

// Page is something that can be found: by its names, or by the longer text about it.
interface Page<T> {
  it: T;
  names: string;
  text: string;
}

// find returns what fits a query best, the best first. Words of the query that many pages have count little, so that a
// sentence such as "I want it quiet at night" finds what its rare words name.
export function find<T>(query: string, pages: readonly Page<T>[]): T[] {
  const wanted = [...new Set(split(query))];
  const read = pages.map((p) => ({ it: p.it, names: split(p.names), text: split(p.text), score: 0 }));
  for (const word of wanted) {
    const fits = read.map((p) => 4 * best(word, p.names) + best(word, p.text));
    const weight = Math.log(1 + read.length / (1 + fits.filter((f) => f > 0).length));
    read.forEach((p, i) => (p.score += weight * fits[i]!));
  }
  const found = read.filter((p) => p.score > 0).sort((a, b) => b.score - a.score);
  return found.filter((p) => p.score >= found[0]!.score * leastPart).slice(0, most).map((p) => p.it);
}

const most = 12; // results
const leastPart = 0.4; // least score of a result, as a part of the best score

// split returns the words of a text in lower case and without accents.
function split(text: string): string[] {
  const words = new Intl.Segmenter(locale(), { granularity: "word" });
  const plain = text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "").normalize("NFC").replace(/[._=]/g, " ");
  return [...words.segment(plain)].filter((s) => s.isWordLike).map((s) => s.segment);
}

// best returns how well a word fits the best of others: 1 if it is the same, and less if one is a part of the other.
function best(word: string, others: readonly string[]): number {
  let fit = 0;
  const short = /^[a-z]{1,2}$/.test(word);
  for (const o of others) {
    if (o === word) return 1;
    if (short) continue;
    if (o.startsWith(word)) fit = Math.max(fit, 0.8);
    else if (o.length > 3 && word.startsWith(o)) fit = Math.max(fit, 0.6);
    else if (word.length > 4 && o.includes(word)) fit = Math.max(fit, 0.4);
  }
  return fit;
}
