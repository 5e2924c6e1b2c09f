// Pictures of a robot's last seven days: battery and signal, and its moods and perceptions on one of them.

import { css, html, nothing, svg } from "lit";
import { heat, heatStyles } from "../lib/heat.js";
import { base } from "../lib/ui.js";
import { Spoken } from "../lib/view.js";
import { byName, dates, dayName, weekday, type Hours, type Week } from "../lib/week.js";
import { catalogue, locale } from "../lib/words.js";
import { moodWord } from "./mood.words.js";

const say = catalogue("week");

const strengths = ["weak", "medium", "strong"] as const;

// strength returns the word for a signal from 1 to 3.
function strength(signal: number): string {
  return say(strengths[signal - 1] ?? "weak");
}

function seconds(ms: number): string {
  return new Intl.NumberFormat(locale(), { maximumSignificantDigits: 2 }).format(ms / 1000);
}

// sensedTable renders how often what was sensed, by the hour.
export function sensedTable(sensed: readonly (Record<string, Hours> | undefined)[]) {
  const rows = byName(sensed);
  if (rows.length === 0) return html`<p class="muted small">${say("noSensed")}</p>`;
  return heat(rows.map(([name, hours]) => [name === "other" ? say("other") : name.replaceAll("_", " "), hours]), say("sensed"), (hour, n) => say("sensedAt", { hour, n }), "sensed-day");
}

export class RobotWeek extends Spoken {
  static properties = { robot: {}, week: { attribute: false }, date: { state: true } };
  declare robot: string;
  declare week: Week;
  declare date: string; // the day that is shown, or "" for today
  static styles = [base, heatStyles, css`
    .line { display: grid; grid-template-columns: minmax(0, 1fr) 3rem; }
    .line svg { width: 100%; height: 6rem; display: block; background: var(--raised); border-radius: var(--round); }
    .line .low { height: 1.5rem; margin-top: var(--s1); }
    .scale { display: flex; flex-direction: column; justify-content: space-between; text-align: end; }
    .days { display: grid; grid-template-columns: repeat(7, minmax(0, 1fr)); margin-inline-end: 3rem; } .days span { overflow: hidden; text-overflow: clip; white-space: nowrap; }
    .grid1 { stroke: var(--line); } .battery { stroke: var(--plot1); fill: none; stroke-width: 2.5; stroke-linecap: round; stroke-linejoin: round; } .signal { fill: var(--plot2); }
    .grid1, .battery { vector-effect: non-scaling-stroke; }
    details { font-size: var(--t-small); } .num { text-align: end; }
  `];

  constructor() {
    super();
    this.date = "";
  }

  render() {
    const all = dates(this.week);
    const days = all.map((date) => this.week.days.find((d) => d.robot === this.robot && d.date === date));
    if (days.every((d) => !d)) return html`<p class="muted">${say("none")}</p>`;
    const date = all.includes(this.date) ? this.date : this.week.today;
    const day = days[all.indexOf(date)];
    const moods = byName([day?.moods]);
    return html`<div class="stack">${this.line(all, days.map((d) => d?.battery), days.map((d) => d?.signal))}
      <p-field label=${say("day")}><select data-test="day" @change=${(e: Event) => (this.date = (e.target as HTMLSelectElement).value)}>
        ${[...all].reverse().map((one) => html`<option value=${one} ?selected=${one === date}>${dayName(one)}</option>`)}</select></p-field>
      <div><h3>${say("moods")}</h3>${moods.length === 0 ? html`<p class="muted small">${say("noMoods")}</p>`
        : heat(moods.map(([name, hours]) => [moodWord(name), hours]), say("moods"), (hour, n) => say("moodAt", { hour, n: seconds(n) }), "moods")}</div>
      <div><h3>${say("sensed")}</h3>${sensedTable([day?.sensed])}</div></div>`;
  }

  // line renders the battery as a line and the signal as bars below it.
  private line(all: string[], battery: (Hours | undefined)[], signal: (Hours | undefined)[]) {
    const points = series(battery);
    const bars = series(signal);
    if (points.length === 0 && bars.length === 0) return html`<p class="muted small">${say("notReported")}</p>`;
    const low = Math.min(...points.map(([, n]) => n));
    const weakest = Math.min(...bars.map(([, n]) => n));
    const midnights = all.slice(1).map((_, i) => svg`<path class="grid1" d="M${(i + 1) * 24} 0V100"></path>`);
    // A point alone is a dot, since its line of no length has round ends.
    const path = points.map(([at, n], i) => `${i === 0 ? "M" : "L"}${at} ${100 - n}`).join("") + (points.length === 1 ? "h0" : "");
    return html`<div data-test="reported">
      ${points.length > 0 ? html`<p class="small">${say("batteryLine", { now: points.at(-1)![1], low })}</p>
        <div class="line"><svg viewBox="0 -4 168 108" preserveAspectRatio="none" role="img" aria-label=${say("batteryLine", { now: points.at(-1)![1], low })}>${midnights}
          <path class="battery" d=${path}></path></svg><span class="scale small muted" aria-hidden="true"><span>100 %</span><span>0 %</span></span></div>` : nothing}
      ${bars.length > 0 ? html`<p class="small">${say("signalLine", { now: strength(bars.at(-1)![1]), low: strength(weakest) })}</p>
        <div class="line"><svg class="low" viewBox="0 0 168 3" preserveAspectRatio="none" role="img" aria-label=${say("signalLine", { now: strength(bars.at(-1)![1]), low: strength(weakest) })}>
          ${bars.map(([at, n]) => svg`<rect class="signal" x=${at} y=${3 - n} width="1" height=${n}></rect>`)}</svg></div>` : nothing}
      <div class="days small muted" aria-hidden="true">${all.map((date) => html`<span>${weekday(date, "short")}</span>`)}</div>
      <details><summary>${say("numbers")}</summary><table><thead><tr><th scope="col">${say("day")}</th><th scope="col" class="num">${say("lowest")}</th>
        <th scope="col" class="num">${say("last")}</th><th scope="col" class="num">${say("weakest")}</th></tr></thead>
        <tbody>${all.map((date, i) => {
          const charge = series([battery[i]]).map(([, n]) => n);
          const heard = series([signal[i]]).map(([, n]) => n);
          return html`<tr><th scope="row">${dayName(date)}</th><td class="num">${charge.length > 0 ? `${Math.min(...charge)} %` : "–"}</td>
            <td class="num">${charge.length > 0 ? `${charge.at(-1)} %` : "–"}</td><td class="num">${heard.length > 0 ? strength(Math.min(...heard)) : "–"}</td></tr>`;
        })}</tbody></table></details></div>`;
  }
}

// series returns the numbers of several days in the order of time, each with its hour from the beginning of the first day.
function series(days: readonly (Hours | undefined)[]): [at: number, n: number][] {
  return days.flatMap((hours, i) => Object.entries(hours ?? {}).map(([hour, n]): [number, number] => [i * 24 + Number(hour), n])).sort(([a], [b]) => a - b);
}

customElements.define("p-robot-week", RobotWeek);
