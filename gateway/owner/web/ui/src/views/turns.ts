// The view of the turns of all robots: their stages, and statistics of the stages over a day.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { get } from "../lib/api.js";
import { devices, nameIn, nameOf, type Device } from "../lib/robots.js";
import { View } from "../lib/view.js";
import { ago, catalogue, clock, locale } from "../lib/words.js";
import { list } from "./list.js";
import { all, byHour, day, inOrder, percentile, total, values, type Stage } from "./turns.numbers.js";
import type { Record_ as Turn } from "../lib/board.js";
import type { Lines } from "./turns.plot.js";

const t = catalogue("turns");

const atOnce = 30; // turns that are shown at first
const ends = ["done", "cancelled", "failed", "hang_up", "sleep"] as const;

export class TurnsView extends View {
  static properties = { turns: { state: true }, robot: { state: true }, stage: { state: true }, shown: { state: true } };
  declare private turns: Turn[];
  declare private robot: string;
  declare private stage: Stage;
  declare private shown: number;
  private robots: Device[] = [];

  static styles = [View.styles, list, css`
    .line { display: flex; gap: 2px; height: 0.9rem; min-width: 7rem; }
    .line i { display: block; min-width: 2px; border-radius: 3px; }
    .endpoint { background: var(--plot1); } .recognize { background: var(--plot2); } .first_token { background: var(--plot3); }
    .first_sentence { background: var(--plot4); } .first_audio { background: var(--plot5); }
    .legend { display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; font-size: 0.875rem; color: var(--muted); margin-bottom: 0.6rem; }
    .legend i { display: inline-block; width: 0.8rem; height: 0.8rem; border-radius: 3px; margin-inline-end: 0.4rem; vertical-align: -0.05em; }
    td.who { min-width: 6rem; } td.words { min-width: 9rem; } td.stages { min-width: 9rem; }
    #stages th[scope="row"], #hours th[scope="row"] { min-width: 5.5rem; hyphens: auto; }
    @media (max-width: 30rem) { #stages, #hours { font-size: 0.875rem; } } #stages .num, #hours .num { padding-inline-end: 0.4rem; }
    p-plot { min-height: 13rem; margin: 0.8rem 0; }
  `];

  constructor() {
    super();
    this.turns = [];
    this.robot = "";
    this.stage = "first_packet";
    this.shown = atOnce;
    this.reloadOn(["turn_ended", "robot_renamed"]);
  }

  protected title_(): string {
    return t("title");
  }

  protected async load(): Promise<void> {
    const [turns, robots] = await Promise.all([get<Turn[] | null>("api/v1/turns?limit=1000"), devices()]);
    this.robots = robots;
    this.turns = (turns ?? []).sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
    if (this.turns.length > 0 && !customElements.get("p-plot")) {
      // If the plot cannot be loaded, the table below it remains.
      void import("./turns.plot.js").then(() => this.requestUpdate(), () => undefined);
    }
  }

  protected content(): unknown {
    if (this.turns.length === 0) {
      return html`<div class="stack"><p class="lead">${t("about")}</p><p-empty heading=${t("none")}>${t("noneHint")}</p-empty></div>`;
    }
    const turns = this.turns.filter((one) => !this.robot || one.robot === this.robot);
    return html`<div class="stack">
      <p class="lead">${t("about")}</p>
      <div class="filters"><p-field label=${t("filter")}><select id="robot" @change=${(e: Event) => (this.robot = (e.target as HTMLSelectElement).value)}>
        <option value="">${t("everyRobot")}</option>
        ${this.robots.map((d) => html`<option value=${d.id} ?selected=${d.id === this.robot}>${nameOf(d)}</option>`)}
      </select></p-field></div>
      ${this.overDay(turns)}
      <p-card heading=${t("latest")}>
        <p class="legend" aria-hidden="true">${inOrder.map((s) => html`<span><i class=${s}></i>${t(s)}</span>`)}</p>
        ${this.table(turns)}
        ${turns.length > this.shown ? html`<p-button @click=${() => (this.shown += 100)}>${t("count", { n: turns.length })}</p-button>` : nothing}
      </p-card>
    </div>`;
  }

