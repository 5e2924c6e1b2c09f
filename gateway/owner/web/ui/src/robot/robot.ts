// The robot in the page. It behaves like the Xiaozhi firmware: it checks in at boot, waits for adoption if the server
// requires it, opens a channel only for conversations, and is an MCP server. After each await, it must check whether the
// state has changed.
//
//   page ──tap, press, type──▶ Robot ──▶ Boot       http: check-in, activation
//                               │  ▲──▶ Channel    WebSocket, while it talks
//                               │  └──▶ RPC ──▶ PageBody
//                               └─────▶ Speaker, Microphone

import { send } from "../lib/api.js";
import { PageBody } from "./body.js";
import { Boot, type Step, type Unanswered } from "./boot.js";
import { Channel, Unopened } from "./channel.js";
import { board, CheckIn, version } from "./checkin.js";
import { Keeper, type Framing, type Mode } from "./flash.js";
import { Frames } from "./frames.js";
import { canHear, Deaf, Microphone } from "./microphone.js";
import { RPC } from "./rpc.js";
import { Speaker } from "./speaker.js";
import { toolsOf } from "./tools.js";
import { fieldsOf, textOf, type Fields } from "./wire.js";

export type State = "starting" | "activating" | "idle" | "connecting" | "listening" | "speaking";

export type Line =
  | { who: "you" | "robot"; text: string }
  | { who: "tool"; name: string; given: string; result: string; failed: boolean }
  | { who: "alert"; status: string; text: string }
  | { who: "reminder"; text: string };

export type Trouble =
  | Unanswered
  | { what: "mqtt" }
  | { what: "unopened"; why: Unopened["why"] };

export const wakeWord = "Hi, Stack Chan";

const bubbleStays = 6000;
const listedWithin = 1000;

export class Robot extends EventTarget {
  state: State = "starting";
  thinking = false; // speech was recognized, and the reply has not begun
  working = ""; // name of the running tool
  emotion = "neutral";
  bubble = "";
  waits: { code: string; message: string } | undefined; // set while the robot waits for adoption
  trouble: Trouble | undefined;
  deaf: Deaf["why"] | undefined = canHear() ? undefined : "insecure";
  muted = false;
  readonly keeper = new Keeper();
  readonly frames = new Frames();
  readonly speaker = new Speaker();
  readonly microphone = new Microphone();
  readonly checkIn = new CheckIn(this.keeper.flash, this.frames);
  readonly body: PageBody;

  private rpc: RPC;
  private channel: Channel | undefined;
  private mode: Mode = "auto"; // mode of this conversation
  private life = new AbortController(); // aborted at the next boot
  private starts = new Boot(this.checkIn, (s) => this.step(s));
  private epoch = 0; // number of state changes
  private introduced = Promise.resolve(); // resolves when the server knows the tools
  private listed: (() => void) | undefined;
  private bubbleTimer = 0;

  constructor(drawnNote: () => string) {
    super();
    this.body = new PageBody(this.keeper, this.speaker, this.checkIn, {
      changed: () => this.changed(), ring: (m) => this.ring(m), reboot: () => this.rebootSoon(), drawnNote, signal: () => this.life.signal,
    });
    this.rpc = new RPC(toolsOf(this.body), { name: board, version }, (url, token) => this.body.see(url, token), (c) =>
      this.line({ who: "tool", name: c.name, given: c.given, result: c.result, failed: c.failed }));
  }

  // boot starts again, and checks in until a server has accepted the robot.
  async boot(): Promise<void> {
    this.life.abort();
    this.life = new AbortController();
    this.channel?.drop();
    this.channel = undefined;
    this.microphone.stop();
    this.speaker.reset();
    this.body.reset();
    this.trouble = this.waits = undefined;
    this.enter("starting");
    await this.starts.run(this.life.signal);
  }

  // leave tells the page's server that the robot is gone until the next boot.
  async leave(): Promise<void> {
    if (!this.checkIn.own) return;
    await send("POST", `api/v1/devices/${this.keeper.flash.mac.replaceAll(":", "")}/leave`).catch(() => undefined);
  }

  private step(s: Step): void {
    this.trouble = this.waits = undefined;
    switch (s.state) {
      case "waits":
        this.waits = s;
        this.enter("activating");
        return;
      case "trouble":
        this.trouble = s.trouble;
        this.enter("starting");
        return;
      case "taken":
        this.keeper.save();
        this.enter("idle");
    }
  }

  // retry ends a wait between tries, or boots again after the last try.
  retry(): void {
    if (!this.starts.cut() && this.trouble) void this.boot();
  }

