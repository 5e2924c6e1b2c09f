// What a face says of itself to those who do not see it. The words are apart from the
// page's own, and all languages are in one: the element has no dependencies, and takes
// its language from the nearest lang attribute.

import de from "../../../../../../language/de/face.json";
import en from "../../../../../../language/en/face.json";
import es from "../../../../../../language/es/face.json";
import fr from "../../../../../../language/fr/face.json";
import ja from "../../../../../../language/ja/face.json";
import zh from "../../../../../../language/zh-Hans/face.json";
import type { Emotion, State } from "./faces.js";

interface Words {
  states: Record<State, string>;
  emotions: Record<Emotion, string>;
  said: typeof en.said;
}

const all: Record<string, Words> = { en, de, ja, zh, es, fr };

export interface Described {
  state: State;
  emotion: Emotion;
  muted: boolean;
  text: string;
}

const wordsOf = (language: string): Words => all[language.slice(0, 2).toLowerCase()] ?? en;

// stateIn is a state in words; undefined is a robot that is not there.
export function stateIn(s: State | undefined, language: string): string {
  const w = wordsOf(language);
  return s === undefined ? w.said.away : w.states[s];
}

const both = (w: Words, first: string, second: string): string => w.said.both.replace("{first}", () => first).replace("{second}", () => second);

// describe says a face in words.
export function describe(d: Described, language: string): string {
  const w = wordsOf(language);
  let label = both(w, w.states[d.state], w.emotions[d.emotion]);
  if (d.muted) label = both(w, label, w.said.muted);
  return d.text ? w.said.says.replace("{face}", () => label).replace("{text}", () => d.text) : label;
}
