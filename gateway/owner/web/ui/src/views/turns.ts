// The view of the turns of all robots: when people talk, how long they wait, and each turn with what happened in it.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { get } from "../lib/api.js";
import type { Record_ as Turn } from "../lib/board.js";
import { heat, heatStyles } from "../lib/heat.js";
import { devices, nameIn, nameOf, type Device } from "../lib/robots.js";
import { View } from "../lib/view.js";
import { add, dates, hourName, week, weekday, type Week } from "../lib/week.js";
import { catalogue, clock, locale } from "../lib/words.js";
import { list } from "./list.js";
import { legend, partsOf, stageName, stageStyles, timeline, totalOf, type Stage } from "./robot.stages.js";
import { asCSV, ends, fits, type Filter } from "./turns.filter.js";

const t = catalogue("turns");

const atOnce = 30; // turns that are shown at first
const loadEach = 60_000; // ms between two loads of the week

// advice returns what shortens a stage, and the view in which that is done.
function advice(stage: Stage): [text: string, link: string] {
  switch (stage) {
    case "endpoint":
      return [t("adviceEndpoint"), "#/settings"];
    case "recognize":
      return [t("adviceRecognize"), "#/engines"];
    case "first_token":
    case "first_sentence":
      return [t("adviceThink"), "#/engines"];
    case "first_audio":
      return [t("adviceVoice"), "#/engines"];
    case "rest":
      return [t("adviceRest"), "#/engines"];
  }
}

export class TurnsView extends View {
  static properties = { turns: { state: true }, filter: { state: true }, shown: { state: true } };
  declare private turns: Turn[];
  declare private filter: Filter;
  declare private shown: number;
  private robots: Device[] = [];
  private week: Week = { today: "", days: [] };
  private loaded = 0; // when the week was loaded, in ms since 1970

  static styles = [View.styles, list, stageStyles, heatStyles, css`
    .pictures { display: grid; gap: var(--gap); grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); align-items: start; }
    .files a { display: inline-flex; align-items: center; min-height: var(--target); }
    .turns > li { border-bottom: 1px solid var(--line); } .turns > li:last-child { border: 0; }
    .turns summary { display: grid; grid-template-columns: 1rem 9rem minmax(0, 1fr) auto; gap: 0 var(--s3); font-weight: 400; padding: var(--s3) 0; align-items: start; }
    .turns summary::before { content: "›" / ""; color: var(--muted); transition: rotate var(--quick); justify-self: center; } .turns details[open] > summary::before { rotate: 90deg; } .turns .raw summary { display: list-item; }
    .turns .raw summary::before { content: none; }
    .words { min-width: 0; overflow-wrap: anywhere; } .heard { font-weight: 600; } .words > * { display: block; }
    .end { display: grid; gap: var(--s1); justify-items: end; text-align: end; }
    .whole { display: grid; gap: var(--s3); padding-bottom: var(--s4); grid-template-columns: minmax(0, 1fr); }
    .thoughts { white-space: pre-wrap; }
    .whole pre { background: var(--raised); border: 1px solid var(--line); border-radius: var(--round); padding: var(--s2) var(--s3); white-space: pre-wrap; overflow-wrap: anywhere; }
    @media (max-width: 44rem) { .turns summary { grid-template-columns: 1rem minmax(0, 1fr) auto; } .turns .words { grid-column: 2 / -1; order: 3; } .whole dl { grid-template-columns: minmax(0, 1fr); } }
  `];

  constructor() {
    super();
    this.turns = [];
    this.shown = atOnce;
    const query = new URLSearchParams(location.hash.split("?")[1] ?? "");
    this.filter = { robot: query.get("robot") ?? "", q: query.get("q") ?? "", outcome: query.get("outcome") ?? "" };
    this.reloadOn(["turn_ended", "robot_renamed", "robot_forgotten"]);
  }

  protected title_(): string {
    return t("title");
  }

  protected async load(): Promise<void> {
    const [turns, robots, sums] = await Promise.all([get<Turn[] | null>("api/v1/turns?limit=1000"), devices(), this.sums()]);
    this.robots = robots;
    this.week = sums;
    this.turns = (turns ?? []).sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
  }