  // tap handles a touch of the face: it begins to listen, interrupts the reply, or hangs up.
  async tap(): Promise<void> {
    void this.speaker.wake();
    switch (this.state) {
      case "starting": case "activating": this.retry(); return;
      case "speaking": this.abort(); return;
      case "listening": this.hangUp(); return;
      case "idle": if (await this.open()) await this.listen(this.usual); return;
    }
  }

  // wake does what a wake word does. It interrupts a reply.
  async wake(): Promise<void> {
    void this.speaker.wake();
    if (this.state === "speaking") {
      this.abort("wake_word_detected");
      await this.listen(this.usual);
    } else if (this.state === "idle" && (await this.open())) {
      this.channel?.send({ type: "listen", state: "detect", text: wakeWord });
      await this.listen(this.usual);
    }
  }

  // press and release handle the push-to-talk button.
  private pressed = false;
  async press(): Promise<void> {
    this.pressed = true;
    void this.speaker.wake();
    if (this.state === "starting" || this.state === "activating") this.retry();
    if (this.state === "speaking") {
      this.abort();
    } else if (this.state !== "idle" || !(await this.open())) {
      return;
    }
    if (this.pressed) await this.listen("manual");
  }

  release(): void {
    this.pressed = false;
    if (this.state !== "listening" || this.mode !== "manual") return;
    this.microphone.stop();
    this.channel?.send({ type: "listen", state: "stop" });
    this.thinking = true;
    this.enter("idle");
  }

  // type sends a typed text as a wake word, as clients with a keyboard do. It first waits until the server has listed the
  // tools, because a typed text arrives sooner than speech.
  async type(words: string): Promise<void> {
    void this.speaker.wake();
    if (this.state === "speaking") this.abort();
    if (!(await this.open())) return;
    await Promise.race([this.introduced, new Promise((r) => setTimeout(r, listedWithin))]);
    this.mode = this.microphone.isOpen ? this.mode : "manual"; // after a typed text, it does not listen after the reply
    this.channel?.send({ type: "listen", state: "detect", text: words, source: "text" });
    this.thinking = true;
    this.changed();
  }

  // abort interrupts a reply. Unlike the firmware, it silences the speaker at once, and ignores sound until the next
  // reply begins.
  private interrupted = false;
  abort(reason?: "wake_word_detected"): void {
    this.interrupted = true;
    this.speaker.reset();
    this.channel?.send({ type: "abort", ...(reason ? { reason } : {}) });
  }

  hangUp(): void {
    this.channel?.drop();
    this.ended();
  }

  setMuted(m: boolean): void {
    this.muted = m;
    this.changed();
  }

  private get usual(): Mode {
    return this.keeper.flash.mode;
  }

  // open opens the channel unless it is open.
  private async open(): Promise<boolean> {
    if (!["idle", "listening", "speaking"].includes(this.state)) return false;
    if (this.channel?.isOpen && !this.channel.isStale) return true;
    this.channel?.drop();
    const f = this.keeper.flash;
    const framing = (f.framing || ([2, 3].includes(f.websocket.version) ? f.websocket.version : 1)) as Framing;
    const channel: Channel = new Channel(this.frames, framing, {
      text: (m) => this.channel === channel && this.carryOut(m),
      sound: (p) => this.channel === channel && this.state === "speaking" && !this.interrupted && this.speaker.push(p),
      closed: () => this.channel === channel && this.ended(),
    });
    this.channel = channel;
    this.introduced = new Promise((r) => (this.listed = r));
    this.trouble = undefined;
    this.enter("connecting");
    try {
      await channel.open(this.address, f);
      if (this.channel !== channel) return false;
      if (this.state === "connecting") this.enter("idle");
      return true;
    } catch (e) {
      if (this.channel !== channel) return false;
      this.channel = undefined;
      this.trouble = { what: "unopened", why: e instanceof Unopened ? e.why : "socket" };
      this.enter("idle");
      return false;
    }
  }

  // address returns the address of the WebSocket. For the page's own server, it is relative to the page.
  private get address(): string {
    if (!this.checkIn.own) return this.keeper.flash.websocket.url;
    const url = new URL("xiaozhi/v1/", document.baseURI);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url.href;
  }

