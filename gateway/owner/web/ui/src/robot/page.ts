// <p-web-robot>: the page of the robot.

import { LitElement, html, nothing } from "lit";
import "../face/face.js";
import type { State as FaceState } from "../face/face.js";
import { base } from "../lib/ui.js";
import { catalogue, clock, languageChanged, languageTarget } from "../lib/words.js";
import { Drag } from "./drag.js";
import { Feelings } from "./feelings.js";
import type { Inspector } from "./inspector.js";
import { Robot, type Line } from "./robot.js";
import { sentence } from "./sentence.js";
import { style } from "./page.style.js";

const words = catalogue("webRobot");

const mostLines = 200;
const sleepsAfter = 300_000;

export class WebRobot extends LitElement {
  static properties = { small: { type: Boolean } };
  declare small: boolean; // only the face, its button and the field for texts
  static styles = [base, style];
  readonly robot = new Robot(() => words("drawnNote"));
  private lines: (Line & { at: Date })[] = [];
  private drag = new Drag(this.robot.body, () => this.act());
  private feelings = new Feelings(() => this.renderRoot.querySelector("stack-chan-face"));
  private followed = false;
  private asleep = false;
  private sleepTimer = 0;
  private held = false; // Space or the button

  connectedCallback(): void {
    super.connectedCallback();
    this.robot.addEventListener("change", this.again);
    this.robot.addEventListener("line", this.said);
    languageTarget.addEventListener(languageChanged, this.again);
    document.addEventListener("keydown", this.key);
    document.addEventListener("keyup", this.key);
    window.addEventListener("blur", this.letGo);
    window.addEventListener("pagehide", this.leave);
    window.addEventListener("pageshow", this.comeBack);
    if (!this.small) document.title = `${words("title")} · Perch`;
    void this.robot.boot();
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    this.robot.removeEventListener("change", this.again);
    this.robot.removeEventListener("line", this.said);
    languageTarget.removeEventListener(languageChanged, this.again);
    document.removeEventListener("keydown", this.key);
    document.removeEventListener("keyup", this.key);
    window.removeEventListener("blur", this.letGo);
    window.removeEventListener("pagehide", this.leave);
    window.removeEventListener("pageshow", this.comeBack);
    this.robot.hangUp();
    this.feelings.stop();
    this.followed = false;
  }

  // leave says that the tab is closed, so that the robot is no longer shown.
  private readonly leave = (): void => void this.robot.leave();

  // comeBack boots a robot that has left, when "Back" shows its page again as it was.
  private readonly comeBack = (e: PageTransitionEvent): void => void (e.persisted && this.robot.boot());

  private readonly again = (): void => {
    this.stir();
    this.requestUpdate();
  };

  private readonly said = (e: Event): void => {
    const { detail } = e as CustomEvent<Line>;
    this.lines = [...this.lines, { ...detail, at: new Date() }].slice(-mostLines);
    this.dispatchEvent(new CustomEvent<Line>("line", { detail }));
    this.requestUpdate();
  };

  // stir wakes the face. The face falls asleep after five minutes without changes, like the screen of a robot.
  private stir(): void {
    this.asleep = false;
    clearTimeout(this.sleepTimer);
    this.sleepTimer = window.setTimeout(() => {
      this.asleep = this.robot.state === "idle";
      this.requestUpdate();
    }, sleepsAfter);
  }

  private get manual(): boolean {
    return this.robot.keeper.flash.mode === "manual";
  }

  // act handles a click on the face, or Space.
  private act(): void {
    if (this.manual && !this.robot.deaf && this.robot.state === "idle") return;
    this.tap();
  }

  // tap taps the robot. Without a microphone it also focuses the text field.
  private readonly tap = (): void => {
    void this.robot.tap();
    if (this.robot.deaf && this.robot.state !== "speaking") this.renderRoot.querySelector<HTMLInputElement>("#write")!.focus();
  };

