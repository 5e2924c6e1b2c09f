// The configuration as the server shows it.

import { html } from "lit";
import { english, part, told, type Said } from "../lib/said.js";
import { catalogue } from "../lib/words.js";

const t = catalogue("settings");

export interface Key {
  key: string;
  type: "duration" | "text" | "number" | "bool" | "choice" | "list" | "secret" | string;
  choices?: string[] | null;
  value: unknown;
  default: unknown;
  set?: boolean;
  given: "file" | "environment" | "flag" | "default" | string;
  by?: string;
  line?: number;
  doc?: string; // in English
  about?: string; // the key at which it stands
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
  text: string;
  digest: string;
  writable: boolean;
  why?: string;
  keys: Key[] | null;
  faults?: Fault[] | null;
  warnings?: (Warning | string)[] | null;
  before?: boolean;
  restart?: boolean;
}

export interface Checked {
  text: string;
  faults: Fault[] | null;
  warnings?: (Warning | string)[] | null;
}

// Changes are values by their keys; null uses the default, and of a list's entry removes it.
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
