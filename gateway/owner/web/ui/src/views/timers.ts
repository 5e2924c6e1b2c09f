// The view of running timers, with their remaining times.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { get, send, serverNow } from "../lib/api.js";
import { devices, nameIn, type Device } from "../lib/robots.js";
import { ask } from "../lib/ui.js";
import { View } from "../lib/view.js";
import { catalogue, clock } from "../lib/words.js";
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
  reminder?: boolean;
  on_robot?: boolean;
}

export class TimersView extends View {
  static properties = { timers: { state: true } };
  declare private timers: Timer[];
  private robots: Device[] = [];
  private tick: ReturnType<typeof setInterval> | undefined;

  static styles = [View.styles, list, css`
    .left { font-size: 1.7rem; font-weight: 650; font-variant-numeric: tabular-nums; letter-spacing: -0.01em; line-height: 1.2; }
    p-bar { flex: 1 1 100%; }
  `];

  constructor() {
    super();
    this.timers = [];
    this.reloadOn(["timer_rang", "robot_renamed"], ["timers"]);
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
    if (this.timers.length === 0) return html`<p-empty heading=${t("none")}>${t("noneHint")}</p-empty>`;
    return html`<p-card><ul class="items" id="timers">${repeat(this.timers, (one) => one.id, (one) => this.item(one))}</ul></p-card>`;
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
    if (!(await ask({ heading: t("really"), text: label(one), yes: t("cancel"), no: t("keep"), danger: true }))) return;
    if (await this.act(() => send("DELETE", `api/v1/timers/${encodeURIComponent(one.id)}`), t("cancelled"))) {
      this.timers = this.timers.filter((other) => other.id !== one.id);
    }
  }
}

function label(one: Timer): string {
  return one.label || one.text || t(one.reminder ? "reminder" : "timer");
}

customElements.define("p-timers", TimersView);
