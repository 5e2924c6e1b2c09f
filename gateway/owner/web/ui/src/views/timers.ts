// The view of running timers, with their remaining times, and a form for setting one.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { Refusal, get, send, serverNow } from "../lib/api.js";
import { devices, nameIn, nameOf, type Device } from "../lib/robots.js";
import { type Said } from "../lib/said.js";
import { View, sentence } from "../lib/view.js";
import { weekday } from "../lib/week.js";
import { catalogue, clock, locale } from "../lib/words.js";
import { left } from "./home.countdown.js";
import { list } from "./list.js";

const t = catalogue("timers");

interface Timer {
  id: string;
  robot?: string;
  name?: string; // name of the robot
  label?: string;
  text?: string;
  set?: string;
  due: string;
  length?: number; // nanoseconds
  days?: string; // the days of an alarm that repeats, such as "mon tue"
  reminder?: boolean;
  on_robot?: boolean;
}

// The days of the week, with a date of each, and sets of days that have a name.
const week = { mon: "2024-01-01", tue: "2024-01-02", wed: "2024-01-03", thu: "2024-01-04", fri: "2024-01-05", sat: "2024-01-06", sun: "2024-01-07" };
const named = { "mon tue wed thu fri sat sun": "everyDay", "mon tue wed thu fri": "weekdays", "sat sun": "weekend" } as const;
const sets = Object.keys(named) as (keyof typeof named)[];

// daysName returns the name of a set of days.
function daysName(days: string): string {
  const set = sets.find((one) => one === days);
  if (set) return t(named[set]);
  const names = days.split(" ").map((day) => weekday(week[day as keyof typeof week], "long"));
  return new Intl.ListFormat(locale()).format(names);
}

const mostMinutes = 24 * 60;
const undoable = 15_000; // ms; a timer that rings sooner is cancelled at once

type Field = "when" | "text" | "robot";

export class TimersView extends View {
  static properties = { timers: { state: true }, cancelled: { state: true }, busy: { state: true }, byClock: { state: true }, fault: { state: true } };
  declare private timers: Timer[];
  declare private cancelled: string[]; // IDs of timers that are not shown any more
  declare private busy: boolean;
  declare private byClock: boolean; // whether the form sets an alarm at a time of day
  declare private fault: { at: Field; why: Said } | undefined; // what is wrong with the form
  private robots: Device[] = [];
  private tick: ReturnType<typeof setInterval> | undefined;

  static styles = [View.styles, list, css`
    .left { font-size: 1.7rem; font-weight: 650; font-variant-numeric: tabular-nums; letter-spacing: -0.01em; line-height: 1.2; }
    p-bar { flex: 1 1 100%; }
  `];

  constructor() {
    super();
    this.timers = [];
    this.cancelled = [];
    this.busy = false;
    this.byClock = false;
    this.reloadOn(["timer_rang", "robot_renamed"], ["timers", "robot"]);
  }

  protected title_(): string {
    return t("title");
  }

  protected async load(): Promise<void> {
    const [timers, robots] = await Promise.all([get<Timer[] | null>("api/v1/timers"), devices()]);
    this.robots = robots;
    this.timers = (timers ?? []).sort((a, b) => Date.parse(a.due) - Date.parse(b.due));
  }