  // listen opens the microphone. In the mode auto, it first waits for the end of the sound.
  private async listen(mode: Mode): Promise<void> {
    if (this.deaf || !(await this.hears())) {
      if (this.state === "listening" || this.state === "speaking") this.enter("idle");
      return;
    }
    this.mode = mode;
    this.enter("listening");
    if (this.microphone.isOpen) return; // in realtime mode it was never closed
    const epoch = this.epoch;
    if (mode === "auto") await this.speaker.drained();
    if (this.epoch !== epoch) return;
    this.channel?.send({ type: "listen", state: "start", mode });
    this.speaker.reset();
    this.microphone.start((p) => {
      if (!this.muted) this.channel?.sendSound(p);
    });
    this.changed();
  }

  private async hears(): Promise<boolean> {
    try {
      await this.microphone.prepare();
      return true;
    } catch (e) {
      this.deaf = e instanceof Deaf ? e.why : "broken";
      this.changed();
      return false;
    }
  }

  // hearAgain requests the microphone again, after a refusal.
  async hearAgain(): Promise<void> {
    this.deaf = canHear() ? undefined : "insecure";
    this.changed();
    if (!this.deaf) await this.hears();
  }

  private ended(): void {
    this.channel = undefined;
    this.microphone.release();
    this.speaker.reset();
    this.thinking = false;
    this.working = "";
    if (this.state !== "starting" && this.state !== "activating") this.enter("idle");
  }

  private carryOut(m: Fields): void {
    switch (m["type"]) {
      case "tts": this.tts(m); break;
      case "stt": this.heard(textOf(m["text"])); break;
      case "llm": this.emotion = textOf(m["emotion"]) ?? this.emotion; this.changed(); break;
      case "mcp": void this.serve(m["payload"]); break;
      case "alert": this.alert(textOf(m["status"]), textOf(m["message"]), textOf(m["emotion"])); break;
      case "system": if (m["command"] === "reboot") this.rebootSoon(); break;
    }
  }

  private heard(text: string | undefined): void {
    if (text === undefined) return;
    this.thinking = true;
    this.line({ who: "you", text });
  }

  private async serve(payload: unknown): Promise<void> {
    const channel = this.channel;
    this.working = textOf(fieldsOf(fieldsOf(payload)["params"])["name"]) ?? "";
    this.changed();
    const answer = await this.rpc.answer(payload);
    this.working = "";
    if (answer && this.channel === channel) channel?.send({ type: "mcp", payload: answer });
    const result = fieldsOf(answer?.["result"]);
    if ("tools" in result && !("nextCursor" in result)) this.listed?.();
    this.changed();
  }

  private tts(m: Fields): void {
    switch (m["state"]) {
      case "start":
        if (this.state !== "idle" && this.state !== "listening") return;
        if (this.mode !== "realtime") this.microphone.stop();
        this.speaker.reset();
        this.thinking = this.interrupted = false;
        this.enter("speaking");
        return;
      case "sentence_start": {
        const text = textOf(m["text"]);
        if (!text) return;
        this.line({ who: "robot", text });
        this.say(text);
        return;
      }
      case "stop":
        void this.silenced();
    }
  }

  private async silenced(): Promise<void> {
    if (this.state !== "speaking") return;
    if (this.mode !== "manual" && !this.deaf) {
      await this.listen(this.mode);
      return;
    }
    const epoch = this.epoch;
    await this.speaker.drained(); // the mouth moves until the end of the sound
    if (this.epoch === epoch) this.enter("idle");
  }

  private alert(status: string | undefined, message: string | undefined, emotion: string | undefined): void {
    if (status === undefined || message === undefined || emotion === undefined) return;
    this.emotion = emotion;
    this.line({ who: "alert", status, text: message });
    this.say(message);
    void this.speaker.chime([660, 880]);
  }

  private ring(message: string): void {
    this.emotion = "happy";
    this.line({ who: "reminder", text: message });
    this.say(message);
    void this.speaker.chime([880, 660, 880]);
  }

  private rebootSoon(): void {
    setTimeout(() => void this.boot(), 1000);
  }

  private enter(s: State): void {
    this.epoch++;
    if (s !== this.state && s !== "speaking") this.emotion = "neutral"; // as in the firmware
    this.state = s;
    this.changed();
  }

  private say(text: string): void {
    this.bubble = text;
    clearTimeout(this.bubbleTimer);
    this.bubbleTimer = window.setTimeout(() => {
      this.bubble = "";
      this.changed();
    }, bubbleStays + text.length * 40);
    this.changed();
  }

  private line(l: Line): void {
    this.dispatchEvent(new CustomEvent<Line>("line", { detail: l }));
    this.changed();
  }

  private changed(): void {
    this.dispatchEvent(new Event("change"));
  }
}
