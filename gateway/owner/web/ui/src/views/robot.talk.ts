// The transcript of a robot's conversation.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { board, follow, join, type Record_, type ToolUse, type Turn } from "../lib/board.js";
import { base } from "../lib/ui.js";
import { Spoken } from "../lib/view.js";
import { catalogue, clock } from "../lib/words.js";
import { legend, stageStyles, timeline, totalOf } from "./robot.stages.js";

const say = catalogue("robot");

const mostShown = 60;
const atEnd = 40; // the list scrolls with new turns if it is less than this many px from its end

export class Talk extends Spoken {
  static properties = { robot: {}, records: { attribute: false } };
  declare robot: string;
  declare records: Record_[]; // turns of this robot in the server's list
  private held = true;
  static styles = [base, stageStyles, css`
    .log { max-height: 34rem; overflow-y: auto; overscroll-behavior: contain; position: relative; display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem; padding: 0.2rem 0.6rem 0.2rem 0.2rem; margin-top: 0.8rem; }
    .turn { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.35rem; }
    .words { padding: 0.5rem 0.85rem; border-radius: 16px; width: fit-content; max-width: min(90%, 36rem); white-space: pre-wrap; overflow-wrap: anywhere; }
    .heard { background: var(--soft); justify-self: end; border-end-end-radius: 5px; }
    .said { background: var(--raised); border: 1px solid var(--line); border-end-start-radius: 5px; }
    .meta { display: flex; flex-wrap: wrap; gap: 0.2rem 0.7rem; }
    .use { display: inline-flex; gap: 0.35rem; border: 1px solid var(--line); border-radius: 8px; padding: 0 0.5rem; overflow-wrap: anywhere; }
  `];

  constructor() {
    super();
    follow(this, () => this.robot);
  }

  protected updated(): void {
    const log = this.renderRoot.querySelector(".log");
    if (log && this.held) log.scrollTop = log.scrollHeight;
  }

  private scrolled(e: Event): void {
    const log = e.target as HTMLElement;
    this.held = log.scrollHeight - log.scrollTop - log.clientHeight < atEnd;
  }

  render() {
    const turns = join(this.records ?? [], board.now(this.robot)?.turns ?? []).slice(-mostShown);
    const most = Math.max(0, ...turns.map((t) => totalOf(t.stages)));
    return html`${turns.length > 0 ? legend() : nothing}
      <div class="log" role="log" aria-live="polite" aria-label=${say("talk")} tabindex="0" data-test="transcript" @scroll=${this.scrolled}>
        ${turns.length === 0 ? html`<p class="muted">${say("noTalk")}</p>` : repeat(turns, (t) => `${t.session} ${t.began}`, (t) => this.turn(t, most))}</div>`;
  }

  private turn(t: Turn, most: number) {
    return html`<div class="turn" data-test="turn">
      ${t.heard ? html`<p class="words heard" data-test="heard"><span class="hidden">${say("heardIt")}: </span><bdi>${t.heard}</bdi></p>` : nothing}
      ${t.tools.length > 0 ? html`<div class="meta small">${t.tools.map(use)}</div>` : nothing}
      ${t.said.length > 0 ? html`<p class="words said" data-test="said"><span class="hidden">${say("saidIt")}: </span><bdi>${t.said.join(" ")}</bdi></p>` : nothing}
      <div class="meta small muted"><time datetime=${t.at}>${clock(t.at)}</time>${t.heard === "" ? html`<span>${say("announced")}</span>` : nothing}
        <span class=${t.end === "failed" ? "bad" : ""}>${endOf(t.end)}</span>${t.reason ? html`<span class="bad"><bdi>${t.reason}</bdi></span>` : nothing}</div>
      ${timeline(t.stages, most)}</div>`;
  }
}

function endOf(end: string): string {
  switch (end) {
    case "":
      return say("open");
    case "cancelled":
    case "failed":
    case "hang_up":
    case "sleep":
      return say(end);
  }
  return "";
}

function use(u: ToolUse) {
  const word = u.status === "running" ? say("running") : u.status === "failed" ? say("toolFailed") : say("done");
  return html`<span class="use"><code>${u.name}</code><span class=${u.status === "failed" ? "bad" : "muted"}>${word}</span>${u.detail ? html`<bdi class="muted">${u.detail}</bdi>` : nothing}</span>`;
}

customElements.define("p-talk", Talk);
