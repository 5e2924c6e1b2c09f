// Where else on the page something can be set, for searches.

import { catalogue } from "../lib/words.js";

const t = catalogue("settings");

export interface Place {
  name: "robot" | "engines" | "connections" | "memory" | "turns" | "notifications" | "timers" | "firmware" | "backup" | "first";
  href: string;
  group?: string; // the group of keys that shows a link to it
}

export const places: readonly Place[] = [
  { name: "robot", href: "#/", group: "voice" },
  { name: "engines", href: "#/engines", group: "voice" },
  { name: "connections", href: "#/connections", group: "home" },
  { name: "memory", href: "#/memory", group: "privacy" },
  { name: "turns", href: "#/turns", group: "privacy" },
  { name: "notifications", href: "#/notifications" },
  { name: "timers", href: "#/timers" },
  { name: "firmware", href: "#/firmware" },
  { name: "backup", href: "#/backup" },
  { name: "first", href: "#/first" },
];

export function titleOf(p: Place): string {
  return t(`at_${p.name}`);
}

// wordsFor returns what else people call what is at a place.
export function wordsFor(p: Place): string {
  return t(`words_${p.name}`);
}
