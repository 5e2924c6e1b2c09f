// The drawing of the face: an SVG of 320 × 240, made once. Only attributes of its elements change later.

import type { Eye, Face, Mark, Mouth } from "./faces.js";

const eyeY = 102;
const eyeX = [92, 228] as const;
const eyeR = 14;
const mouthY = 158;
const farthest = [17, 13] as const; // maximum movement of the eyes with the gaze: to a side, and up or down

// Pose is the state of all moving parts at one moment. Fields without a comment are as in Face.
export interface Pose {
  gaze: [number, number];
  blink: number; // 1 is open
  mouth: number; // how far the mouth is open, 0 to 1
  size: number;
  open: [number, number];
  slant: number;
  wide: number;
  curve: number;
  skew: number;
  brows: [number, number];
  browSlant: number;
  browsSeen: number; // opacity of the brows
  flush: number; // colour of the cheeks, 0 to 1
  wrinkle: number; // wrinkles of the nose, 0 to 1
}

export function poseOf(f: Face): Pose {
  return {
    gaze: [...f.gaze], blink: 1, mouth: f.gap, size: f.size, open: [...f.open], slant: f.slant, wide: f.wide, curve: f.curve, skew: f.skew,
    brows: f.brows ? [...f.brows] : [28, 28], browSlant: f.browSlant, browsSeen: f.brows ? 1 : 0, flush: 0, wrinkle: 0,
  };
}

export class Drawing {
  readonly svg: SVGSVGElement;
  private readonly eyes: [SVGPathElement, SVGPathElement];
  private readonly pupils: [SVGElement, SVGElement];
  private readonly brows: [SVGElement, SVGElement];
  private readonly mouth: SVGPathElement;
  private readonly tongue: SVGElement;
  private readonly marks = new Map<Mark, SVGElement>();
  private readonly cheeks: [SVGElement, SVGElement];
  private readonly nose: SVGElement;
  private readonly features: SVGElement;

  constructor() {
    this.svg = node("svg", { viewBox: "0 0 320 240", "aria-hidden": "true", class: "screen-ink" });
    this.features = node("g", { class: "features" });
    const eye = () => node("path", { class: "ink" });
    const pupil = () => node("circle", { r: "6", class: "ink" });
    const brow = () => node("path", { d: "M-17 0H17", class: "line brow" });
    this.eyes = [eye(), eye()];
    this.pupils = [pupil(), pupil()];
    this.brows = [brow(), brow()];
    this.mouth = node("path", { class: "line ink mouth" });
    this.tongue = node("path", { d: "M-17 0C-17 32 17 32 17 0Z", class: "tongue" });
    this.cheeks = [cheek(62), cheek(258)];
    this.nose = node("path", { d: "M152 130Q156 124 160 130Q164 124 168 130", class: "thin wrinkle" });
    this.features.append(...this.cheeks, this.nose, this.mouth, this.tongue, ...this.eyes, ...this.pupils, ...this.brows);
    for (const [name, parts] of Object.entries(marks())) {
      const g = node("g", { class: `mark ${name}`, visibility: "hidden" });
      g.append(...parts);
      this.marks.set(name as Mark, g);
      this.features.append(g);
    }
    this.svg.append(this.features, ...signs());
  }

  // parts sets the shapes that cannot change gradually. StackChanFace calls it while the eyes are closed by a blink.
  parts(f: Face): void {
    this.kinds = f.eyes;
    this.lips = f.mouth;
    for (const [name, g] of this.marks) g.setAttribute("visibility", f.marks.includes(name) ? "visible" : "hidden");
    this.tongue.setAttribute("visibility", f.mouth === "tongue" ? "visible" : "hidden");
    f.eyes.forEach((kind, i) => {
      const stroked = kind !== "dot" && kind !== "heart";
      this.eyes[i]!.setAttribute("class", kind === "heart" ? "heart" : stroked ? "line" : "ink");
      this.pupils[i]!.setAttribute("visibility", kind === "ring" ? "visible" : "hidden");
    });
  }
  private kinds: [Eye, Eye] = ["dot", "dot"];
  private lips: Mouth = "curve";

