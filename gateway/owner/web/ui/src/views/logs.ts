// The view of the log.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { View } from "../lib/view.js";
import { catalogue, locale } from "../lib/words.js";
import { list } from "./list.js";
import { follow, type Line } from "./logs.stream.js";

const t = catalogue("logs");

interface Kept {
  n: number; // number of the line
  line: Line;
  text: string; // the whole line in lower case, for the filter
  attrs: string;
}

const most = 2000; // maximum number of stored lines
const drawEach = 250; // ms between two renderings
const sayEach = 10_000; // ms between two announcements for screen readers, which get only the number of lines
const levels = ["debug", "info", "warn", "error"] as const;
type Level = (typeof levels)[number];

export class LogsView extends View {
  static properties = { level: { state: true }, filter: { state: true }, paused: { state: true }, atEnd: { state: true }, spoken: { state: true }, lost: { state: true } };
  declare private level: Level;
  declare private filter: string;
  declare private paused: readonly Kept[] | undefined;
  declare private atEnd: boolean;
  declare private spoken: string;
  declare private lost: boolean;
  private lines: Kept[] = [];
  private count = 0;
  private fresh = false; // the stream has begun, and no line was received yet
  private stop: AbortController | undefined;
  private drawing: ReturnType<typeof setTimeout> | undefined;
  private saying: ReturnType<typeof setTimeout> | undefined;
  private unsaid = { lines: 0, errors: 0 };

  static styles = [View.styles, list, css`
    .log { height: min(65vh, 44rem); overflow: auto; background: var(--raised); border: 1px solid var(--line); border-radius: 10px; padding: 0.5rem 0; font: 0.82rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
    .log p { padding: 0.05rem 0.8rem; white-space: pre-wrap; }
    .log time { color: var(--muted); margin-inline-end: 0.6rem; }
    .log b { font-weight: 600; margin-inline-end: 0.6rem; }
    .log .attrs { color: var(--muted); }
    .ERROR { background: var(--bad-soft); } .ERROR b { color: var(--bad); } .WARN b { color: var(--warn); } .INFO b, .DEBUG b { color: var(--muted); }
    .under { display: flex; flex-wrap: wrap; gap: 0.6rem; justify-content: space-between; align-items: center; min-height: 2.8rem; margin-top: 0.4rem; }
  `];

  constructor() {
    super();
    this.level = "info";
    this.filter = this.spoken = "";
    this.atEnd = true;
    this.lost = false;
  }

  protected title_(): string {
    return t("title");
  }

  // load opens the stream, and fails if the server refuses it.
  protected load(): Promise<void> {
    this.stop?.abort();
    const stop = (this.stop = new AbortController());
    return new Promise((resolve, reject) => {
      follow(this.level, stop.signal, (l) => this.take(l), () => {
        this.fresh = true;
        this.lost = false;
        resolve();
      }, () => (this.lost = true)).then(resolve, reject);
    });
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    this.stop?.abort();
    clearTimeout(this.drawing);
    clearTimeout(this.saying);
    this.drawing = this.saying = undefined;
    this.lines = [];
  }

  private take(given: Line): void {
    const line = { ...given, level: given.level.toUpperCase() };
    if (this.fresh) {
      this.fresh = false;
      const from = Date.parse(line.at);
      this.lines = this.lines.filter((k) => Date.parse(k.line.at) < from); // the server sends the others again
    }
    const attrs = Object.entries(line.attrs ?? {}).map(([k, v]) => `${k}=${typeof v === "string" ? v : JSON.stringify(v)}`).join(" ");
    this.lines.push({ n: ++this.count, line, attrs, text: `${line.level} ${line.msg} ${attrs}`.toLowerCase() });
    if (this.lines.length > most) this.lines.splice(0, this.lines.length - most);
    this.unsaid.lines++;
    if (line.level === "ERROR") this.unsaid.errors++;
    this.drawing ??= setTimeout(() => {
      this.drawing = undefined;
      this.requestUpdate();
    }, drawEach);
    this.saying ??= setTimeout(() => {
      this.saying = undefined;
      const { lines: n, errors } = this.unsaid;
      this.unsaid = { lines: 0, errors: 0 };
      if (!this.paused) this.spoken = errors > 0 ? t("cameErrors", { n, errors }) : t("came", { n });
    }, sayEach);
  }

  protected content(): unknown {
    const all = this.paused ?? this.lines;
    const words = this.filter.toLowerCase().split(/\s+/).filter((w) => w !== "");
    const shown = words.length === 0 ? all : all.filter((k) => words.every((w) => k.text.includes(w)));
    const late = this.paused ? this.lines.filter((k) => k.n > (this.paused![this.paused!.length - 1]?.n ?? 0)).length : 0;
    return html`<div class="stack">
      <div class="filters">
        <p-field label=${t("level")}><select id="level" @change=${this.choose}>
          ${levels.map((l) => html`<option value=${l} ?selected=${l === this.level}>${t(l)}</option>`)}</select></p-field>
        <p-field label=${t("filter")}><input type="search" id="filter" autocomplete="off" .value=${this.filter} @input=${(e: Event) => (this.filter = (e.target as HTMLInputElement).value)} /></p-field>
        <p-button pressed=${this.paused ? "true" : "false"} @click=${() => (this.paused = this.paused ? undefined : [...this.lines])} data-test="pause">${t(this.paused ? "goOn" : "pause")}</p-button>
      </div>
      ${this.lost ? html`<p class="warning" role="status">${t("lost")}</p>` : nothing}
      <div>
        <div class="log" id="log" role="log" aria-live="off" aria-label=${t("list")} tabindex="0" @scroll=${this.scrolled}>
          ${repeat(shown, (k) => k.n, (k) => html`<p class=${k.line.level} data-test="line"><time datetime=${k.line.at}>${time(k.line.at)}</time><b>${k.line.level}</b>${k.line.msg}${k.attrs ? html` <span class="attrs">${k.attrs}</span>` : nothing}</p>`)}
          ${shown.length === 0 ? html`<p class="muted">${t(all.length === 0 ? "none" : "noneFits")}</p>` : nothing}
        </div>
        <div class="under"><p class="muted small" id="count">${this.paused ? t("waiting", { n: late }) : t("count", { n: shown.length, all: all.length })}</p>
          ${this.atEnd ? nothing : html`<p-button @click=${this.toEnd} data-test="end">${t("end")}</p-button>`}</div>
        <p class="hidden" role="status" aria-live="polite">${this.spoken}</p>
      </div>
    </div>`;
  }

  protected updated(changed: Map<PropertyKey, unknown>): void {
    super.updated(changed);
    if (this.atEnd && !this.paused) this.toEnd();
  }

  private toEnd(): void {
    const log = this.renderRoot.querySelector("#log");
    if (log) log.scrollTop = log.scrollHeight;
  }

  private scrolled(e: Event): void {
    const log = e.target as HTMLElement;
    this.atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  }

  private choose(e: Event): void {
    this.level = (e.target as HTMLSelectElement).value as Level;
    this.lines = [];
    this.paused = undefined;
    void this.act(() => this.load());
  }
}

function time(at: string): string {
  return new Intl.DateTimeFormat(locale(), { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(new Date(at));
}

customElements.define("p-logs", LogsView);
