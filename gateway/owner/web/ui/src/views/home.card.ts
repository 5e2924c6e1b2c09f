// The card of a robot in the home view: its face, its state and the latest exchange.

import { css, html, nothing } from "lit";
import { board, follow, gestures, type Record_ } from "../lib/board.js";
import { icon } from "../lib/icons.js";
import { linkTo, nameOf, type Device } from "../lib/robots.js";
import { base } from "../lib/ui.js";
import { Spoken } from "../lib/view.js";
import { ago, catalogue } from "../lib/words.js";
import { stateWord } from "./home.words.js";
import { moodWord } from "./mood.words.js";
import "../face/face.js";

const say = catalogue("home");

const busy = ["listening", "thinking", "working", "juggling", "speaking"];

// toneOf returns the CSS class for the name of a state.
export function toneOf(state: string): string {
  if (state === "error") return "bad";
  if (state === "notification") return "warn";
  return busy.includes(state) ? "ok" : "";
}

export class RobotCard extends Spoken {
  static properties = { device: { attribute: false }, last: { attribute: false } };
  declare device: Device;
  declare last: Record_ | undefined; // latest turn in the server's list
  static styles = [base, css`
    article { position: relative; height: 100%; background: var(--surface); border: 1px solid var(--line); border-radius: 18px; box-shadow: var(--shadow); padding: 1.1rem; display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: 0.3rem 1.1rem; align-content: start; transition: border-color 0.2s; }
    article:hover { border-color: var(--accent); }
    stack-chan-face { width: 8rem; grid-row: span 2; align-self: center; }
    h3 { font-size: 1.2rem; } h3 a { color: inherit; text-decoration: none; } h3 a::after { content: ""; position: absolute; inset: 0; border-radius: 18px; }
    h3 a:focus-visible { outline: none; } article:focus-within { outline: 3px solid var(--accent); outline-offset: 2px; }
    .state { display: flex; flex-wrap: wrap; gap: 0.4rem 0.8rem; align-items: center; align-content: start; }
    .facts { display: flex; flex-wrap: wrap; gap: 0.2rem 0.9rem; width: 100%; }
    .fact { display: inline-flex; gap: 0.3rem; align-items: center; }
    .talk { grid-column: 1 / -1; border-top: 1px solid var(--line); margin-top: 0.7rem; padding-top: 0.7rem; display: grid; gap: 0.3rem; }
    .talk dl { grid-template-columns: max-content minmax(0, 1fr); gap: 0.25rem 0.8rem; }
    dd { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden; }
    @media (max-width: 419px) { article { grid-template-columns: 5.5rem minmax(0, 1fr); gap: 0.3rem 0.8rem; padding: 0.9rem; } stack-chan-face { width: 5.5rem; } }
  `];

  constructor() {
    super();
    follow(this, () => this.device?.id);
    gestures(this, () => this.device?.id);
  }

  // talk returns the latest turn of the feed or of the server's list.
  private talk(): { heard: string; said: string; at: string } | undefined {
    const live = board.now(this.device.id)?.turns.filter((t) => t.heard !== "" || t.said.length > 0).at(-1);
    if (live && (!this.last || Date.parse(live.at) >= Date.parse(this.last.at) - 1000)) {
      return { heard: live.heard, said: live.said.join(" "), at: live.at };
    }
    return this.last;
  }

  render() {
    const d = this.device;
    const now = board.now(d.id);
    const state = now?.state ?? d.state;
    const online = now?.online ?? d.connected;
    const status = now?.status ?? d.status;
    const talk = this.talk();
    const seen = talk && (!d.last_seen || Date.parse(talk.at) > Date.parse(d.last_seen)) ? talk.at : d.last_seen;
    const quiet = !online && (state === "idle" || state === "sleeping");
    return html`<article data-test="robot-${d.id}" data-state=${state}>
      <stack-chan-face state=${quiet && state === "idle" ? "idle" : state} emotion=${now?.emotion ?? (d.emotion || "neutral")} .feels=${now?.mood ?? null}></stack-chan-face>
      <h3><a href=${linkTo(d.id)}><bdi>${nameOf(d)}</bdi></a></h3>
      <div class="state"><span class="tag ${toneOf(state)}" data-test="state">${quiet && state === "idle" ? say("away") : stateWord(state)}</span>
        ${now?.mood ? html`<span class="tag" data-test="mood">${moodWord(now.mood.dominant)}</span>` : nothing}
        <div class="facts small muted">
          ${typeof status?.battery === "number"
            ? html`<span class="fact">${icon(status.charging ? "charging" : "battery")}${say(status.charging ? "charging" : "battery", { n: status.battery })}</span>` : nothing}
          ${typeof status?.volume === "number" ? html`<span class="fact">${icon(status.volume === 0 ? "muted" : "volume")}${say("volume", { n: status.volume })}</span>` : nothing}
          ${quiet && seen ? html`<span>${say("seen", { ago: ago(seen) })}</span>` : nothing}</div></div>
      <div class="talk small">${talk && (talk.heard || talk.said)
        ? html`<dl>${talk.heard ? html`<dt>${say("heard")}</dt><dd data-test="heard"><bdi>${talk.heard}</bdi></dd>` : nothing}
            ${talk.said ? html`<dt>${say("said")}</dt><dd data-test="said"><bdi>${talk.said}</bdi></dd>` : nothing}</dl>`
        : html`<p class="muted">${say("nothingYet")}</p>`}</div>
    </article>`;
  }
}

customElements.define("p-robot-card", RobotCard);
