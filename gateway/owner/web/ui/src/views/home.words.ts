import type { Now } from "../lib/board.js";
import type { Device } from "../lib/robots.js";
import { catalogue } from "../lib/words.js";

const say = catalogue("home");

type Key = Parameters<typeof say>[0];
const states: readonly string[] = ["idle", "listening", "thinking", "working", "juggling", "speaking", "attention", "notification", "error", "sleeping"];

// stateWord returns the name of a state. An unknown state is shown as idle.
export function stateWord(state: string): string {
  return say((states.includes(state) ? state : "idle") as Key);
}

const tones: Record<string, string> = {
  listening: "listens", attention: "listens", thinking: "thinks", working: "works", juggling: "works", speaking: "speaks", error: "bad", notification: "warn",
};

// toneOf returns the CSS class for the name of a state, or "" if the robot is quiet.
export function toneOf(state: string): string {
  return tones[state] ?? "";
}

// Shown is what a robot does, as all views show it.
export interface Shown {
  state: string;
  tone: string;
  word: string;
  away: boolean; // it is quiet, and cannot be reached
}

// shownOf returns what a robot does now.
export function shownOf(d: Device, now: Now | undefined): Shown {
  const state = now?.state ?? d.state;
  const away = !(now?.online ?? d.connected) && (state === "idle" || state === "sleeping");
  return { state, tone: toneOf(state), word: away && state === "idle" ? say("away") : stateWord(state), away };
}
