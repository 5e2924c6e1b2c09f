// The card of a robot in the home view: its face, its state, the latest exchange, and a field to ask it something.

import { css, html, nothing } from "lit";
import { send } from "../lib/api.js";
import { board, follow, gestures, type Record_ } from "../lib/board.js";
import { icon } from "../lib/icons.js";
import { linkTo, nameOf, type Device } from "../lib/robots.js";
import { base } from "../lib/ui.js";
import { Spoken, sentence } from "../lib/view.js";
import type { Said } from "../lib/said.js";
import { ago, catalogue } from "../lib/words.js";
import { shownOf } from "./home.words.js";
import { moodWord } from "./mood.words.js";
import "../face/face.js";

const say = catalogue("home");

export class RobotCard extends Spoken {
  static properties = { device: { attribute: false }, last: { attribute: false }, small: { type: Boolean, reflect: true }, asking: { state: true }, answer: { state: true }, failure: { state: true } };
  declare device: Device;
  declare last: Record_ | undefined; // latest turn in the server's list
  declare small: boolean; // only the face, the name and the state
  declare private asking: boolean;
  declare private answer: { heard: string; said: string; at: string; queued: boolean } | undefined; // to the question that was typed here
  declare private failure: Said;
  static styles = [base, css`
    article { position: relative; height: 100%; background: var(--surface); border-radius: var(--radius); box-shadow: var(--shadow); padding: var(--s4); display: grid; grid-template-columns: 7.5rem minmax(0, 1fr); grid-template-rows: auto auto 1fr auto; gap: var(--s2) var(--s4); align-content: start; transition: box-shadow var(--calm); }
    article[data-live] { box-shadow: 0 0 0 2px var(--tone), var(--shadow); }
    article[data-tone="listens"] { --tone: var(--listens); } article[data-tone="thinks"] { --tone: var(--thinks); } article[data-tone="works"] { --tone: var(--works); }
    article[data-tone="speaks"] { --tone: var(--speaks); } article[data-tone="bad"] { --tone: var(--bad); } article[data-tone="warn"] { --tone: var(--warn); }
    article[data-tone="listens"] stack-chan-face, article[data-tone="thinks"] stack-chan-face { animation: live 2.4s ease-in-out infinite; }
    @keyframes live { 50% { scale: 1.04; } }
    article:hover { box-shadow: 0 0 0 1px var(--tone, var(--accent)), var(--float); }
    stack-chan-face { width: 100%; grid-row: span 2; align-self: center; }
    h3 { font-size: var(--t-head); line-height: 1.25; align-self: end; } h3 a { color: inherit; text-decoration: none; } h3 a::after { content: ""; position: absolute; inset: 0; border-radius: var(--radius); }
    h3 a:focus-visible { outline: none; } article:has(h3 a:focus-visible) { outline: 3px solid var(--accent); outline-offset: 2px; }
    .state { display: flex; flex-wrap: wrap; gap: var(--s1) var(--s2); align-items: center; align-content: start; min-width: 0; }
    .facts { display: flex; flex-wrap: wrap; gap: var(--s1) var(--s3); width: 100%; }
    .fact { display: inline-flex; gap: var(--s1); align-items: center; }
    .talk { grid-column: 1 / -1; display: grid; gap: var(--s2); align-content: end; }
    .words { padding: var(--s2) var(--s3); border-radius: var(--radius); width: fit-content; max-width: 92%; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
    .heard { background: var(--soft); justify-self: end; border-end-end-radius: 4px; } .said { background: var(--raised); border-end-start-radius: 4px; }
    form { grid-column: 1 / -1; position: relative; display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: var(--s2); }
    :host([small]) article { grid-template-columns: 3.5rem minmax(0, 1fr); grid-template-rows: auto auto; gap: 0 var(--s3); padding: var(--s2) var(--s3) var(--s2) var(--s2); }
    :host([small]) h3 { font-size: var(--t-body); display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
    :host([small]) .state { flex-wrap: nowrap; } :host([small]) .tag { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    @media (max-width: 419px) { article { grid-template-columns: 5.5rem minmax(0, 1fr); gap: var(--s2) var(--s3); } }
  `];

  constructor() {
    super();
    this.asking = this.small = false;
    this.failure = "";
    follow(this, () => this.device?.id);
    gestures(this, () => this.device?.id);
  }

