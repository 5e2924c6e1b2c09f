// The view of open notifications and of questions that wait for yes or no, with a form for sending a notification.

import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { get, send } from "../lib/api.js";
import { feed } from "../lib/feed.js";
import { devices, nameIn, nameOf, type Device } from "../lib/robots.js";
import { View } from "../lib/view.js";
import { ago, catalogue, clock } from "../lib/words.js";
import { webLink } from "./link.js";
import { list } from "./list.js";

const t = catalogue("notifications");

interface Notification_ {
  id: string;
  text: string;
  urgency: string;
  action_url?: string;
  robot?: string;
  session_id?: string;
  speak: boolean;
  state: string;
  received: string;
  expires?: string;
}

interface Question {
  id: string;
  text: string;
  robot?: string;
  until: string;
}

interface Done {
  one: Notification_;
  state: string;
  at: string;
}

const states = ["received", "shown", "spoken", "acknowledged", "expired"] as const;
const validity = { tenMinutes: 10, hour: 60, day: 24 * 60 } as const; // minutes
const mostDone = 30;

// recent holds notifications that were acknowledged or have expired while the page was open, newest first. The server
// lists only open ones.
const recent: Done[] = [];
let known = new Map<string, Notification_>();
const watchers = new Set<() => void>();
feed.on(["notification_changed"], (e) => {
  const state = String(e.data["state"]);
  const one = known.get(String(e.data["id"]));
  if (!one || (state !== "acknowledged" && state !== "expired")) return;
  recent.unshift({ one, state, at: e.at });
  recent.length = Math.min(recent.length, mostDone);
  watchers.forEach((f) => f());
});

export class NotificationsView extends View {
  static properties = { open: { state: true }, questions: { state: true }, busy: { state: true }, fault: { state: true }, high: { state: true } };
  declare private open: Notification_[];
  declare private questions: Question[];
  declare private busy: boolean;
  declare private fault: string; // what is wrong with the text of a new one
  declare private high: boolean;
  private robots: Device[] = [];
  private readonly draw = () => this.requestUpdate();

  static styles = [View.styles, list];

  constructor() {
    super();
    this.open = [];
    this.questions = [];
    this.busy = false;
    this.fault = "";
    this.high = false;
    this.reloadOn(["notification", "notification_changed", "asked", "answered", "robot_renamed", "robot_adopted"], ["robot"]);
  }

  protected title_(): string {
    return t("title");
  }

  connectedCallback(): void {
    super.connectedCallback();
    watchers.add(this.draw);
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    watchers.delete(this.draw);
  }

  protected async load(): Promise<void> {
    const [open, questions, robots] = await Promise.all([
      get<Notification_[] | null>("api/v1/notifications"),
      get<Question[] | null>("api/v1/permissions"),
      devices(),
    ]);
    this.robots = robots;
    this.open = (open ?? []).reverse(); // the newest first
    known = new Map([...known, ...this.open.map((one): [string, Notification_] => [one.id, one])].slice(-1000));
    this.questions = questions ?? [];
  }

  protected content(): unknown {
    return html`<div class="stack">
      ${this.questions.length > 0 ? this.asked() : nothing}
      ${this.form()}
      <p-card heading=${t("open")}>
        ${this.open.length === 0
          ? html`<p-empty heading=${t("none")}>${t("noneHint")}</p-empty>`
          : html`<ul class="items" id="open">${repeat(this.open, (n) => n.id, (n) => this.item(n, n.state, n.received, true))}</ul>`}
      </p-card>
      <p-card heading=${t("recent")}>
        ${recent.length === 0
          ? html`<p class="muted">${t("recentNone")}</p>`
          : html`<ul class="items" id="recent">${recent.map((d) => this.item(d.one, d.state, d.at, false))}</ul>`}
      </p-card>
    </div>`;
  }

  private asked(): unknown {
    return html`<p-card heading=${t("questions")}><ul class="items" id="questions" aria-live="polite">
      ${repeat(this.questions, (q) => q.id, (q) => html`<li data-test="question">
        <div class="what"><p class="text"><strong>${q.text}</strong></p>
          <p class="meta">${q.robot
            ? t("questionBy", { name: nameIn(this.robots, q.robot), time: clock(q.until) })
            : t("questionBySession", { time: clock(q.until) })}</p></div>
        <div class="row">
          <p-button kind="main" label=${t("yesTo", { text: q.text })} @click=${() => this.answer(q, true)} data-test="yes">${t("yes")}</p-button>
          <p-button label=${t("noTo", { text: q.text })} @click=${() => this.answer(q, false)} data-test="no">${t("no")}</p-button>
        </div></li>`)}
    </ul></p-card>`;
  }

