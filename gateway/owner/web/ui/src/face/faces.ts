// The faces: the eyes, mouth and marks of the 21 emotions of the Xiaozhi firmware, and of doubtful, which only
// Stack-chan's firmware has. draw.ts draws them, in the coordinates of a screen of 320 × 240.

export type Eye = "dot" | "arc" | "closed" | "squeezed" | "heart" | "ring";
export type Mouth = "curve" | "wave" | "kiss" | "tongue";
export type Mark = "blush" | "tear" | "streams" | "sweat" | "zzz" | "hearts" | "glasses" | "anger" | "question" | "drool";

export interface Face {
  eyes: [left: Eye, right: Eye]; // as the viewer sees them
  size: number; // size of the eyes; 1 is normal
  open: [left: number, right: number]; // how far the upper lids are open, 0 to 1
  slant: number; // slant of the lids in degrees; positive: the inner ends are lower
  gaze: [x: number, y: number]; // -1 to 1, added to the direction in which the face looks
  mouth: Mouth;
  wide: number; // width of the mouth
  curve: number; // corners of the mouth: 1 is up (a smile), -1 is down
  skew: number; // how far the left corner of the mouth is below the middle and the right one above
  gap: number; // how far the mouth is open while the robot is silent, 0 to 1
  brows: [left: number, right: number] | null; // height in pixels above the eye
  browSlant: number; // degrees; positive: the inner ends are lower
  marks: Mark[];
}

const plain: Face = {
  eyes: ["dot", "dot"], size: 1, open: [1, 1], slant: 0, gaze: [0, 0], mouth: "curve", wide: 84, curve: 0, skew: 0, gap: 0,
  brows: null, browSlant: 0, marks: [],
};

const face = (f: Partial<Face>): Face => ({ ...plain, ...f });

const faces = {
  neutral: plain,
  happy: face({ eyes: ["arc", "arc"], wide: 70, curve: 0.6, marks: ["blush"] }),
  laughing: face({ eyes: ["squeezed", "squeezed"], wide: 84, curve: 0.5, gap: 0.55 }),
  funny: face({ eyes: ["squeezed", "squeezed"], wide: 92, curve: 0.5, gap: 0.75, marks: ["tear"] }),
  sad: face({ open: [0.72, 0.72], slant: -18, gaze: [0, 0.3], wide: 60, curve: -0.5, brows: [30, 30], browSlant: -16 }),
  angry: face({ open: [0.66, 0.66], slant: 20, wide: 64, curve: -0.4, brows: [22, 22], browSlant: 20, marks: ["anger"] }),
  crying: face({ eyes: ["closed", "closed"], wide: 58, curve: -0.7, gap: 0.2, brows: [28, 28], browSlant: -18, marks: ["streams"] }),
  loving: face({ eyes: ["heart", "heart"], wide: 66, curve: 0.6, marks: ["blush", "hearts"] }),
  embarrassed: face({ size: 0.9, gaze: [0.55, 0.35], mouth: "wave", wide: 50, brows: [30, 30], browSlant: -10, marks: ["blush", "sweat"] }),
  surprised: face({ size: 1.25, wide: 40, gap: 0.45, brows: [36, 36] }),
  shocked: face({ eyes: ["ring", "ring"], size: 1.25, wide: 54, gap: 0.85, brows: [40, 40], browSlant: -8, marks: ["sweat"] }),
  thinking: face({ open: [0.85, 0.85], gaze: [0.6, -0.7], wide: 44, skew: -6, brows: [24, 36], browSlant: 4 }),
  winking: face({ eyes: ["dot", "arc"], wide: 66, curve: 0.55, marks: ["blush"] }),
  cool: face({ wide: 62, curve: 0.3, skew: -8, marks: ["glasses"] }),
  relaxed: face({ eyes: ["closed", "closed"], wide: 56, curve: 0.4 }),
  delicious: face({ eyes: ["arc", "arc"], wide: 72, curve: 0.7, gap: 0.2, marks: ["drool", "blush"] }),
  kissy: face({ eyes: ["closed", "arc"], mouth: "kiss", marks: ["blush", "hearts"] }),
  confident: face({ open: [0.6, 0.6], wide: 62, curve: 0.35, skew: -9, brows: [24, 32], browSlant: 6 }),
  sleepy: face({ open: [0.3, 0.3], slant: -5, gaze: [0, 0.3], wide: 36, curve: -0.1, gap: 0.12, marks: ["zzz"] }),
  silly: face({ eyes: ["dot", "squeezed"], size: 1.15, mouth: "tongue", wide: 70, curve: 0.55 }),
  confused: face({ eyes: ["ring", "ring"], gaze: [0.2, -0.8], mouth: "wave", wide: 60, brows: [24, 36], marks: ["question"] }),
  doubtful: face({ open: [0.5, 0.85], gaze: [-0.4, 0], wide: 54, skew: 6, brows: [20, 36], browSlant: 8 }),
} satisfies Record<string, Face>;

export type Emotion = keyof typeof faces;

export const emotions = Object.keys(faces) as Emotion[];

// isEmotion reports whether a text, such as a server's, is the name of a face.
export function isEmotion(name: string): name is Emotion {
  return Object.hasOwn(faces, name);
}

export function faceOf(e: Emotion): Face {
  return faces[e];
}

export type State =
  | "idle" | "listening" | "thinking" | "working" | "juggling" | "speaking" | "sleeping" | "error" | "attention" | "notification";

export const states: readonly State[] = [
  "idle", "listening", "thinking", "working", "juggling", "speaking", "sleeping", "error", "attention", "notification",
];

export function isState(name: string): name is State {
  return (states as readonly string[]).includes(name);
}

// inState returns a face as it looks in a state. A face other than the plain one keeps its eyes and mouth; the state
// then shows only in the sign above the eyes and in the gaze.
export function inState(f: Face, s: State): Face {
  const calm = f === plain;
  switch (s) {
    case "sleeping":
      return face({ eyes: ["closed", "closed"], wide: 34, curve: 0.15, marks: ["zzz"] });
    case "error":
      return calm ? face({ open: [0.8, 0.8], slant: -12, mouth: "wave", wide: 64, brows: [28, 28], browSlant: -14, marks: ["sweat"] }) : f;
    case "listening":
      return calm ? face({ size: 1.12, wide: 60, curve: 0.12 }) : f;
    case "attention":
      return calm ? face({ size: 1.12, wide: 64, curve: 0.35, brows: [32, 32] }) : f;
    case "notification":
      return calm ? face({ size: 1.1, wide: 46, gap: 0.12, brows: [34, 34] }) : f;
    case "thinking":
      return calm ? faces.thinking : { ...f, gaze: [0.6, -0.6] };
    case "working":
      return calm ? face({ open: [0.8, 0.8], gaze: [0, 0.75], wide: 50 }) : { ...f, gaze: [0, 0.7] };
    case "juggling":
      return calm ? face({ gaze: [0, -0.8], wide: 50, gap: 0.1 }) : { ...f, gaze: [0, -0.7] };
  }
  return f;
}
