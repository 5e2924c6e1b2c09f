// Descriptions of a face for screen readers. All languages are bundled here, apart from the page's words, because the
// element is also used alone (card.ts) and takes its language from the nearest lang attribute.

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

// stateIn returns a state in words. undefined is the state of a robot that is not connected.
export function stateIn(s: State | undefined, language: string): string {
  const w = wordsOf(language);
  return s === undefined ? w.said.away : w.states[s];
}

// noRobot returns a sentence for a robot that is not known.
export function noRobot(language: string, name: string): string {
  return wordsOf(language).said.noRobot.replace("{name}", () => name);
}

const both = (w: Words, first: string, second: string): string => w.said.both.replace("{first}", () => first).replace("{second}", () => second);

// describe returns the description of a face.
export function describe(d: Described, language: string): string {
  const w = wordsOf(language);
  let label = both(w, w.states[d.state], w.emotions[d.emotion]);
  if (d.muted) label = both(w, label, w.said.muted);
  return d.text ? w.said.says.replace("{face}", () => label).replace("{text}", () => d.text) : label;
}
