// The sentence about the robot's state.

import type { State as FaceState } from "../face/face.js";
import { catalogue, clock } from "../lib/words.js";
import type { Robot, Trouble } from "./robot.js";

const words = catalogue("webRobot");

export function sentence(r: Robot, asleep: boolean, face: FaceState): string {
  if (r.trouble) return ofTrouble(r.trouble, r.checkIn.own);
  if (r.waits) return r.waits.code ? words("code", { code: r.waits.code }) : words("noCode");
  if (face === "speaking" || face === "thinking" && r.thinking) return words(face);
  if (face === "working") return words("working", { tool: r.working });
  if (r.state !== "idle") return words(r.state);
  if (asleep) return words("asleep");
  if (r.deaf) return words("idleTyped");
  return words(r.keeper.flash.mode === "manual" ? "idleManual" : matchMedia("(hover: none)").matches ? "idleTouch" : "idle");
}

function ofTrouble(t: Trouble, own: boolean): string {
  if (t.what === "mqtt") return words("mqtt");
  if (t.what === "unopened") return words(t.why);
  const values = { url: t.url, origin: location.origin, status: t.status };
  const why = t.why === "nothing" ? words(own ? "nothingOwn" : "nothingOther", values) : words(t.why, values);
  const then = t.retryAt ? words("retryAt", { time: clock(new Date(t.retryAt)) }) : words("gaveUp");
  return `${why} ${then}`;
}
