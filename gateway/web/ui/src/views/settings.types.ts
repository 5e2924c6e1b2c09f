// The configuration as the server shows it.

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

export function inWords(w: Warning | string): string {
  if (typeof w === "string") return w;
  return w.part ? `${w.part}: ${w.what ?? ""}` : w.what ?? "";
}

// plain is a value as a form shows it.
export function plain(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.join("\n");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
