// The view of perceptions: all that were received since the page was opened.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { inWords } from "../lib/board.js";
import { feed, type Event_ } from "../lib/feed.js";
import { devices, nameIn, nameOf, type Device } from "../lib/robots.js";
import { heatStyles } from "../lib/heat.js";
import { View } from "../lib/view.js";
import { dayName, dates, week, type Week } from "../lib/week.js";
import { catalogue, locale } from "../lib/words.js";
import { list } from "./list.js";
import { sensedTable } from "./robot.week.js";

const t = catalogue("sensed");
const say = catalogue("week");

interface Sensed {
  seq: number;
  at: string;
  robot: string;
  name: string; // name of the robot
  kind: string;
  details: string;
}

const most = 300; // maximum number of stored perceptions
const drawEach = 250; // ms between two renderings; a robot may send 50 events a second
const knownEach = 2000; // ms between two loads of the robots

// held holds the perceptions, newest first. It is not a field of the view, so that it survives a change of the view.
const held: Sensed[] = [];
const watchers = new Set<() => void>();
feed.on(["perceived"], (e) => {
  held.unshift(sensed(e));
  if (held.length > most) held.length = most;
  watchers.forEach((f) => f());
});

export class SensedView extends View {
  static properties = { robot: { state: true }, kind: { state: true }, paused: { state: true }, date: { state: true } };
  declare private robot: string;
  declare private kind: string;
  declare private paused: readonly Sensed[] | undefined;
  declare private date: string; // the day of the table, or "" for today
  private robots: Device[] = [];
  private week: Week = { today: "", days: [] };
  private timer_: ReturnType<typeof setTimeout> | undefined;
  private knownTimer: ReturnType<typeof setTimeout> | undefined;
  private readonly drawSoon = () => {
    this.timer_ ??= setTimeout(() => {
      this.timer_ = undefined;
      this.requestUpdate();
    }, drawEach);
  };

  static styles = [View.styles, list, heatStyles, css`
    code { color: var(--muted); }
    .senses li { padding: 0.15rem 0; }
  `];

  constructor() {
    super();
    this.robot = "";
    this.kind = "";
    this.date = "";
    this.reloadOn(["robot_online", "robot_offline", "robot_renamed", "robot_adopted", "robot_forgotten"], ["robot"]);
  }

  protected title_(): string {
    return t("title");
  }

  protected async load(): Promise<void> {
    const [robots, sums] = await Promise.all([devices(), week()]);
    this.robots = robots.filter((d) => d.adopted);
    this.week = sums;
  }

  connectedCallback(): void {
    super.connectedCallback();
    watchers.add(this.drawSoon);
    // The server describes in words what a robot perceives. The descriptions are loaded less often than events arrive.
    this.follow(["perceived"], () => {
      this.knownTimer ??= setTimeout(() => {
        this.knownTimer = undefined;
        this.reload();
      }, knownEach);
    });
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    watchers.delete(this.drawSoon);
    clearTimeout(this.timer_);
    this.timer_ = undefined;
    clearTimeout(this.knownTimer);
    this.knownTimer = undefined;
  }

