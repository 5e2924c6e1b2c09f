// The diary of the characters, and the result of its verification.

import { css, html, nothing } from "lit";
import { get } from "../lib/api.js";
import { feed } from "../lib/feed.js";
import { type Said } from "../lib/said.js";
import { base } from "../lib/ui.js";
import { sentence, Spoken } from "../lib/view.js";
import { catalogue, clock } from "../lib/words.js";
import { about } from "./action.about.js";

const say = catalogue("diary");

interface Entry {
  seq: number;
  at: string;
  agent: string;
  type: string;
  payload: Record<string, unknown>;
  hash: string;
}

interface Report {
  whole: boolean;
  entries: number;
  to?: number;
  hash?: string;
  faults: { seq: number; what: string }[];
  further_faults: number;
}

const shown = 30;
const settles = 300; // ms; entries within this time cause a single load

export class Diary extends Spoken {
  static properties = { entries: { state: true }, report: { state: true }, failure: { state: true }, busy: { state: true } };
  declare entries: Entry[];
  declare report: Report | undefined;
  declare failure: Said;
  declare busy: boolean;
  private stops: (() => void)[] = [];
  private timer = 0;
  static styles = [base, css`
    ol { list-style: none; margin: 0.8rem 0 0; padding: 0; display: grid; gap: 0.35rem; } li { display: flex; flex-wrap: wrap; gap: 0.2rem 0.6rem; }
    ol, .hash, .bad { overflow-wrap: anywhere; } .row { margin-top: 0.6rem; }
  `];

  constructor() {
    super();
    this.entries = [];
    this.failure = "";
    this.busy = false;
  }

  connectedCallback(): void {
    super.connectedCallback();
    void this.read();
    void this.check();
    const soon = () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => void this.read(), settles);
    };
    this.stops = [feed.on(["recorded", "missed"], soon), feed.onStates((_, anew) => anew && soon())];
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    this.stops.forEach((stop) => stop());
    clearTimeout(this.timer);
  }

  private async read(): Promise<void> {
    try {
      this.entries = (await get<Entry[] | null>(`api/v1/diary?n=${shown}`)) ?? [];
    } catch {
      // The list stays unchanged; the shell shows that the connection is lost.
    }
  }

  private async check(): Promise<void> {
    this.busy = true;
    try {
      this.report = await get<Report>("api/v1/diary/verify");
      this.failure = "";
    } catch (e) {
      this.failure = sentence(e);
    }
    this.busy = false;
  }

  render() {
    return html`<p-card heading=${say("diary")}><p class="muted small">${say("lead")}</p>
      <div class="row" role="status">${this.result()}<p-button data-test="diary-check" ?busy=${this.busy} @click=${this.check}>${say("check")}</p-button></div>
      ${this.entries.length === 0 ? html`<p class="muted small">${say("none")}</p>` : html`<ol class="small">${this.entries.map((e) => html`<li data-test="diary-entry">
        <span class="muted">${say("number", { n: e.seq })}</span><time class="muted" datetime=${e.at}>${clock(e.at)}</time><bdi>${e.agent}</bdi><b>${e.type}</b><bdi>${about(e.payload)}</bdi></li>`)}</ol>`}</p-card>`;
  }

  private result() {
    const r = this.report;
    if (this.failure) return html`<p class="bad" data-test="diary-result">${this.failure}</p>`;
    if (!r) return nothing;
    if (r.whole) {
      return html`<div data-test="diary-result"><p>${r.entries === 0 ? say("wholeEmpty") : say("whole", { n: r.entries, to: r.to ?? 0 })}</p>
        ${r.hash ? html`<p class="small muted hash">${say("checked", { hash: r.hash })}</p>` : nothing}</div>`;
    }
    return html`<div data-test="diary-result"><p class="bad">${say("broken")}</p><ul class="small">${r.faults.map((f) => html`<li>${f.what}</li>`)}
      ${r.further_faults > 0 ? html`<li>${say("further", { n: r.further_faults })}</li>` : nothing}</ul></div>`;
  }
}

customElements.define("p-diary", Diary);
