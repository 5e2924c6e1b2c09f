// The mood on the face: the server computes weights of morph targets (movable parts of a face) and angles of the head;
// this file applies them to the pose of any face.

import type { Pose } from "./draw.js";

// Mood is the visible form of an agent's feelings. Morphs are from 0 to 1, angles in degrees.
export interface Mood {
  dominant: string; // name of the strongest feeling
  morphs: Readonly<Record<string, number>>;
  tilt: number; // towards a shoulder
  lean: number; // forward
  yaw: number; // negative to the robot's own left
}

const mostName = 20; // maximum length of the name of a feeling
const most = { tilt: 25, lean: 25, yaw: 45 } as const;

// underEmotion is the share of a mood that is visible on the face of an emotion.
const underEmotion = 0.4;

// moodOf reads a mood from the fields of a server's message. It returns null if they contain no mood.
export function moodOf(fields: Record<string, unknown>): Mood | null {
  const { dominant, morphs, head } = fields;
  if (typeof dominant !== "string") return null;
  const at = (name: keyof typeof most) => Math.min(most[name], Math.max(-most[name], numberOf((head as Record<string, unknown> | undefined)?.[name])));
  const weights = typeof morphs === "object" && morphs ? Object.entries(morphs).slice(0, 100) : [];
  return {
    dominant: dominant.slice(0, mostName), tilt: at("tilt"), lean: at("lean"), yaw: at("yaw"),
    morphs: Object.fromEntries(weights.map(([name, w]) => [name, Math.min(1, Math.max(0, numberOf(w)))])),
  };
}

const numberOf = (v: unknown): number => (typeof v === "number" && Number.isFinite(v) ? v : 0);

// wear adds a mood to a pose. calm is true if the face shows no emotion.
export function wear(p: Pose, m: Mood, calm: boolean): void {
  const share = calm ? 1 : underEmotion;
  const w = (name: string): number => (m.morphs[name] ?? 0) * share;
  const both = (name: string): number => (w(`${name}Left`) + w(`${name}Right`)) / 2;
  p.curve = clamp(p.curve + 0.75 * w("mouthSmile") - w("mouthFrown") - both("mouthFrown"), -1, 1);
  p.mouth = Math.max(p.mouth, 0.5 * w("mouthOpen"), 0.75 * w("jawOpen"));
  p.wide *= 1 - 0.45 * both("mouthPress") - 0.35 * w("jawOpen") - 0.2 * w("mouthFrown");
  p.flush = clamp(p.flush + 1.6 * w("cheekPuff") + both("cheekSquint"), 0, 1);
  p.wrinkle = clamp(p.wrinkle + 4 * both("noseSneer"), 0, 1);
  p.size *= 1 + 0.3 * both("eyeWide");
  const down = both("browDown"), up = w("browInnerUp");
  p.browSlant += 22 * down - 26 * up;
  let seen = Math.max(down, up);
  // The agent's right is on the viewer's left.
  (["Right", "Left"] as const).forEach((side, i) => {
    const outer = w(`browOuterUp${side}`);
    p.open[i] = p.open[i]! * (1 - 0.55 * w(`eyeSquint${side}`)) * (1 - 0.9 * w("eyesClosed"));
    p.brows[i] = p.brows[i]! + 12 * outer + 6 * up - 6 * w(`browDown${side}`);
    seen = Math.max(seen, outer);
  });
  p.browsSeen = Math.max(p.browsSeen, clamp(seen * 5, 0, 1));
}

const clamp = (v: number, low: number, high: number): number => Math.min(high, Math.max(low, v));
