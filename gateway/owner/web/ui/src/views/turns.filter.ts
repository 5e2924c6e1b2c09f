// The search in turns, and the file with those that were found.

import type { Record_ as Turn } from "../lib/board.js";
import { nameIn, type Device } from "../lib/robots.js";
import { partsOf, totalOf } from "./robot.stages.js";

export const ends = ["done", "cancelled", "failed", "hang_up", "sleep"] as const;

export interface Filter {
  robot: string; // ID, or "" for all
  q: string; // words
  outcome: string; // one of ends, or "" for all
}

// fits reports whether a turn has all words of a filter, its robot and its outcome.
export function fits(turn: Turn, f: Filter): boolean {
  if ((f.robot && turn.robot !== f.robot) || (f.outcome && turn.end !== f.outcome)) return false;
  const text = [turn.heard, turn.said, turn.thoughts, turn.brain, turn.reason, ...(turn.tools ?? []).flatMap((u) => [u.name, u.detail])].join(" ").toLocaleLowerCase();
  return f.q.toLocaleLowerCase().split(/\s+/).every((word) => text.includes(word));
}

// asCSV returns turns as a table for a spreadsheet.
export function asCSV(turns: readonly Turn[], robots: readonly Device[]): string {
  const rows = turns.map((one) => [one.at, nameIn(robots, one.robot), one.heard, one.said, one.end, one.stages ? totalOf(one.stages) : "",
    partsOf(one.stages ?? {}).map((p) => `${p.stage} ${p.ms}`).join(", "), (one.tools ?? []).map((u) => u.name).join(", "), one.brain, one.thoughts, one.reason]);
  const header = ["at", "robot", "heard", "said", "end", "first_packet_ms", "stages_ms", "tools", "brain", "thoughts", "reason"];
  return "\ufeff" + [header, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

// cell quotes a value. A spreadsheet must not take the words of a conversation for a formula.
function cell(value: string | number | undefined): string {
  const text = String(value ?? "");
  return `"${(/^[=+\-@\t\r]/.test(text) ? "'" + text : text).replaceAll('"', '""')}"`;
}
