// Movements: blinks, glances, gestures of the head, and gradual changes of a pose.

import type { Pose } from "./draw.js";

export type Gesture =
  | "wave" | "nod" | "shake" | "think" | "celebrate" | "concern" | "bow" | "point" | "shrug" | "fidget" | "dance" | "idle" | "tilt";

export const gestures: readonly Gesture[] = [
  "wave", "nod", "shake", "think", "celebrate", "concern", "bow", "point", "shrug", "fidget", "dance", "idle", "tilt",
];

// gestureFrames returns the animation of a gesture. The head has no arms, so it waves by leaning from side to side.
export function gestureFrames(g: Gesture): { frames: Keyframe[]; ms: number } {
  const along = (f: (v: number) => string, values: number[], ms: number) => ({ frames: values.map((v) => ({ transform: f(v) })), ms });
  switch (g) {
    case "nod": return along((v) => `rotateX(${v}deg)`, [0, -16, 3, -12, 0], 900);
    case "shake": return along((v) => `rotateY(${v}deg)`, [0, -20, 18, -14, 10, 0], 1100);
    case "think": return along((v) => `rotateZ(${v}deg) rotateY(${-v}deg)`, [0, 9, 11, 9, 0], 1500);
    case "celebrate": return along((v) => `translateY(${-Math.abs(v)}%) rotateZ(${v}deg)`, [0, 7, -7, 7, -7, 7, 0], 2000);
    case "concern": return along((v) => `rotateX(${v}deg) rotateZ(${v / 2}deg)`, [0, -10, -12, -10, 0], 2000);
    case "bow": return along((v) => `rotateX(${v}deg)`, [0, -30, -30, 0], 1800);
    case "point": return along((v) => `rotateY(${v}deg)`, [0, -35, -35, -30, 0], 1500);
    case "shrug": return along((v) => `translateY(${-v}%) rotateZ(${v}deg)`, [0, 6, 6, 0], 1400);
    case "fidget": return along((v) => `rotateY(${v}deg) rotateZ(${v / 3}deg)`, [0, -6, 7, -5, 4, 0], 1600);
    case "dance": return along((v) => `rotateZ(${v}deg) translateX(${v / 2}%)`, [0, 12, -12, 12, -12, 12, -12, 0], 4000);
    case "idle": return along((v) => `rotateY(${v}deg)`, [0, 10, 10, -10, -10, 0], 3000);
    case "tilt": return along((v) => `rotateZ(${v}deg)`, [0, 11, 11, 11, 0], 1500);
    case "wave": return along((v) => `rotateZ(${v}deg) translateY(${-Math.abs(v) / 4}%)`, [0, 10, -10, 10, -10, 0], 1500);
  }
}

// Intervals between blinks and their duration in ms, as in the firmware.
export const blinkAfter = (): number => 5200 + Math.random() * 500;
export const blinkFor = 200;

// Intervals in ms between glances aside in the state idle, and the direction of a glance.
export const glanceAfter = (): number => 2600 + Math.random() * 4200;
export const glance = (): [number, number] => (Math.random() < 0.45 ? [0, 0] : [(Math.random() - 0.5) * 0.9, (Math.random() - 0.5) * 0.5]);

// Time constants of gradual changes, in ms. Lids are faster than the gaze.
const slow = { gaze: 90, blink: 38, mouth: 45, rest: 80 };

// approach moves the pose p towards the pose to, for ms milliseconds, and reports whether they are equal.
export function approach(p: Pose, to: Pose, ms: number): boolean {
  let arrived = true;
  const step = (now: number, goal: number, tau: number): number => {
    const d = goal - now;
    if (Math.abs(d) < 0.01 * Math.max(1, Math.abs(goal))) return goal;
    arrived = false;
    return now + d * (1 - Math.exp(-ms / tau));
  };
  const pair = (now: [number, number], goal: [number, number], tau: number): [number, number] => [step(now[0], goal[0], tau), step(now[1], goal[1], tau)];
  p.gaze = pair(p.gaze, to.gaze, slow.gaze);
  p.blink = step(p.blink, to.blink, slow.blink);
  p.mouth = step(p.mouth, to.mouth, slow.mouth);
  p.open = pair(p.open, to.open, slow.rest);
  p.brows = pair(p.brows, to.brows, slow.rest);
  for (const k of ["size", "slant", "wide", "curve", "skew", "browSlant", "browsSeen", "flush", "wrinkle"] as const) p[k] = step(p[k], to[k], slow.rest);
  return arrived;
}

// loudnessOf returns how far the mouth opens for the sound of an analyser, 0 to 1. Speech has an RMS of 0.02 to 0.3.
export function loudnessOf(a: AnalyserNode, samples: Float32Array<ArrayBuffer>): number {
  a.getFloatTimeDomainData(samples);
  let sum = 0;
  for (const s of samples) sum += s * s;
  const rms = Math.sqrt(sum / samples.length);
  return rms < 0.006 ? 0 : Math.min(1, Math.pow(rms / 0.22, 0.62));
}
