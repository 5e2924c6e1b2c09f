// <stack-chan-face>: the head of a Stack-chan.
//
//   <stack-chan-face state="listening" emotion="happy" yaw="-20" pitch="10" text="Hello"></stack-chan-face>
//
// Attributes, each also a property: state, emotion, mood, loudness, gaze, yaw, pitch, leds, text and muted. The
// attribute look is robot (default), screen or bare. Unknown names of states and emotions are ignored, because they
// come from servers. The property loudness may also be an AnalyserNode; without a loudness, the mouth moves at random
// while the state is speaking. The property feels is a mood that is drawn over the face. gesture() moves the head.
// While the element is not visible, because it is scrolled away or its page is hidden, it has no timers, frames or
// animations.

import { Drawing, poseOf, type Pose } from "./draw.js";
import { faceOf, inState, isEmotion, isState, type Emotion, type Face, type State } from "./faces.js";
import { approach, blinkAfter, blinkFor, gestureFrames, glance, glanceAfter, gestures, loudnessOf, type Gesture } from "./motion.js";
import { wear, type Mood } from "./mood.js";
import { style } from "./style.js";
import { describe } from "./words.js";

export { emotions, states, isEmotion, isState, type Emotion, type State } from "./faces.js";
export { gestures, type Gesture } from "./motion.js";
export { moodOf, type Mood } from "./mood.js";

export type Look = "robot" | "screen" | "bare";

const planes = ["back", "left", "right", "top", "bottom", "corner c0", "corner c1", "corner c2", "corner c3"];
const ledCount = 12;

export class StackChanFace extends HTMLElement {
  static readonly observedAttributes = ["state", "emotion", "mood", "loudness", "gaze", "yaw", "pitch", "leds", "text", "muted", "look", "lang"];

  private stage = part("stage");
  private turn = part("turn");
  private moved = part("gesture");
  private screen = part("screen");
  private bubble = part("bubble");
  private lights: HTMLElement[] = [];
  private drawing = new Drawing();

  private now: Pose;
  private goal: Pose;
  private shown: Face;
  private wanted: Face;
  private values: { state: State; emotion: Emotion; mood: Emotion; text: string; muted: boolean; yaw: number; pitch: number } =
    { state: "idle", emotion: "neutral", mood: "neutral", text: "", muted: false, yaw: 0, pitch: 0 };
  private volume: number | null = null; // null: unknown
  private source: AnalyserNode | null = null;
  private samples = new Float32Array(1024);
  private feeling: Mood | null = null;
  private looksAt: [number, number] | null = null;
  private aside: [number, number] = [0, 0];
  private colours: string[] = [];

  private seen = false;
  private frame = 0;
  private last = 0;
  private timers = new Set<number>();
  private watch: IntersectionObserver | undefined;
  private readonly quiet = matchMedia("(prefers-reduced-motion: reduce)");

  constructor() {
    super();
    this.shown = this.wanted = faceOf("neutral");
    this.now = poseOf(this.shown);
    this.goal = poseOf(this.shown);
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [style()];
    const breath = part("breath");
    breath.append(this.drawing.svg);
    this.screen.append(breath, this.bubble);
    root.append(this.stage);
    this.build("robot");
    this.drawing.parts(this.shown);
    this.drawing.pose(this.now);
  }

  connectedCallback(): void {
    if (!this.hasAttribute("role")) this.setAttribute("role", "img");
    this.watch = new IntersectionObserver((entries) => {
      this.seen = entries.at(-1)?.isIntersecting ?? false;
      this.settle();
    });
    this.watch.observe(this);
    document.addEventListener("visibilitychange", this.settle);
    this.quiet.addEventListener("change", this.settle);
    this.label();
  }

  disconnectedCallback(): void {
    this.watch?.disconnect();
    this.seen = false;
    document.removeEventListener("visibilitychange", this.settle);
    this.quiet.removeEventListener("change", this.settle);
    this.settle();
  }

  attributeChangedCallback(name: string, _: string | null, value: string | null): void {
    switch (name) {
      case "state": this.state = value ?? "idle"; break;
      case "emotion": this.emotion = value ?? "neutral"; break;
      case "mood": this.mood = value ?? "neutral"; break;
      case "loudness": this.loudness = value === null ? null : Number(value) || 0; break;
      case "gaze": this.gaze = value === null ? null : pairOf(value); break;
      case "yaw": this.yaw = Number(value) || 0; break;
      case "pitch": this.pitch = Number(value) || 0; break;
      case "leds": this.leds = (value ?? "").split(/[\s,]+/).filter(Boolean); break;
      case "text": this.text = value ?? ""; break;
      case "muted": this.muted = value !== null; break;
      case "look": this.build(value === "screen" || value === "bare" ? value : "robot"); break;
      case "lang": this.label(); break;
    }
  }

