// The configuration as the server shows it.

import { html } from "lit";
import { english, part, told, type Said } from "../lib/said.js";
import { catalogue } from "../lib/words.js";

const t = catalogue("settings");

export interface Key {
  key: string;
  type: "duration" | "text" | "number" | "bool" | "choice" | "list" | "secret" | string;
  choices?: string[] | null;
  value: unknown; // of a secret { set }
  default: unknown;
  sections?: boolean; // the value is or has sections, and text is it in YAML
  text?: string;
  from: "file" | "settings" | "environment" | "flag" | "default" | string;
  by?: string;
  line?: number;
  doc?: string; // in English
  about?: string; // the key at which it stands
  kinds?: Record<string, string[]>; // the keys of an entry, by its kind
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
  settings: string; // the file of what was changed here
  text: string; // of the owner's file
  why?: string; // the text is not shown
  keys: Key[] | null;
  faults?: Fault[] | null;
  warnings?: (Warning | string)[] | null;
  restart?: string[] | null; // keys that take effect after a restart
}

export interface Checked {
  faults: Fault[] | null;
  warnings?: (Warning | string)[] | null;
}

// Done is the answer to a change.
export interface Done {
  restart: boolean;
}

// Changes are values by their keys; null gives a key back to the file, and of a list's entry removes it.
export type Changes = ReadonlyMap<string, unknown>;

// faulty is a fault, with its key, within what else is said of its place.
export function faulty(f: Fault, within = (text: string) => text): Said {
  return told(f.message, (message) => within(f.key ? t("faultOf", { key: f.key, message }) : message));
}

// below is what the faults of a key say below its field.
export function below(faults: readonly Fault[], key: string): Said {
  const own = faults.filter((f) => f.key === key);
  return own.length === 0 ? "" : html`${own.map((f) => html`${told(f.message)} `)}`;
}

// inWords is a warning, with the part that it is of.
export function inWords(w: Warning | string): Said {
  if (typeof w === "string") return english(w);
  return w.part ? html`${part(w.part)}: ${told(w.what)}` : told(w.what);
}

// plain is a value as a form shows it.
export function plain(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.join("\n");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