  pose(p: Pose): void {
    const x = p.gaze[0] * farthest[0];
    const y = p.gaze[1] * farthest[1];
    for (const i of [0, 1] as const) {
      const side = i === 0 ? 1 : -1;
      this.set(this.eyes[i], "d", eyePath(this.kinds[i], side, p, p.open[i]));
      const shut = Math.max(0.08, p.blink);
      this.set(this.eyes[i], "transform", `translate(${n(eyeX[i] + x)} ${n(eyeY + y)}) scale(1 ${n(shut)})`);
      this.set(this.pupils[i], "transform", `translate(${n(eyeX[i] + x * 1.5)} ${n(eyeY + y * 1.6)}) scale(1 ${n(shut)})`);
      this.set(this.brows[i], "transform", `translate(${n(eyeX[i] + x * 0.8)} ${n(eyeY + y * 0.8 - p.brows[i])}) rotate(${n(side * p.browSlant)})`);
      this.set(this.brows[i], "opacity", n(p.browsSeen));
    }
    for (const c of this.cheeks) this.set(c, "opacity", n(0.55 * p.flush));
    this.set(this.nose, "opacity", n(p.wrinkle));
    this.set(this.mouth, "d", this.mouthPath(p));
    this.set(this.mouth, "transform", `translate(${n(160 + x * 0.4)} ${n(mouthY + y * 0.3)})`);
    this.set(this.tongue, "transform", `translate(${n(172 + x * 0.4)} ${n(mouthY + y * 0.3 + 8)})`);
  }

  // set sets an attribute if the value has changed. In most frames most attributes stay the same.
  private readonly last = new Map<SVGElement, Record<string, string>>();
  private set(e: SVGElement, name: string, value: string): void {
    let known = this.last.get(e);
    if (!known) this.last.set(e, (known = {}));
    if (known[name] === value) return;
    known[name] = value;
    e.setAttribute(name, value);
  }

  private mouthPath(p: Pose): string {
    const open = p.mouth;
    if (this.lips === "kiss") {
      const r = 7 + open * 9;
      return `M0 ${-r}C12 ${-r} 12 ${-r * 0.15} 2 0C12 ${r * 0.15} 12 ${r} 0 ${r}`;
    }
    const w = (p.wide - 22 * open) / 2;
    if (this.lips === "wave" && open < 0.12) {
      return `M${n(-w)} 3Q${n(-w * 0.75)} -7 ${n(-w * 0.5)} 0T0 0T${n(w * 0.5)} 0T${n(w)} -3`;
    }
    const bend = p.curve * 26; // how far the middle is below the corners
    const top = bend * (1 - 0.7 * open) - open * 9;
    const bottom = bend + open * 52;
    const l = p.skew, r = -p.skew;
    return `M${n(-w)} ${n(l)}C${n(-w * 0.55)} ${n(top + l * 0.5)} ${n(w * 0.55)} ${n(top + r * 0.5)} ${n(w)} ${n(r)}` +
      `C${n(w * 0.75)} ${n(bottom + r * 0.5)} ${n(-w * 0.75)} ${n(bottom + l * 0.5)} ${n(-w)} ${n(l)}Z`;
  }
}

function eyePath(kind: Eye, side: 1 | -1, p: Pose, open: number): string {
  const k = p.size;
  switch (kind) {
    case "arc": return `M${n(-16 * k)} ${n(6 * k)}Q0 ${n(-17 * k)} ${n(16 * k)} ${n(6 * k)}`;
    case "closed": return `M${n(-15 * k)} ${n(-2 * k)}Q0 ${n(12 * k)} ${n(15 * k)} ${n(-2 * k)}`;
    case "squeezed": return `M${n(-12 * side)} -11L${n(10 * side)} 0L${n(-12 * side)} 11`;
    case "heart": return "M0 18C-26 2 -22 -17 -10 -17C-4 -17 0 -12 0 -8C0 -12 4 -17 10 -17C22 -17 26 2 0 18Z";
    case "ring": return `M${n(-16 * k)} 0A${n(16 * k)} ${n(16 * k)} 0 1 1 ${n(16 * k)} 0A${n(16 * k)} ${n(16 * k)} 0 1 1 ${n(-16 * k)} 0Z`;
  }
  // A circle, cut by the upper lid. The lid's inner end is lower where slant is positive.
  const r = eyeR * k;
  const tilt = Math.tan((side * p.slant * Math.PI) / 180);
  const lid = r - 2 * r * open;
  let d = "";
  for (let i = 0; i < 28; i++) {
    const a = (i / 28) * 2 * Math.PI;
    const px = r * Math.cos(a);
    const py = Math.min(r, Math.max(r * Math.sin(a), lid + tilt * px));
    d += `${i ? "L" : "M"}${n(px)} ${n(open >= 1 && !p.slant ? r * Math.sin(a) : py)}`;
  }
  return d + "Z";
}

const cheek = (x: number): SVGElement => node("ellipse", { cx: `${x}`, cy: "136", rx: "20", ry: "9", class: "rose" });

const heart = "M0 6C-9 0 -8 -7 -4 -7C-1.5 -7 0 -5 0 -3C0 -5 1.5 -7 4 -7C8 -7 9 0 0 6Z";
const drop = "M0 -9C5 -2 7 1 7 4A7 7 0 0 1 -7 4C-7 1 -5 -2 0 -9Z";