  private form(): unknown {
    const adopted = this.robots.filter((d) => d.adopted);
    return html`<p-card heading=${t("send")}><form class="form" id="send" novalidate @submit=${this.submit}>
      <p-field label=${t("text")} .error=${this.fault}><textarea name="text" rows="2" maxlength="1000" data-test="notification-text"></textarea></p-field>
      <div class="fields">
        <p-field label=${t("urgency")} hint=${this.high ? t("highHint") : ""}><select name="urgency" @change=${(e: Event) => {
          this.high = (e.target as HTMLSelectElement).value === "high";
        }}>
          ${(["low", "normal", "high"] as const).map((u) => html`<option value=${u} ?selected=${u === "normal"}>${t(u)}</option>`)}
        </select></p-field>
        <p-field label=${t("robot")}><select name="robot">
          <option value="">${t("all")}</option>
          ${adopted.map((d) => html`<option value=${d.id}>${nameOf(d)}</option>`)}
        </select></p-field>
        <p-field label=${t("until")}><select name="until">
          ${(["tenMinutes", "hour", "day"] as const).map((v) => html`<option value=${v} ?selected=${v === "day"}>${t(v)}</option>`)}
        </select></p-field>
      </div>
      <p-field inline label=${t("speak")}><input type="checkbox" name="speak" checked /></p-field>
      <div class="row"><p-button kind="main" type="submit" ?busy=${this.busy} data-test="notification-send">${t("sendButton")}</p-button></div>
    </form></p-card>`;
  }

  private item(n: Notification_, state: string, at: string, open: boolean): unknown {
    const known = states.find((s) => s === state);
    const target = n.robot ? t("toRobot", { name: nameIn(this.robots, n.robot) }) : t(n.session_id ? "toSession" : "toAll");
    const link = webLink(n.action_url);
    return html`<li data-test="notification" data-id=${n.id}>
      <div class="what">
        <p class="text">${n.text}</p>
        <p class="meta">
          ${n.urgency === "high" ? html`<span class="tag bad">${t("high")}</span>` : n.urgency === "low" ? html`<span class="tag">${t("low")}</span>` : nothing}
          <span>${known ? t(known) : state}</span>
          <time datetime=${at}>${ago(at)}</time>
          <span>${target}</span>
          ${n.speak ? nothing : html`<span>${t("silent")}</span>`}
          ${open && n.expires ? html`<span>${t("validUntil", { time: clock(n.expires) })}</span>` : nothing}
          ${link ? html`<a href=${link} target="_blank" rel="noopener noreferrer">${t("link")}</a>` : nothing}
        </p>
      </div>
      ${open ? html`<p-button label=${t("ackOf", { text: n.text })} @click=${() => this.acknowledge(n)} data-test="ack">${t("ack")}</p-button>` : nothing}
    </li>`;
  }

  private async answer(q: Question, allow: boolean): Promise<void> {
    const done = await this.act(() => send("POST", `api/v1/permissions/${encodeURIComponent(q.id)}`, { allow }), t(allow ? "answeredYes" : "answeredNo"));
    if (done) this.questions = this.questions.filter((one) => one.id !== q.id);
    else this.reload(); // the question may have expired
  }

  private async acknowledge(n: Notification_): Promise<void> {
    const done = await this.act(() => send("POST", `api/v1/notifications/${encodeURIComponent(n.id)}/ack`), t("acked"));
    if (done) this.open = this.open.filter((one) => one.id !== n.id);
    else this.reload();
  }

  private async submit(e: Event): Promise<void> {
    e.preventDefault();
    if (this.busy) return;
    const form = e.target as HTMLFormElement;
    const data = new FormData(form);
    const minutes = validity[String(data.get("until")) as keyof typeof validity] ?? validity.day;
    const body: Record<string, unknown> = {
      text: String(data.get("text") ?? "").trim(),
      urgency: String(data.get("urgency")),
      speak: data.get("speak") !== null,
      expires_at: new Date(Date.now() + minutes * 60_000).toISOString(),
    };
    if (data.get("robot")) body["robot"] = String(data.get("robot"));
    this.fault = body["text"] === "" ? t("needText") : "";
    if (this.fault !== "") return form.querySelector("textarea")!.focus();
    this.busy = true;
    const done = await this.act(() => send("POST", "api/v1/notifications", body), t("sent"));
    this.busy = false;
    if (!done) return;
    form.reset();
    this.high = false;
    this.reload();
  }
}

customElements.define("p-notifications", NotificationsView);