  // sums returns the week, which is loaded once a minute: with many robots it is large, and a turn changes it little.
  private async sums(): Promise<Week> {
    if (this.week.days.length > 0 && Date.now() - this.loaded < loadEach) return this.week;
    this.loaded = Date.now();
    return week();
  }

  // set changes the filter, and the address, which can be sent to somebody.
  private set(change: Partial<Filter>): void {
    this.filter = { ...this.filter, ...change };
    this.shown = atOnce;
    const query = new URLSearchParams(Object.entries(this.filter).filter(([, value]) => value !== "")).toString();
    history.replaceState(history.state, "", query === "" ? "#/turns" : `#/turns?${query}`);
  }

  protected content(): unknown {
    const days = this.week.days.filter((d) => !this.filter.robot || d.robot === this.filter.robot);
    if (this.turns.length === 0 && days.length === 0) {
      return html`<div class="stack"><p class="lead">${t("about")}</p><p-empty heading=${t("none")} look="asleep">${t("noneHint")}</p-empty></div>`;
    }
    return html`<div class="stack">
      <p class="lead">${t("about")}</p>
      <div class="filters"><p-field label=${t("filter")}>${this.choice("robot", t("everyRobot"), this.robots.map((d) => [d.id, nameOf(d)]))}</p-field></div>
      <div class="pictures">${this.talks(days)}${this.waits(days)}</div>${this.latest()}</div>`;
  }

  private choice(name: "robot" | "outcome", all: string, some: (readonly [string, string])[]) {
    return html`<select id=${name} @change=${(e: Event) => this.set({ [name]: (e.target as HTMLSelectElement).value })}>
      <option value="">${all}</option>${some.map(([value, text]) => html`<option value=${value} ?selected=${value === this.filter[name]}>${text}</option>`)}</select>`;
  }

  private talks(days: Week["days"]) {
    const rows = dates(this.week).map((date) => [date, add(days.filter((d) => d.date === date).map((d) => d.talks))] as const);
    const most = rows.flatMap(([date, hours]) => Object.entries(hours).map(([hour, n]) => ({ date, hour: Number(hour), n }))).sort((a, b) => b.n - a.n)[0];
    return html`<p-card heading=${t("talks")}>${most
      ? html`<div class="stack"><p class="muted small">${t("talksAbout")}</p>
          ${heat(rows.map(([date, hours]) => [weekday(date, "short"), hours]), t("talksAbout"), (hour, n) => t("talksAt", { hour, n }), "talks")}
          <p data-test="busiest">${t("talksMost", { day: weekday(most.date, "long"), hour: hourName(most.hour) })}</p></div>`
      : html`<p class="muted">${t("notCounted")}</p>`}</p-card>`;
  }

  private waits(days: Week["days"]) {
    const sums: Record<string, number> = {};
    let n = 0;
    for (const d of days) {
      n += d.waits?.["first_token"]?.turns ?? 0; // each answer has this stage
      for (const [stage, wait] of Object.entries(d.waits ?? {})) sums[stage] = (sums[stage] ?? 0) + wait.ms;
    }
    if (n === 0) return nothing;
    const stages = Object.fromEntries(Object.entries(sums).map(([stage, sum]) => [stage, sum / n]));
    const parts = partsOf(stages);
    const longest = [...parts].sort((a, b) => b.ms - a.ms)[0];
    if (!longest) return nothing;
    const [text, link] = advice(longest.stage);
    return html`<p-card heading=${t("waits")}><div class="stack" data-test="waits"><p class="muted small">${t("waitsAbout", { n })}</p>
      ${timeline(stages, 0)}${legend(parts)}
      <p data-test="advice"><strong>${t("longest", { stage: stageName(longest.stage) })}</strong> ${text} <a href=${link}>${t(link === "#/settings" ? "toSettings" : "toEngines")}</a></p></div></p-card>`;
  }