  get state(): State { return this.values.state; }
  set state(s: string) {
    if (!isState(s) || s === this.values.state) return;
    this.stage.classList.replace(this.values.state, s);
    this.values.state = s;
    this.choose();
    if (s === "notification") void this.gesture("tilt");
    if (s === "speaking") this.babble();
  }

  get emotion(): Emotion { return this.values.emotion; }
  set emotion(e: string) {
    if (!isEmotion(e)) return;
    this.values.emotion = e;
    this.choose();
  }

  // mood is the face that is shown while the emotion is neutral.
  get mood(): Emotion { return this.values.mood; }
  set mood(e: string) {
    if (!isEmotion(e)) return;
    this.values.mood = e;
    this.choose();
  }

  // feels changes the face that is shown, and turns the head.
  get feels(): Mood | null { return this.feeling; }
  set feels(m: Mood | null) {
    this.feeling = m;
    this.dataset["feels"] = m?.dominant ?? "";
    this.orient();
    this.move();
  }

  get loudness(): number | AnalyserNode | null { return this.source ?? this.volume; }
  set loudness(l: number | AnalyserNode | null) {
    this.source = l instanceof AnalyserNode ? l : null;
    this.volume = typeof l === "number" ? clamp(l, 0, 1) : null;
    this.move();
  }

  // gaze is a direction, each part from -1 to 1, positive to the viewer's right and down. If it is null, the eyes move
  // at random.
  get gaze(): [number, number] | null { return this.looksAt; }
  set gaze(g: [number, number] | null) {
    this.looksAt = g && [clamp(g[0], -1, 1), clamp(g[1], -1, 1)];
    this.move();
  }

  // yaw is in degrees; negative is to the robot's own left, which is the viewer's right.
  get yaw(): number { return this.values.yaw; }
  set yaw(v: number) { this.values.yaw = clamp(v, -128, 128); this.orient(); }

  get pitch(): number { return this.values.pitch; }
  set pitch(v: number) { this.values.pitch = clamp(v, 0, 90); this.orient(); }

