// The configuration in responses of the server.

import { html } from "lit";
import { english, part, told, type Said } from "../lib/said.js";

export interface Key {
  key: string;
  type: "duration" | "text" | "number" | "bool" | "choice" | "list" | "secret" | string;
  choices?: string[] | null;
  value: unknown; // for a secret: an object with the field set
  default: unknown;
  sections?: boolean; // the value is a section or a list of sections; text is the value in YAML
  text?: string;
  from: "file" | "settings" | "environment" | "flag" | "default" | string;
  by?: string;
  line?: number;
  doc?: string; // description in English
  about?: string; // key of the description in the translations
  kinds?: Record<string, string[]>; // for a list of sections: the keys of an entry by its kind
  in_file?: boolean; // the owner's file sets it too, although the value is changed here
  restart?: boolean; // a change takes effect after a restart
  group: string; // name of a Group
  label: string; // the key in people's words, in English
  under?: { key: string; label: string }; // the section that contains the key
  words?: string; // what else people call the key, in English
  format?: "hours" | "languages" | "timezone" | string;
  unit?: string; // sign of a number's unit
  options?: { value: string; label: string }[]; // values and their English labels; a text may have others too
}

// Group is a group of keys. Its texts are English.
export interface Group {
  name: string;
  label: string;
  about: string;
}

// isSet reports whether a secret has a value.
export function isSet(k: Key | undefined): boolean {
  return (k?.value as { set?: boolean } | null | undefined)?.set === true;
}

export interface Fault {
  line?: number;
  key?: string;
  message: string;
}

export interface Warning {
  part?: string;
  what?: string;
}

export interface Shown {
  file: string;
  settings: string; // path of the file with the changes of this page
  text: string; // text of the owner's file
  why?: string; // why the text is not shown
  keys: Key[] | null;
  groups: Group[];
  faults?: Fault[] | null;
  warnings?: (Warning | string)[] | null;
  restart?: string[] | null; // keys that take effect after a restart
}

export interface Checked {
  faults: Fault[] | null;
  warnings?: (Warning | string)[] | null;
}

// Done is the response to a change.
export interface Done {
  restart: boolean;
}

// Changes are values by key. null resets a key to the value in the owner's file, or removes an entry of a list.
export type Changes = ReadonlyMap<string, unknown>;

// faulty returns the text of a fault with its key, embedded by within in another text.
export function faulty(f: Fault, within = (text: string) => text): Said {
  return told(f.message, (message) => within(f.key ? `${f.key}: ${message}` : message));
}

// below returns the text of the faults of a key, to show below its field. They include the faults of values in it.
export function below(faults: readonly Fault[], key: string): Said {
  const own = faults.filter((f) => f.key === key || f.key?.startsWith(`${key}.`));
  return own.length === 0 ? "" : html`${own.map((f) => html`${told(f.message)} `)}`;
}

// inWords returns the text of a warning, with the name of its part.
export function inWords(w: Warning | string): Said {
  if (typeof w === "string") return english(w);
  return w.part ? html`${part(w.part)}: ${told(w.what)}` : told(w.what);
}

// plain returns a value as text for a form.
export function plain(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.join("\n");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
