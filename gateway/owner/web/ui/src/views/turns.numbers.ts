// Statistics of turns: the stages, and p50 and p95 of each.

import type { Record_ as Turn } from "../lib/board.js";

// inOrder has the stages that follow each other. all also has first_packet, the time from the end of speech to the first
// sound, and the time of the tools.
export const inOrder = ["endpoint", "recognize", "first_token", "first_sentence", "first_audio"] as const;
export const all = ["first_packet", ...inOrder, "tools"] as const;
export type Stage = (typeof all)[number];

// total returns the time from the end of speech to the first sound, in ms.
export function total(turn: Turn): number | undefined {
  return turn.stages?.["first_packet"];
}

// percentile returns the smallest value that a share p of the values do not exceed.
export function percentile(values: readonly number[], p: number): number | undefined {
  if (values.length === 0) return undefined;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)];
}

export interface Numbers {
  from: number; // start of the hour, ms since 1970
  count: number;
  p50: number | undefined;
  p95: number | undefined;
}

export const hour = 3600_000;

// values returns the durations of a stage in the turns that have it.
export function values(turns: readonly Turn[], stage: Stage): number[] {
  return turns.map((one) => one.stages?.[stage]).filter((ms): ms is number => typeof ms === "number");
}

// day returns the turns of the last 24 hours.
export function day(turns: readonly Turn[], now: number): Turn[] {
  return turns.filter((one) => now - Date.parse(one.at) < 24 * hour);
}

// byHour returns the numbers of the last 24 hours. The last one is the present hour.
export function byHour(turns: readonly Turn[], stage: Stage, now: number): Numbers[] {
  const last = Math.floor(now / hour) * hour;
  return Array.from({ length: 24 }, (_, i) => {
    const from = last - (23 - i) * hour;
    const some = values(turns.filter((one) => Date.parse(one.at) >= from && Date.parse(one.at) < from + hour), stage);
    return { from, count: some.length, p50: percentile(some, 0.5), p95: percentile(some, 0.95) };
  });
}