  // leds are twelve colours as #rrggbb, or one colour for all; an empty text is off.
  get leds(): string[] { return this.colours; }
  set leds(c: string[]) {
    this.colours = c.length === 1 ? Array<string>(ledCount).fill(c[0]!) : c.slice(0, ledCount);
    this.lights.forEach((led, i) => {
      const colour = this.colours[i] ?? "";
      if (/^#[0-9a-f]{6}$/i.test(colour) && colour !== "#000000") led.style.setProperty("--c", colour);
      else led.style.removeProperty("--c");
    });
  }

  get text(): string { return this.values.text; }
  set text(t: string) {
    this.values.text = t;
    this.bubble.textContent = t;
    this.stage.classList.toggle("talks", t !== "");
    this.label();
  }

  get muted(): boolean { return this.values.muted; }
  set muted(m: boolean) {
    this.values.muted = m;
    this.stage.classList.toggle("is-muted", m);
    this.label();
  }

  // held makes the head turn without delay while a finger drags it.
  set held(h: boolean) { this.stage.classList.toggle("dragged", h); }

  // gesture moves the head once, unless the user prefers reduced motion.
  async gesture(g: string): Promise<void> {
    const known = gestures.find((k) => k === g);
    if (!known || !this.awake || this.quiet.matches) return;
    const { frames, ms } = gestureFrames(known as Gesture);
    await this.moved.animate(frames, { duration: ms, easing: "ease-in-out" }).finished.catch(() => undefined);
  }

  private build(look: Look): void {
    this.stage.className = `stage ${this.values.state}${look === "robot" ? "" : " flat"}${look === "bare" ? " bare" : ""}`;
    this.stage.replaceChildren();
    this.lights = [];
    if (look === "robot") {
      const base = part("base");
      const leds = part("leds");
      this.lights = Array.from({ length: ledCount }, () => part("led"));
      leds.append(...this.lights);
      base.append(leds);
      const front = part("plane front");
      front.append(this.screen);
      this.moved.replaceChildren(...planes.map((p) => part(`plane ${p}`)), front);
      this.turn.replaceChildren(this.moved);
      this.stage.append(base, this.turn);
    } else {
      this.stage.append(this.screen);
    }
    this.leds = this.colours;
    this.text = this.values.text;
    this.muted = this.values.muted;
    this.settle();
  }

  private orient(): void {
    const { yaw, lean, tilt } = this.feeling ?? { yaw: 0, lean: 0, tilt: 0 };
    this.turn.style.transform = `rotateY(${-this.values.yaw - yaw}deg) rotateX(${this.values.pitch - lean}deg) rotateZ(${tilt}deg)`;
    this.stage.style.setProperty("--tilt", `${tilt}deg`);
  }

  private choose(): void {
    const { emotion, mood, state } = this.values;
    this.wanted = inState(faceOf(emotion === "neutral" ? mood : emotion), state);
    this.label();
    this.move();
  }

  private label(): void {
    if (!this.isConnected) return;
    const language = this.closest("[lang]")?.getAttribute("lang") ?? navigator.language;
    this.setAttribute("aria-label", describe({ ...this.values }, language));
  }

  private get awake(): boolean { return this.seen && !document.hidden; }

  // settle starts the timers and animations if the element is visible, and otherwise stops them.
  private readonly settle = (): void => {
    for (const t of this.timers) clearTimeout(t);
    this.timers.clear();
    this.babbling = false;
    this.stage.classList.toggle("awake", this.awake);
    if (!this.awake) {
      cancelAnimationFrame(this.frame);
      this.frame = 0;
      return;
    }
    if (!this.quiet.matches) {
      this.later(blinkAfter(), this.blink);
      this.later(glanceAfter(), this.lookAside);
      this.babble();
    }
    this.move();
  };

  private later(ms: number, f: () => void): void {
    const t = window.setTimeout(() => {
      this.timers.delete(t);
      f();
    }, ms);
    this.timers.add(t);
  }

  // babble moves the mouth at random while the state is speaking and the loudness is unknown, as the firmware does.
  private babbles = 0;
  private babbling = false;
  private readonly babble = (): void => {
    this.babbles = 0;
    if (this.babbling || this.values.state !== "speaking" || this.source || this.volume !== null || !this.awake) return;
    this.babbles = this.quiet.matches ? 0.35 : Math.random() < 0.3 ? 0.05 : 0.25 + Math.random() * 0.5;
    this.move();
    if (this.quiet.matches) return;
    this.babbling = true;
    this.later(100 + Math.random() * 110, () => {
      this.babbling = false;
      this.babble();
    });
  };

  private shut = false;
  private readonly blink = (): void => {
    this.shut = true;
    this.move();
    this.later(blinkFor, () => {
      this.shut = false;
      this.move();
    });
    this.later(blinkAfter(), this.blink);
  };

  private readonly lookAside = (): void => {
    this.aside = this.values.state === "idle" ? glance() : [0, 0];
    this.later(glanceAfter(), this.lookAside);
    this.move();
  };

  // move runs frames until the pose is reached, or as long as an AnalyserNode is the loudness.
  private move(): void {
    if (!this.awake || this.frame) return;
    this.last = performance.now();
    this.frame = requestAnimationFrame(this.step);
  }

  private readonly step = (at: number): void => {
    const ms = Math.min(60, Math.max(1, at - this.last));
    this.last = at;
    this.frame = 0;
    if (this.source) this.volume = loudnessOf(this.source, this.samples);
    const changes = this.shown !== this.wanted;
    const goal = poseOf(this.wanted);
    if (this.feeling) wear(goal, this.feeling, this.values.emotion === "neutral" && this.values.mood === "neutral");
    goal.blink = this.shut || (changes && !this.quiet.matches) ? 0 : 1;
    if (changes && (this.now.blink < 0.2 || this.quiet.matches)) {
      this.shown = this.wanted;
      this.drawing.parts(this.shown);
    }
    const towards = this.looksAt ?? this.aside;
    goal.gaze = [clamp(goal.gaze[0] + towards[0], -1, 1), clamp(goal.gaze[1] + towards[1], -1, 1)];
    const loud = this.volume ?? (this.values.state === "speaking" ? this.babbles : 0);
    goal.mouth = Math.max(goal.mouth * (loud > 0 ? 0.6 : 1), loud);
    this.goal = goal;
    const arrived = approach(this.now, this.goal, this.quiet.matches ? 1000 : ms);
    this.drawing.pose(this.now);
    if ((!arrived || this.source || changes) && this.awake) this.frame = requestAnimationFrame(this.step);
  };
}

function part(name: string): HTMLElement {
  const e = document.createElement("div");
  e.className = name;
  return e;
}

function pairOf(text: string): [number, number] {
  const [x, y] = text.split(/[\s,]+/).map(Number);
  return [x || 0, y || 0];
}

const clamp = (v: number, low: number, high: number): number => Math.min(high, Math.max(low, v));

if (!customElements.get("stack-chan-face")) customElements.define("stack-chan-face", StackChanFace);

declare global {
  interface HTMLElementTagNameMap {
    "stack-chan-face": StackChanFace;
  }
}