  private overDay(turns: readonly Turn[]): unknown {
    const now = Date.now();
    const some = day(turns, now).filter((one) => Object.keys(one.stages ?? {}).length > 0);
    if (some.length === 0) return html`<p-card heading=${t("day")}><p class="muted">${t("dayNone")}</p></p-card>`;
    const hours = byHour(some, this.stage, now);
    const lines: Lines = {
      name: t("hour"),
      at: hours.map((h) => h.from / 1000),
      lines: [
        { name: t("median"), values: hours.map((h) => h.p50 ?? null) },
        { name: t("most"), values: hours.map((h) => h.p95 ?? null) },
      ],
    };
    const oldest = this.turns[this.turns.length - 1]!;
    return html`<p-card heading=${t("day")}>
      <div class="filters"><p-field label=${t("stage")}><select id="stage" @change=${(e: Event) => (this.stage = (e.target as HTMLSelectElement).value as Stage)}>
        ${all.map((s) => html`<option value=${s} ?selected=${s === this.stage}>${t(s)}</option>`)}
      </select></p-field></div>
      <p-plot .data=${lines} label=${t("chart", { stage: t(this.stage) })}></p-plot>
      <details><summary>${t("hours")}</summary><table id="hours">
        <thead><tr><th scope="col">${t("hour")}</th><th scope="col" class="num">${t("turns")}</th><th scope="col" class="num">p50</th><th scope="col" class="num">p95</th></tr></thead>
        <tbody>${hours.filter((h) => h.count > 0).map((h) => html`<tr><th scope="row">${clock(new Date(h.from))}</th>
          <td class="num">${h.count}</td><td class="num">${ms(h.p50)}</td><td class="num">${ms(h.p95)}</td></tr>`)}</tbody>
      </table></details>
      <table id="stages">
        <caption class="hidden">${t("summary")}</caption>
        <thead><tr><th scope="col">${t("stage")}</th><th scope="col" class="num">${t("turns")}</th><th scope="col" class="num">p50</th><th scope="col" class="num">p95</th></tr></thead>
        <tbody>${all.map((s) => {
          const took = values(some, s);
          return html`<tr data-stage=${s}><th scope="row">${t(s)}</th><td class="num">${took.length}</td>
            <td class="num">${ms(percentile(took, 0.5))}</td><td class="num">${ms(percentile(took, 0.95))}</td></tr>`;
        })}</tbody>
      </table>
      <p class="meta">${t("kept", { n: this.turns.length, ago: ago(oldest.at) })}</p>
    </p-card>`;
  }

  private table(turns: readonly Turn[]): unknown {
    const some = turns.slice(0, this.shown);
    const longest = Math.max(1, ...some.map((one) => sum(one)));
    return html`<table class="blocks" id="turns" role="table" aria-label=${t("latest")}>
      <thead role="rowgroup"><tr role="row">${(["when", "robot", "heard", "said", "stages", "total", "how"] as const).map(
        (h) => html`<th role="columnheader" scope="col" class=${h === "total" ? "num" : ""}>${t(h)}</th>`)}</tr></thead>
      <tbody role="rowgroup">${repeat(some, (one) => one.session + one.at, (one) => this.line(one, longest))}</tbody></table>`;
  }

  private line(one: Turn, longest: number): unknown {
    const end = ends.find((e) => e === one.end);
    const stages = inOrder.filter((s) => one.stages?.[s] !== undefined);
    return html`<tr role="row" data-test="turn">
      <td role="cell"><time datetime=${one.at}>${clock(one.at)}</time></td>
      <td role="cell" class="who">${one.robot ? nameIn(this.robots, one.robot) : t("session")}</td>
      <td role="cell" class="words" data-head=${t("heard")}>${one.heard}</td>
      <td role="cell" class="words" data-head=${t("said")}>${one.said}</td>
      <td role="cell" class="stages">${stages.length === 0
        ? html`<span class="muted small">${t("unknown")}</span>`
        : html`<div class="line" role="img" aria-label=${stages.map((s) => `${t(s)} ${ms(one.stages?.[s])}`).join(", ")}>
            ${stages.map((s) => html`<i class=${s} title=${`${t(s)} ${ms(one.stages?.[s])}`}
              .style=${`width:${((one.stages?.[s] ?? 0) / longest) * 100}%`}></i>`)}</div>`}</td>
      <td role="cell" class="num" data-head=${t("total")}>${ms(total(one))}</td>
      <td role="cell"><span class="tag ${one.end === "failed" ? "bad" : one.end === "done" ? "ok" : "warn"}">${end ? t(end) : one.end}</span></td>
    </tr>`;
  }
}

function sum(one: Turn): number {
  return inOrder.reduce((all, s) => all + (one.stages?.[s] ?? 0), 0);
}

function ms(n: number | undefined): string {
  return n === undefined ? "–" : t("ms", { n: new Intl.NumberFormat(locale()).format(Math.round(n)) });
}

customElements.define("p-turns", TurnsView);