  private latest() {
    const some = this.turns.filter((one) => fits(one, this.filter));
    const shown = some.slice(0, this.shown);
    const most = Math.max(1, ...shown.map((one) => totalOf(one.stages ?? {})));
    const search = (e: Event) => this.set({ q: (e.target as HTMLInputElement).value });
    return html`<p-card heading=${t("latest")}><div class="stack">
      <div class="filters"><p-field label=${t("search")} hint=${t("searchHint")}><input id="search" type="search" .value=${this.filter.q} @input=${search}></p-field>
        <p-field label=${t("outcome")}>${this.choice("outcome", t("everyOutcome"), ends.map((end) => [end, t(end)]))}</p-field></div>
      <div class="row small muted files"><span role="status" data-test="count">${t("count", { n: some.length })}</span>
        ${some.length > 0 ? html`<a href="#/turns" download="perch-turns.json" data-test="json" @click=${this.save(() => JSON.stringify(some, null, 2), "application/json")}>${t("asJSON")}</a>
          <a href="#/turns" download="perch-turns.csv" data-test="csv" @click=${this.save(() => asCSV(some, this.robots), "text/csv")}>${t("asCSV")}</a>` : nothing}</div>
      ${some.length === 0
        ? html`<p-empty heading=${this.turns.length === 0 ? t("none") : t("noneFits")}>${this.turns.length === 0 ? t("noneHint") : t("noneFitsHint")}
            ${this.turns.length === 0 ? nothing : html`<p-button slot="action" data-test="all" @click=${() => this.set({ robot: "", q: "", outcome: "" })}>${t("showAll")}</p-button>`}</p-empty>`
        : html`<ul class="turns" id="turns">${repeat(shown, (one) => one.session + one.at, (one) => html`<li>${this.line(one, most)}</li>`)}</ul>`}
      ${some.length > this.shown ? html`<div><p-button data-test="more" @click=${() => (this.shown += 100)}>${t("more")}</p-button></div>` : nothing}
    </div></p-card>`;
  }

  // save makes the file that a link saves when the link is followed.
  private save(text: () => string, type: string) {
    return (e: Event) => {
      const url = URL.createObjectURL(new Blob([text()], { type }));
      (e.currentTarget as HTMLAnchorElement).href = url;
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    };
  }

  private line(one: Turn, most: number) {
    const end = ends.find((e) => e === one.end);
    const total = totalOf(one.stages ?? {});
    return html`<details data-test="turn">
      <summary><span class="small muted"><time datetime=${one.at}>${clock(one.at)}</time><br><bdi>${one.robot ? nameIn(this.robots, one.robot) : t("session")}</bdi></span>
        <span class="words">${one.heard ? html`<bdi class="heard">${one.heard}</bdi>` : html`<span class="muted">${t("announced")}</span>`}<bdi>${one.said}</bdi></span>
        <span class="end small"><span class="tag ${one.end === "failed" ? "bad" : one.end === "done" ? "ok" : "warn"}">${end ? t(end) : one.end}</span>
          ${total > 0 ? html`<span class="muted" data-test="total">${ms(total)}</span>` : nothing}</span></summary>
      <div class="whole" data-test="whole">${this.whole(one, most)}</div></details>`;
  }

  // whole renders all that is known of a turn.
  private whole(one: Turn, most: number) {
    const stages = one.stages ?? {};
    const rows = [[t("brain"), one.brain], [t("thought"), one.thoughts], [t("reason"), one.reason]].filter(([, text]) => text);
    return html`${rows.length > 0 ? html`<dl>${rows.map(([term, text]) => html`<dt>${term}</dt><dd><bdi class="thoughts">${text}</bdi></dd>`)}</dl>` : nothing}
      ${one.tools?.length ? html`<div><h3>${t("tools")}</h3><ul>${one.tools.map((u) => html`<li data-test="tool"><code>${u.name}</code>
        <span class=${u.status === "failed" ? "bad" : "muted"}>${u.status === "failed" ? t("failed") : u.status === "done" ? t("done") : ""}</span> <bdi class="muted">${u.detail}</bdi></li>`)}</ul></div>` : nothing}
      <div><h3>${t("wait")}</h3>${totalOf(stages) > 0 ? html`${timeline(stages, most)}${legend(partsOf(stages))}` : html`<p class="muted">${t("notMeasured")}</p>`}</div>
      ${one.calls?.length ? html`<details class="raw" data-test="raw"><summary>${t("raw")}</summary><pre tabindex="0">${JSON.stringify(one.calls.map((c) => ({ ...c, arguments: parsed(c.arguments) })), null, 2)}</pre></details>` : nothing}`;
  }
}

// parsed returns the value of JSON, or else the text, which may have been cut.
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function ms(n: number): string {
  return t("ms", { n: new Intl.NumberFormat(locale()).format(Math.round(n)) });
}

customElements.define("p-turns", TurnsView);