function marks(): Record<Mark, SVGElement[]> {
  const path = (d: string, kind: string, at = "") => node("path", { d, class: kind, ...(at ? { transform: at } : {}) });
  const blush = (x: number) => {
    const c = cheek(x);
    c.classList.add("soft");
    return c;
  };
  const glass = (x: number) => node("rect", { x: `${x}`, y: "80", width: "86", height: "44", rx: "15", class: "glass" });
  const zzz = [[238, 74, 0.8], [258, 54, 1.05], [284, 30, 1.4]].map(([x, y, k]) =>
    path("M-6 -7H6L-6 7H6", "thin float", `translate(${x} ${y}) scale(${k})`));
  return {
    blush: [blush(62), blush(258)],
    tear: [path(drop, "water", "translate(60 116) rotate(28)"), path(drop, "water", "translate(260 116) rotate(-28)")],
    streams: [path("M80 116V176A11 11 0 0 0 102 176V116Z", "water"), path("M218 116V176A11 11 0 0 0 240 176V116Z", "water")],
    sweat: [path(drop, "water", "translate(280 70) scale(1.25)")],
    zzz,
    hearts: [path(heart, "heart float", "translate(276 62) scale(1.7)"), path(heart, "heart float", "translate(298 36) scale(1.1)")],
    glasses: [glass(49), glass(185), path("M135 96Q160 84 185 96", "line glass-line"), path("M64 92L84 92", "shine"), path("M200 92L220 92", "shine")],
    anger: [path("M-13 -5Q-5 -5 -5 -13M5 -13Q5 -5 13 -5M13 5Q5 5 5 13M-5 13Q-5 5 -13 5", "thin hot", "translate(276 50)")],
    question: [path("M-9 -9C-9 -20 9 -20 9 -8C9 0 0 0 0 9M0 18V19", "thin", "translate(282 50)")],
    drool: [path(drop, "water", "translate(196 178)")],
  };
}

// signs returns the small pictures above the eyes, one for each state. The style sheet shows only the picture of the
// present state.
function signs(): SVGElement[] {
  const sign = (state: string, ...parts: SVGElement[]) => {
    const g = node("g", { class: `sign of-${state}` });
    const at = node("g", { transform: "translate(160 34)" });
    at.append(...parts);
    g.append(at);
    return g;
  };
  const bar = (x: number, i: number) => node("rect", { x: `${x - 3}`, y: "-11", width: "6", height: "22", rx: "3", class: `bar b${i}` });
  const dot = (x: number, i: number) => node("circle", { cx: `${x}`, cy: "0", r: "5", class: `dot b${i}` });
  const line = (d: string) => node("path", { d, class: "thin" });
  const gear = line("M0 -12V-8M0 8V12M-12 0H-8M8 0H12M-8.5 -8.5L-5.7 -5.7M5.7 5.7L8.5 8.5M-8.5 8.5L-5.7 5.7M5.7 -5.7L8.5 -8.5M7 0A7 7 0 1 1 -7 0A7 7 0 1 1 7 0Z");
  gear.classList.add("spin");
  const balls = node("g", { class: "spin" });
  balls.append(...[0, 120, 240].map((a) => node("circle", { cx: "0", cy: "-12", r: "4.5", class: "fill", transform: `rotate(${a})` })));
  const mute = node("g", { class: "sign muted", transform: "translate(34 34)" });
  mute.append(line("M-4 -8A4 4 0 0 1 4 -8V-2A4 4 0 0 1 -4 -2ZM-9 -3A9 9 0 0 0 9 -3M0 6V11M-11 -12L11 10"));
  return [
    sign("listening", bar(-20, 0), bar(-10, 1), bar(0, 2), bar(10, 1), bar(20, 0)),
    sign("thinking", dot(-16, 0), dot(0, 1), dot(16, 2)),
    sign("working", gear),
    sign("juggling", balls),
    sign("speaking", line("M-14 0Q-14 -9 0 -9Q14 -9 14 0Q14 9 0 9L-8 13L-6 8Q-14 6 -14 0Z")),
    sign("error", line("M0 -13L14 11H-14ZM0 -4V3M0 7V7.5")),
    sign("attention", line("M-12 0L-3 9L13 -9")),
    sign("notification", line("M-12 7Q-9 4 -9 -2A9 9 0 0 1 9 -2Q9 4 12 7ZM-3 11A3 3 0 0 0 3 11")),
    mute,
  ];
}

function node<K extends keyof SVGElementTagNameMap>(name: K, attributes: Record<string, string>): SVGElementTagNameMap[K] {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}

const n = (x: number): string => x.toFixed(2);