  // talk returns the latest exchange: of the feed, of the server's list, or of the question that was typed here.
  private talk(): { heard: string; said: string; at: string } | undefined {
    const live = board.now(this.device.id)?.turns.filter((t) => t.heard !== "" || t.said.length > 0).at(-1);
    const all = [this.last, this.answer, live && { heard: live.heard, said: live.said.join(" "), at: live.at }].filter((t) => t !== undefined);
    return all.sort((a, b) => Date.parse(a.at) - Date.parse(b.at)).at(-1);
  }

  private async ask(e: SubmitEvent): Promise<void> {
    e.preventDefault();
    const form = e.target as HTMLFormElement;
    const text = String(new FormData(form).get("ask") ?? "").trim();
    if (text === "" || this.asking) return;
    this.asking = true;
    this.failure = "";
    try {
      const a = await send<{ queued: boolean; text: string }>("POST", `api/v1/devices/${encodeURIComponent(this.device.id)}/ask`, { text });
      if (a.text) this.answer = { heard: text, said: a.text, at: new Date().toISOString(), queued: a.queued };
      form.reset();
    } catch (e) {
      this.failure = sentence(e);
    }
    this.asking = false;
  }

  render() {
    const d = this.device;
    const now = board.now(d.id);
    const { state, tone, word, away } = shownOf(d, now);
    return html`<article data-test="robot-${d.id}" data-state=${state} data-tone=${tone} ?data-live=${tone !== ""}>
      <stack-chan-face state=${state} emotion=${now?.emotion ?? (d.emotion || "neutral")} .feels=${now?.mood ?? null}></stack-chan-face>
      <h3><a href=${linkTo(d.id)}><bdi>${nameOf(d)}</bdi></a></h3>
      <div class="state"><span class="tag ${tone}" data-test="state">${word}</span>
        ${now?.mood && !this.small ? html`<span class="tag" data-test="mood">${moodWord(now.mood.dominant)}</span>` : nothing}
        ${this.small ? nothing : this.facts(away)}</div>
      ${this.small ? nothing : this.conversation()}
    </article>`;
  }

  private facts(away: boolean) {
    const status = board.now(this.device.id)?.status ?? this.device.status;
    const talk = this.talk();
    const seen = talk && (!this.device.last_seen || Date.parse(talk.at) > Date.parse(this.device.last_seen)) ? talk.at : this.device.last_seen;
    return html`<div class="facts small muted">
      ${typeof status?.battery === "number"
        ? html`<span class="fact">${icon(status.charging ? "charging" : "battery")}${say(status.charging ? "charging" : "battery", { n: status.battery })}</span>` : nothing}
      ${status?.volume === 0 ? html`<span class="fact">${icon("muted")}${say("volume", { n: 0 })}</span>` : nothing}
      ${away && seen ? html`<span>${say("seen", { ago: ago(seen) })}</span>` : nothing}</div>`;
  }

  private conversation() {
    const talk = this.talk();
    const name = nameOf(this.device);
    return html`<div class="talk small">
        ${talk?.heard ? html`<p class="words heard" data-test="heard"><span class="hidden">${say("heard")}: </span><bdi>${talk.heard}</bdi></p>` : nothing}
        ${talk?.said ? html`<p class="words said" data-test="said"><span class="hidden">${say("said")}: </span><bdi>${talk.said}</bdi></p>` : nothing}
        ${!talk?.heard && !talk?.said ? html`<p class="muted">${say("nothingYet")}</p>` : nothing}
        ${this.answer?.queued && talk === this.answer ? html`<p class="muted" data-test="answer-waits">${say("answerWaits", { name })}</p>` : nothing}</div>
      ${this.device.adopted ? html`<form data-test="ask" @submit=${(e: SubmitEvent) => void this.ask(e)}>
        <input name="ask" maxlength="1000" autocomplete="off" placeholder=${say("ask", { name })} aria-label=${say("ask", { name })}>
        <p-button type="submit" label=${say("askGo")} ?busy=${this.asking}>${icon("send")}</p-button></form>` : nothing}
      ${this.failure ? html`<p class="talk bad small" role="alert">${this.failure}</p>` : nothing}`;
  }
}

customElements.define("p-robot-card", RobotCard);
