// The daily sums of the latest days (daily.Week in the server).

import { get } from "./api.js";
import { locale } from "./words.js";

// Hours has a number for each hour of the household's clock in which there was something.
export type Hours = Record<string, number>;

export interface Day {
  robot: string;
  date: string; // such as "2026-11-28"
  talks?: Hours;
  waits?: Record<string, { turns: number; ms: number }>; // by stage
  battery?: Hours; // percent
  signal?: Hours; // 1 (weak), 2 or 3 (strong)
  moods?: Record<string, Hours>; // ms
  sensed?: Record<string, Hours>;
}

export interface Week {
  today: string;
  days: Day[];
}

// week returns the sums of one robot, or of all.
export async function week(robot = ""): Promise<Week> {
  return get<Week>(robot === "" ? "api/v1/days" : `api/v1/days?robot=${encodeURIComponent(robot)}`);
}

function noon(date: string): Date {
  return new Date(`${date}T12:00:00`);
}

// dates returns the seven dates of the week, the oldest first.
export function dates(w: Week): string[] {
  return Array.from({ length: 7 }, (_, i) => {
    const day = noon(w.today);
    day.setDate(day.getDate() - 6 + i);
    const two = (n: number) => String(n).padStart(2, "0");
    return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
  });
}

// weekday returns the name of a date's day.
export function weekday(date: string, length: "short" | "long"): string {
  return new Intl.DateTimeFormat(locale(), { weekday: length }).format(noon(date));
}

// dayName returns a date with its weekday, such as "Saturday, 28 November".
export function dayName(date: string): string {
  return new Intl.DateTimeFormat(locale(), { weekday: "long", day: "numeric", month: "long" }).format(noon(date));
}

// hourName returns an hour of the clock, such as "2 PM".
export function hourName(hour: number): string {
  return new Intl.DateTimeFormat(locale(), { hour: "numeric" }).format(new Date(2000, 0, 1, hour));
}

// add returns the sums of hours.
export function add(all: readonly (Hours | undefined)[]): Hours {
  const sum: Hours = {};
  for (const hours of all) for (const [hour, n] of Object.entries(hours ?? {})) sum[hour] = (sum[hour] ?? 0) + n;
  return sum;
}

// byName returns the sums of several records of hours by name, those with the largest sum first.
export function byName(all: readonly (Record<string, Hours> | undefined)[]): [string, Hours][] {
  const names = [...new Set(all.flatMap((one) => Object.keys(one ?? {})))];
  const total = (hours: Hours) => Object.values(hours).reduce((a, b) => a + b, 0);
  return names.map((name): [string, Hours] => [name, add(all.map((one) => one?.[name]))]).sort(([, a], [, b]) => total(b) - total(a));
}