  protected content(): unknown {
    const from = this.paused ?? held;
    const rows = from.filter((s) => (!this.robot || s.robot === this.robot) && (!this.kind || s.kind === this.kind));
    const kinds = [...new Set([...held.map((s) => s.kind), ...(this.kind ? [this.kind] : [])])].sort();
    const late = this.paused ? held.findIndex((s) => s === this.paused![0]) : 0;
    return html`<div class="stack">
      <p class="lead">${t("about")}</p>
      ${this.known()}
      ${this.strip()}
      <p-card heading=${t("list")}>
        <div class="row" slot="actions">
          <p-button pressed=${this.paused ? "true" : "false"} @click=${() => (this.paused = this.paused ? undefined : [...held])} data-test="pause">
            ${t(this.paused ? "goOn" : "pause")}</p-button>
          <p-button ?disabled=${held.length === 0} @click=${this.clear}>${t("clear")}</p-button>
        </div>
        <div class="filters">
          <p-field label=${t("robot")}><select id="robot" @change=${(e: Event) => (this.robot = (e.target as HTMLSelectElement).value)}>
            <option value="">${t("everyRobot")}</option>
            ${this.robots.map((d) => html`<option value=${d.id} ?selected=${d.id === this.robot}>${nameOf(d)}</option>`)}
          </select></p-field>
          <p-field label=${t("kind")}><select id="kind" @change=${(e: Event) => (this.kind = (e.target as HTMLSelectElement).value)}>
            <option value="">${t("everyKind")}</option>
            ${kinds.map((k) => html`<option value=${k} ?selected=${k === this.kind}>${k}</option>`)}
          </select></p-field>
          <p class="muted small" id="count">${this.paused ? t("waiting", { n: Math.max(0, late) }) : t("count", { n: rows.length })}</p>
        </div>
        ${rows.length === 0
          ? held.length === 0
            ? html`<p-empty heading=${t("none")}>${t("noneHint")}</p-empty>`
            : html`<p-empty heading=${t("noneFits")}></p-empty>`
          : this.table(rows)}
      </p-card>
    </div>`;
  }

  private known(): unknown {
    const some = this.robots.filter((d) => !this.robot || d.id === this.robot);
    if (some.length === 0) return nothing;
    return html`<div class="grid">${some.map((d) => html`<p-card heading=${nameOf(d)}>
      ${(d.senses ?? []).length > 0
        ? html`<ul class="senses">${d.senses!.map((s) => html`<li>${s}</li>`)}</ul>`
        : html`<p class="muted">${t("nothingKnown")}</p>`}
    </p-card>`)}</div>`;
  }

  // strip renders what was sensed over a day.
  private strip(): unknown {
    const all = dates(this.week).reverse();
    const date = all.includes(this.date) ? this.date : this.week.today;
    return html`<p-card heading=${say("sensed")}><div class="stack">
      <div class="filters"><p-field label=${say("day")}><select id="day" @change=${(e: Event) => (this.date = (e.target as HTMLSelectElement).value)}>
        ${all.map((one) => html`<option value=${one} ?selected=${one === date}>${dayName(one)}</option>`)}</select></p-field></div>
      ${sensedTable(this.week.days.filter((d) => d.date === date && (!this.robot || d.robot === this.robot)).map((d) => d.sensed))}</div></p-card>`;
  }

  private table(rows: readonly Sensed[]): unknown {
    return html`<table class="blocks" id="events" role="table" aria-label=${t("list")}>
      <thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">${t("when")}</th><th role="columnheader" scope="col">${t("robot")}</th>
        <th role="columnheader" scope="col">${t("event")}</th><th role="columnheader" scope="col">${t("details")}</th></tr></thead>
      <tbody role="rowgroup">${repeat(rows, (s) => s.seq + s.at, (s) => html`<tr role="row" data-test="sensed">
        <td role="cell"><time datetime=${s.at}>${seconds(s.at)}</time></td>
        <td role="cell">${s.name || nameIn(this.robots, s.robot)}</td>
        <td role="cell"><span class="tag">${s.kind}</span></td>
        <td role="cell"><code>${s.details}</code></td>
      </tr>`)}</tbody></table>`;
  }

  private clear(): void {
    held.length = 0;
    this.paused = undefined;
    this.requestUpdate();
  }
}

function sensed(e: Event_): Sensed {
  const data = e.data["data"];
  return { seq: e.seq, at: e.at, robot: e.robot ?? "", name: e.name ?? "", kind: String(e.data["name"] ?? ""), details: inWords(data) };
}

function seconds(at: string): string {
  return new Intl.DateTimeFormat(locale(), { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(new Date(at));
}

customElements.define("p-sensed", SensedView);
