// Translation of the server's English sentences, by the formats with which the server made them.

// Formats has the translations by the format of Go's package fmt; {1} stands for the first value.
export type Formats = Readonly<Record<string, string>>;

// Translation is the pattern of a format, and the translation of the format.
export interface Translation { first: string; last: string; literals: number; pattern: RegExp; words: string }

// translations returns the patterns of a language.
export function translations(formats: Formats): readonly Translation[] {
  return Object.entries(formats).map(translation);
}

// verb matches a verb of Go's package fmt; the group is its letter.
const verb = /%[-+# 0]*[0-9]*(?:\.[0-9]+)?([a-zA-Z])/;

function translation([format, words]: [string, string]): Translation {
  const parts = format.split(verb); // literals at even indexes, letters of verbs at odd ones
  const literals = parts.filter((_, i) => i % 2 === 0);
  const pattern = parts.map((p, i) => {
    if (i % 2 === 0) return p.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
    return p === "d" ? "(-?\\d+)" : p === "q" ? '("(?:[^"\\\\]|\\\\.)*")' : "([^]+?)";
  }).join("");
  return { first: literals[0] ?? "", last: literals.at(-1) ?? "", literals: literals.join("").length, pattern: new RegExp(`^${pattern}$`, "u"), words };
}

// inWords translates a sentence, and the sentences that are values in it. It returns undefined if no pattern matches.
// Sentences joined by a line break, a semicolon or a colon are translated one by one. If there are several translations,
// it chooses the one that leaves the least text in English.
export function inWords(text: string, all: readonly Translation[]): string | undefined {
  return best(text, all, new Map(), 8)?.words;
}

// Way is a translation, and the number of letters of the English sentence that it covers.
interface Way { words: string; letters: number }

function best(text: string, all: readonly Translation[], known: Map<string, Way | undefined>, depth: number): Way | undefined {
  if (known.has(text) || depth === 0) return known.get(text);
  let way: Way | undefined;
  const part = (t: string): Way => best(t, all, known, depth - 1) ?? { words: t, letters: 0 };
  const consider = (words: string, letters: number): void => {
    if (letters > (way?.letters ?? 0)) way = { words, letters };
  };
  for (const t of all) {
    const values = text.startsWith(t.first) && text.endsWith(t.last) ? t.pattern.exec(text) : null;
    if (!values) continue;
    const parts = values.slice(1).map(part);
    consider(t.words.replace(/\{(\d+)\}/g, (place, n: string) => parts[Number(n) - 1]?.words ?? place),
      parts.reduce((sum, p) => sum + p.letters, t.literals));
  }
  for (const joint of ["\n", "; ", ": "]) {
    const at = text.indexOf(joint);
    if (at < 0) continue;
    const [first, rest] = [part(text.slice(0, at)), part(text.slice(at + joint.length))];
    consider(first.words + joint + rest.words, first.letters + rest.letters);
  }
  known.set(text, way);
  return way;
}