  connectedCallback(): void {
    super.connectedCallback();
    // Renders the remaining times again, without a request to the server.
    this.tick = setInterval(() => {
      if (this.timers.length > 0) this.requestUpdate();
    }, 1000);
    this.follow(["timer_rang"], (e) => this.tell(t("rang", { text: String(e.data["text"] ?? "") })));
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.tick);
  }

  protected content(): unknown {
    const shown = this.timers.filter((one) => !this.cancelled.includes(one.id));
    return html`<div class="stack">${this.form()}${shown.length === 0
      ? html`<p-empty heading=${t("none")} look="asleep">${t("noneHint")}</p-empty>`
      : html`<p-card><ul class="items" id="timers">${repeat(shown, (one) => one.id, (one) => this.item(one))}</ul></p-card>`}</div>`;
  }

  private form(): unknown {
    const wrong = (at: Field) => (this.fault?.at === at ? this.fault.why : "");
    return html`<p-card heading=${t("set")}><form class="form" id="set" novalidate @submit=${this.submit}>
      <div class="fields">
        <p-field label=${t("kind")}><select name="kind" data-test="timer-kind" @change=${(e: Event) => {
          this.byClock = (e.target as HTMLSelectElement).value === "at";
          this.fault = undefined;
        }}>
          <option value="in">${t("kindTimer")}</option><option value="at">${t("kindAlarm")}</option></select></p-field>
        ${this.byClock
          ? html`<p-field label=${t("clock")} .error=${wrong("when")}><input type="time" name="at" data-test="timer-at" /></p-field>
            <p-field label=${t("repeats")}><select name="days" data-test="timer-days"><option value="">${t("once")}</option>
              ${[...sets, ...Object.keys(week)].map((days) => html`<option value=${days}>${daysName(days)}</option>`)}</select></p-field>`
          : html`<p-field label=${t("minutes")} .error=${wrong("when")}><input type="number" name="minutes" min="0" max=${mostMinutes} step="any" value="10" data-test="timer-minutes" /></p-field>`}
        <p-field label=${t("who")} .error=${wrong("robot")}><select name="robot" data-test="timer-robot">
          <option value="">${t("anyRobot")}</option>
          ${this.robots.filter((d) => d.adopted).map((d) => html`<option value=${d.id}>${nameOf(d)}</option>`)}</select></p-field>
      </div>
      <p-field label=${t("says")} .error=${wrong("text")}><input name="text" maxlength="300" autocomplete="off" value=${t("timeUp")} data-test="timer-text" /></p-field>
      <div class="row"><p-button kind="main" type="submit" ?busy=${this.busy} data-test="timer-set">${t("setButton")}</p-button></div>
    </form></p-card>`;
  }

  // check returns what is wrong with the form, and in which field.
  private check(data: FormData): { at: Field; why: Said } | undefined {
    const minutes = Number(data.get("minutes"));
    if (this.byClock ? !data.get("at") : !(minutes > 0 && minutes <= mostMinutes)) return { at: "when", why: t(this.byClock ? "needClock" : "needMinutes") };
    return String(data.get("text")).trim() === "" ? { at: "text", why: t("needText") } : undefined;
  }

  private async submit(e: Event): Promise<void> {
    e.preventDefault();
    if (this.busy) return;
    const data = new FormData(e.target as HTMLFormElement);
    this.fault = this.check(data);
    if (!this.fault) {
      this.busy = true;
      const when = this.byClock ? { at: String(data.get("at")), days: String(data.get("days")) } : { seconds: Math.max(1, Math.round(Number(data.get("minutes")) * 60)) };
      try {
        await send("POST", "api/v1/timers", { text: String(data.get("text")).trim(), robot: String(data.get("robot")), ...when });
        this.tell(t("isSet"));
        this.reload();
      } catch (failure) {
        const code = failure instanceof Refusal ? failure.code : "";
        const at: Field | undefined = code === "bad_timer" ? "when" : code === "too_many_timers" || code === "not_adopted" || code === "bad_robot_id" ? "robot" : undefined;
        if (at) this.fault = { at, why: sentence(failure) };
        else this.tell(sentence(failure), true);
      }
      this.busy = false;
    }
    if (!this.fault) return;
    await this.updateComplete;
    this.renderRoot.querySelector<HTMLElement>("#set [aria-invalid]")?.focus();
  }

  private item(one: Timer): unknown {
    const text = label(one);
    const ms = Date.parse(one.due) - serverNow();
    const length = (one.length ?? 0) / 1e6;
    const name = one.robot ? one.name || nameIn(this.robots, one.robot) : "";
    return html`<li data-test="timer" data-id=${one.id}>
      <div class="what">
        <p class="text">${text}</p>
        <p class="meta">
          <time datetime=${one.due}>${t("at", { time: clock(one.due) })}</time>
          ${one.days ? html`<span>${daysName(one.days)}</span>` : nothing}
          <span>${name ? t("on", { name }) : t("any")}</span>
          ${one.on_robot ? html`<span>${t("onRobot")}</span>` : nothing}
        </p>
      </div>
      <p class="left" role="timer" aria-label=${t("left", { time: left(ms) })}>${ms > 0 ? left(ms) : t("now")}</p>
      <p-button kind="danger" label=${t("cancelOf", { text })} @click=${() => this.cancel(one)} data-test="cancel">${t("cancel")}</p-button>
      ${length > 0 ? html`<p-bar label=${text} .value=${Math.min(1, Math.max(0, 1 - ms / length))}></p-bar>` : nothing}
    </li>`;
  }

  private async cancel(one: Timer): Promise<void> {
    const work = () => send("DELETE", `api/v1/timers/${encodeURIComponent(one.id)}`);
    if (Date.parse(one.due) - serverNow() > undoable) {
      this.cancelled = [...this.cancelled, one.id];
      this.undoable(t("cancelled"), work, () => (this.cancelled = this.cancelled.filter((id) => id !== one.id)));
    } else if (await this.act(work, t("cancelled"))) this.reload();
  }
}

function label(one: Timer): string {
  return one.label || one.text || t(one.reminder ? "reminder" : "timer");
}

customElements.define("p-timers", TimersView);
