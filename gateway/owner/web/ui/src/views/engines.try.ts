// <p-try>: a form for trying an engine. A synthesizer speaks a sentence, a recognizer transcribes a recording, and a
// brain replies to a question.

import { css, html, nothing } from "lit";
import { getBlob, send } from "../lib/api.js";
import { type Said } from "../lib/said.js";
import { base } from "../lib/ui.js";
import { Spoken, sentence } from "../lib/view.js";
import { catalogue } from "../lib/words.js";
import { Recording, asWav, longest, recordable, seconds } from "./engines.sound.js";
import { list } from "./list.js";

const t = catalogue("engines");

// lastSpoken is the latest sound of a synthesizer, with which recognizers can be tried.
let lastSpoken: Blob | undefined;

export class Try extends Spoken {
  static properties = {
    engine: {}, kind: {}, sample: {}, busy: { state: true }, answer: { state: true }, note: { state: true }, refused: { state: true }, sound: { state: true }, since: { state: true },
  };
  declare engine: string;
  declare kind: "synthesizer" | "recognizer" | "brain";
  declare sample: string; // sample text in the language of the household
  declare private busy: boolean;
  declare private note: string; // sentence about the duration
  declare private answer: string;
  declare private refused: Said;
  declare private sound: string; // URL of the synthesized sound
  declare private since: number | undefined; // duration of the recording in progress, in seconds
  private recording: Recording | undefined;
  private clock: ReturnType<typeof setInterval> | undefined;

  static styles = [base, list, css`
    :host { display: block; flex: 1 1 100%; }
    .answer { font-size: 1.1rem; white-space: pre-wrap; }
    audio { width: 100%; margin-top: 0.6rem; }
  `];

  constructor() {
    super();
    this.busy = false;
    this.note = this.answer = this.refused = this.sound = "";
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.clock);
    void this.recording?.end();
    this.recording = undefined;
    if (this.sound) URL.revokeObjectURL(this.sound);
  }

  render() {
    return html`<div class="form well">
      ${this.kind === "recognizer" ? this.listen() : this.write()}
      <div role="status" aria-live="polite">
        ${this.busy ? html`<p class="muted">${t("trying")}</p>` : nothing}
        ${this.note ? html`<p class="muted small" data-test="took">${this.note}</p>` : nothing}
        ${this.answer ? html`<p class="answer" data-test="answer">${this.answer}</p>` : nothing}
      </div>
      ${this.refused ? html`<p class="trouble" role="alert" data-test="refused">${this.refused}</p>` : nothing}
      ${this.sound ? html`<audio controls src=${this.sound} aria-label=${t("listen")} data-test="sound"></audio>` : nothing}
    </div>`;
  }

  private write(): unknown {
    const speaks = this.kind === "synthesizer";
    return html`<form class="form" @submit=${(e: Event) => this.submit(e, speaks)}>
      <p-field label=${t(speaks ? "sentence" : "question")}><textarea name="text" rows="2" required maxlength="1000">${this.sample}</textarea></p-field>
      <div class="row"><p-button kind="main" type="submit" ?busy=${this.busy} data-test="go">${t(speaks ? "speak" : "ask")}</p-button></div>
    </form>`;
  }

  private listen(): unknown {
    return html`<h3>${t("sound")}</h3>
      ${recordable() ? nothing : html`<p class="warning">${t("insecure")}</p>`}
      <div class="row">
        ${recordable()
          ? html`<p-button kind="main" ?busy=${this.busy} @click=${this.record} data-test="record">${t(this.since === undefined ? "record" : "stop")}</p-button>`
          : nothing}
        ${lastSpoken
          ? html`<p-button ?disabled=${this.busy || this.since !== undefined} @click=${() => this.understand(lastSpoken!)} data-test="spoken">${t("useSpoken")}</p-button>`
          : nothing}
      </div>
      ${this.since !== undefined ? html`<p role="timer">${t("recording", { seconds: this.since })}</p>` : nothing}
      <p-field label=${t("file")}><input type="file" accept="audio/*,.wav" data-test="file" ?disabled=${this.busy || this.since !== undefined} @change=${this.choose} /></p-field>`;
  }

  // attempt runs a try, and shows the error if it fails.
  private async attempt(work: () => Promise<void>): Promise<void> {
    this.busy = true;
    this.note = this.answer = this.refused = "";
    try {
      await work();
    } catch (e) {
      this.refused = e instanceof DOMException ? t("unreadable") : sentence(e);
    }
    this.busy = false;
  }

  private get address(): string {
    return `api/v1/engines/try?part=${encodeURIComponent(this.engine)}`;
  }

  private async submit(e: Event, speaks: boolean): Promise<void> {
    e.preventDefault();
    if (this.busy) return;
    const text = String(new FormData(e.target as HTMLFormElement).get("text") ?? "").trim();
    if (text === "") return;
    await this.attempt(() => (speaks ? this.speak(text) : this.ask(text)));
  }

  private async speak(text: string): Promise<void> {
    const begun = performance.now();
    const sound = await getBlob(this.address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text }) });
    const ms = Math.round(performance.now() - begun);
    lastSpoken = sound;
    if (this.sound) URL.revokeObjectURL(this.sound);
    this.sound = URL.createObjectURL(sound);
    this.note = t("spoken", { ms, seconds: Math.round((await seconds(sound)) * 10) / 10 });
    await this.updateComplete;
    // If the browser does not allow the page to play the sound, the user can start the player.
    void this.renderRoot.querySelector("audio")?.play().catch(() => undefined);
    this.dispatchEvent(new CustomEvent("spoken", { bubbles: true, composed: true }));
  }

  private async ask(text: string): Promise<void> {
    const answer = await send<{ text: string; ms: number }>("POST", this.address, { text });
    this.note = t("answered", { ms: answer.ms });
    this.answer = answer.text;
  }

  private understand(sound: Blob): Promise<void> {
    return this.attempt(async () => {
      const answer = await send<{ text: string; ms: number }>("POST", this.address, await asWav(sound));
      this.note = t("understood", { ms: answer.ms });
      this.answer = answer.text || t("nothing");
    });
  }

  private async choose(e: Event): Promise<void> {
    const file = (e.target as HTMLInputElement).files?.[0];
    if (file) await this.understand(file);
  }

  private async record(): Promise<void> {
    if (this.recording) {
      clearInterval(this.clock);
      this.since = undefined;
      const sound = await this.recording.end();
      this.recording = undefined;
      await this.understand(sound);
      return;
    }
    this.refused = "";
    try {
      this.recording = await Recording.begin();
    } catch (e) {
      this.refused = t("denied", { why: e instanceof Error ? e.message : String(e) });
      return;
    }
    this.since = 0;
    this.clock = setInterval(() => {
      this.since = (this.since ?? 0) + 1;
      if (this.since >= longest) void this.record();
    }, 1000);
  }
}

customElements.define("p-try", Try);
