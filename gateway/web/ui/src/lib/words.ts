// Words in four languages, and times as people say them.

export type Language = "en" | "de" | "ja" | "zh";
export const languages: readonly Language[] = ["en", "de", "ja", "zh"];

// languageChanged is an event on `languageTarget`.
export const languageChanged = "language";
export const languageTarget = new EventTarget();

const kept = "perch.language";

function known(value: string | null | undefined): Language | undefined {
  const two = value?.slice(0, 2).toLowerCase();
  return languages.find((l) => l === two);
}

function first(): Language {
  try {
    const own = known(localStorage.getItem(kept));
    if (own) return own;
  } catch {
    // Storage may be forbidden; the browser's languages decide then.
  }
  for (const tag of navigator.languages ?? []) {
    const l = known(tag);
    if (l) return l;
  }
  return "en";
}

let current: Language = first();
document.documentElement.lang = current === "zh" ? "zh-Hans" : current;

// language is the one in which the page speaks.
export function language(): Language {
  return current;
}

// locale is the same for Intl.
export function locale(): string {
  return current === "zh" ? "zh-Hans" : current === "en" ? navigator.languages.find((t) => t.startsWith("en")) ?? "en" : current;
}

// setLanguage changes and keeps it; every View renders again.
export function setLanguage(l: Language): void {
  current = l;
  document.documentElement.lang = l === "zh" ? "zh-Hans" : l;
  try {
    localStorage.setItem(kept, l);
  } catch {
    // It holds for this page then.
  }
  languageTarget.dispatchEvent(new Event(languageChanged));
}

const place = /\{(\w+)(?:,([^{}]*))?\}/g;

// chosen is the form for a number, out of "one: robot, other: robots".
function chosen(forms: string, n: number): string {
  const rule = new Intl.PluralRules(locale()).select(n);
  let other = "";
  for (const form of forms.split(/,\s*(?=(?:zero|one|two|few|many|other):)/)) {
    const at = form.indexOf(":");
    const name = form.slice(0, at).trim();
    const text = form.slice(at + 1).trim();
    if (name === rule) return text;
    if (name === "other") other = text;
  }
  return other;
}

// catalogue makes the function that says a view's sentences. "{n}" is a value;
// "{n, one: robot, other: robots}" is the form that belongs to a number.
export function catalogue<K extends string>(
  words: Record<Language, Record<K, string>>,
): (key: K, values?: Record<string, string | number>) => string {
  return (key, values = {}) =>
    words[current][key].replace(place, (whole, name: string, forms: string | undefined) => {
      const value = values[name];
      if (value === undefined) return whole;
      if (forms !== undefined) return chosen(forms, Number(value));
      return typeof value === "number" ? new Intl.NumberFormat(locale()).format(value) : value;
    });
}

const steps: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 365 * 86400],
  ["month", 30 * 86400],
  ["week", 7 * 86400],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

// ago is "3 minutes ago", or "in 3 minutes".
export function ago(at: string | Date): string {
  const seconds = (new Date(at).getTime() - Date.now()) / 1000;
  if (Number.isNaN(seconds)) return "";
  const format = new Intl.RelativeTimeFormat(locale(), { numeric: "auto" });
  for (const [unit, size] of steps) {
    if (Math.abs(seconds) >= size || unit === "second") return format.format(Math.round(seconds / size), unit);
  }
  return "";
}

// clock is the time of day; a day before is named with it.
export function clock(at: string | Date): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return "";
  const today = time.toDateString() === new Date().toDateString();
  const options: Intl.DateTimeFormatOptions = today
    ? { hour: "2-digit", minute: "2-digit" }
    : { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
  return new Intl.DateTimeFormat(locale(), options).format(time);
}
