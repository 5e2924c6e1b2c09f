// Engines in responses of the server.

import type { Key } from "./settings.types.js";

export interface Engine {
  part: string;
  list: string;
  kind: string;
  where?: string;
  ok: boolean;
  note?: string;
  since?: string;
  try?: string;
  sample?: string;
  key: string; // its place in the configuration: speech.recognizers.0
  cost?: "free" | "billed";
  voices?: Named[];
  wait?: { uses: number; median: number; p95: number }; // in ms
}

// Named is a voice or a model that an engine lists.
export interface Named {
  name: string;
  title?: string;
}

// Option is an option of a kind of engine; type, choices, sections, doc and about are as in Key.
export type Option = Pick<Key, "key" | "type" | "choices" | "sections" | "doc" | "about">;

export interface Kind {
  kind: string;
  summary: string; // in English
  about: string; // key of the summary in the translations
  cost?: "free" | "billed";
  options: Option[];
}

export type Kinds = Readonly<Record<string, Kind[]>>; // by the key of a list

// jobs are the lists in the order of a turn, with their keys.
export const jobs = [
  ["recognizer", "speech.recognizers"],
  ["brain", "brains"],
  ["synthesizer", "speech.synthesizers"],
  ["brain_deep", "brain_deep"],
] as const;
export type Job = (typeof jobs)[number][0];

export interface Server {
  name: string;
  url: string;
  hears?: boolean; // what a Wyoming server can do; neither if it has not said
  speaks?: boolean;
}

export interface Found {
  wyoming: Server[] | null;
  ollama: { url: string; models: string[] | null }[] | null;
  homeassistant: Server[] | null;
}

// Preset is what a form for a new engine begins with.
export interface Preset {
  kind: string;
  values: Record<string, unknown>;
  lists?: Readonly<Record<string, readonly Named[]>>; // what an option is chosen from
  fixed?: boolean; // the kind is not chosen
}

// place returns the position of an engine in its list.
export function place(e: Engine): number {
  return Number(e.key.slice(e.key.lastIndexOf(".") + 1));
}
