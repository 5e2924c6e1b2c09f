import { catalogue } from "../lib/words.js";

const say = catalogue("home");

type Key = Parameters<typeof say>[0];
const states: readonly string[] = ["idle", "listening", "thinking", "working", "juggling", "speaking", "attention", "notification", "error", "sleeping"];

// stateWord returns the name of a state. An unknown state is shown as idle.
export function stateWord(state: string): string {
  return say((states.includes(state) ? state : "idle") as Key);
}