  private readonly key = (e: KeyboardEvent): void => {
    const target = e.composedPath()[0];
    const types = target instanceof Element && target.closest("input, textarea, select, button, summary, a, [tabindex]");
    if (e.code !== "Space" || types || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    if (e.type === "keyup") this.letGo();
    else if (!e.repeat) this.hold();
  };

  private hold(): void {
    if (this.manual) {
      this.held = true;
      void this.robot.press();
    } else {
      this.act();
    }
  }

  private readonly letGo = (): void => {
    if (this.held) this.robot.release();
    this.held = false;
    this.requestUpdate();
  };

  private readonly write = (e: Event): void => {
    e.preventDefault();
    const field = this.renderRoot.querySelector<HTMLInputElement>("#write")!;
    const text = field.value.trim();
    if (!text) return;
    field.value = "";
    void this.robot.type(text);
  };

  protected updated(): void {
    const log = this.renderRoot.querySelector(".log");
    if (log) log.scrollTop = log.scrollHeight;
    if (!this.followed && this.robot.state === "idle") { // a server has accepted the robot
      this.followed = true;
      this.feelings.follow(this.robot.keeper.flash.mac.replaceAll(":", ""));
    }
    const face = this.renderRoot.querySelector("stack-chan-face")!;
    face.held = this.drag.moving;
    face.leds = this.leds();
    face.loudness = this.robot.state === "speaking" || this.drains ? this.robot.speaker.analyser ?? null : null;
    face.style.setProperty("--brightness", String(Math.max(0.2, (this.robot.body.brightness / 100) ** 0.4)));
    face.style.setProperty("--screen", this.robot.body.theme === "light" ? "#f3f5f7" : "#0b0e13");
    face.style.setProperty("--ink", this.robot.body.theme === "light" ? "#1b2027" : "#f7f9fc");
  }

  // drains reports whether the end of a reply is still being played.
  private get drains(): boolean {
    return this.robot.state === "listening" && !this.robot.microphone.isOpen;
  }

  private faceState(): FaceState {
    const r = this.robot;
    if (r.trouble) return "error";
    if (r.waits) return "notification";
    if (r.state === "speaking" || this.drains) return "speaking";
    if (r.working.startsWith("self.")) return "working";
    if (r.thinking || r.state === "connecting" || r.state === "starting") return "thinking";
    if (r.state === "listening") return "listening";
    return this.asleep ? "sleeping" : "idle";
  }

  // leds returns the colours of the lights. As in the firmware, the first light is green while the robot listens, and
  // blue while it speaks.
  private leds(): string[] {
    const sign = { listening: "#00a850", speaking: "#2060d0" }[this.robot.state as string];
    return this.robot.body.leds.map((c, i) => (i === 0 && sign ? sign : c));
  }

  render() {
    const r = this.robot;
    if (this.small) return html`<div class="left">${this.stage()}${r.deaf === "insecure" ? nothing : this.notices()}${this.field()}</div>`; // the first steps say themselves how to get a microphone
    return html`<header><a href=".">← ${words("back")}</a><h1>${words("title")}</h1></header>
      <main>
        <div class="left">${this.stage()}${this.notices()}</div>
        <p-card heading=${words("transcript")}>${this.log()}${this.field()}</p-card>
        <p-card heading=${words("body")}><p-robot-body class="stack" .robot=${r}></p-robot-body></p-card>
        <p-card heading=${words("server")}><p-robot-server .robot=${r}></p-robot-server></p-card>
        <p-card class="wide">${this.played()}<details data-test="protocol" @toggle=${this.inspect}><summary>${words("protocol")}</summary><p-inspector .frames=${r.frames}></p-inspector></details></p-card>
      </main>`;
  }

  private stage() {
    const r = this.robot;
    return html`<section class="stage" aria-label=${words("name")}>
            <stack-chan-face data-test="face" state=${this.faceState()} emotion=${r.emotion} yaw=${r.body.yaw} pitch=${r.body.pitch} text=${r.bubble} ?muted=${r.muted}
              @pointerdown=${this.drag.down} @pointermove=${this.drag.move} @pointerup=${this.drag.up} @pointercancel=${this.drag.cancel}></stack-chan-face>
            <p class="status ${r.trouble ? "bad" : ""}" role="status" data-test="status" data-state=${r.state}>${sentence(r, this.asleep, this.faceState())}</p>
            ${r.waits?.code ? html`<p class="code big" data-test="code">${r.waits.code}</p>` : nothing}
            ${this.buttons()}
          </section>`;
  }

  private log() {
    return html`<div class="log" role="log" aria-label=${words("transcript")} tabindex="0" data-test="log">
            ${this.lines.length === 0 ? html`<p class="muted">${words("empty")}</p>` : this.lines.map((l) => this.line(l))}
          </div>`;
  }

  private field() {
    return html`<form class="write" @submit=${this.write}>
            <label class="hidden" for="write">${words("write")}</label>
            <input id="write" data-test="write" maxlength="2000" autocomplete="off" placeholder=${words("write")} enterkeyhint="send">
            <p-button type="submit" kind="main" data-test="send">${words("send")}</p-button>
          </form>`;
  }

  private buttons() {
    const r = this.robot;
    const main = r.state === "speaking" ? "interrupt" : r.state === "listening" ? "hang" : r.trouble || r.waits ? "retry" : r.deaf ? "write" : "talk";
    const talk = this.manual && !r.deaf && (r.state === "idle" || this.held)
      ? html`<button class="talk ${this.held ? "held" : ""}" type="button" data-test="talk" @pointerdown=${this.pressed} @pointerup=${this.letGo}
          @pointercancel=${this.letGo} @keydown=${this.buttonKey} @keyup=${this.buttonKey}>${words(this.held ? "holding" : "hold")}</button>`
      : html`<button class="talk ${main}" type="button" data-test="talk" ?disabled=${r.state === "connecting"} @click=${this.tap}>${words(main)}</button>`;
    if (this.small) return html`<div class="row buttons">${talk}</div>`;
    return html`<div class="row buttons">${talk}
      <p-button data-test="wake" ?disabled=${!["idle", "speaking"].includes(r.state)} @click=${() => void r.wake()}>${words("wake")}</p-button>
      ${r.deaf ? nothing : html`<p-button data-test="mute" pressed=${r.muted ? "true" : "false"} @click=${() => r.setMuted(!r.muted)}>${words("mute")}</p-button>`}
    </div>`;
  }

  private readonly pressed = (e: PointerEvent): void => {
    (e.target as Element).setPointerCapture(e.pointerId);
    this.hold();
  };

  private readonly buttonKey = (e: KeyboardEvent): void => {
    if (e.code !== "Space" && e.code !== "Enter") return;
    e.preventDefault();
    if (e.type === "keyup") this.letGo();
    else if (!e.repeat) this.hold();
  };

  private notices() {
    const r = this.robot;
    const silent = r.state === "speaking" && r.speaker.silenced;
    return html`${r.deaf ? html`<p class="notice" data-test="deaf">${words(r.deaf, { host: location.host })}
        ${r.deaf === "insecure" ? html`<a href="./#/microphone" data-test="use-microphone">${words("use")}</a>` : html`<p-button @click=${() => void r.hearAgain()}>${words("again")}</p-button>`}</p>` : nothing}
      ${silent ? html`<p class="notice" data-test="silenced">${words("silenced")}</p>` : nothing}`;
  }

  private line(l: Line & { at: Date }) {
    const at = html`<time datetime=${l.at.toISOString()}>${clock(l.at)}</time>`;
    switch (l.who) {
      case "tool": return html`<p class="tool ${l.failed ? "bad" : ""}" data-test="tool">${at}<b>${words("tool")}</b>
        <code>${l.name}</code> <code>${l.given}</code> → <code>${l.result}</code>${l.failed ? html` (${words("failed")})` : nothing}</p>`;
      case "alert": return html`<p class="alert">${at}<b>${words("alert")}</b>${l.status}: ${l.text}</p>`;
      default: return html`<p class=${l.who} data-test=${`said-${l.who}`}>${at}<b>${words(l.who)}</b><span>${l.text}</span></p>`;
    }
  }

  // inspect shows the messages that came while the list was closed.
  private readonly inspect = (): void => this.renderRoot.querySelector<Inspector>("p-inspector")?.requestUpdate();

  private played() {
    const p = this.robot.speaker.played;
    return html`<p class="small muted" data-test="played" data-packets=${p.packets} data-rms=${p.rms.toFixed(5)} data-gaps=${p.gaps}
      data-dropped=${p.dropped} data-bad=${p.bad}>
      ${words("played", { seconds: Number(p.seconds.toFixed(1)), packets: p.packets, gaps: p.gaps })}</p>`;
  }
}

customElements.define("p-web-robot", WebRobot);
