// How far the first steps have come in this browser.

import { type Device } from "../lib/robots.js";
import { kept } from "../lib/store.js";

export const reached = "perch.first"; // key of the browser's storage: the step that was reached, or done
export const done = "done";

// isReal reports whether a robot is adopted and not a robot of a page.
export function isReal(d: Device): boolean {
  return d.adopted && d.board !== "perch-page";
}

// isUnfinished reports whether the first steps are offered: until they are done, if they were begun here or no robot but
// those of pages is there.
export function isUnfinished(all: readonly Device[]): boolean {
  const at = kept(reached);
  return at !== done && (at !== null || !all.some(isReal));
}
