// The home view: all robots, and everything that needs the owner's attention.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { Refusal, get, send } from "../lib/api.js";
import { board, type Record_ } from "../lib/board.js";
import { nameIn, type Device } from "../lib/robots.js";
import { part, told } from "../lib/said.js";
import { keep, kept } from "../lib/store.js";
import { View, type Wish } from "../lib/view.js";
import { ago, allWords, catalogue, clock } from "../lib/words.js";
import "./home.card.js";
import "./home.countdown.js";
import "./home.waiting.js";
import { webLink } from "./link.js";

const say = catalogue("home");

interface Part { name: string; ok: boolean; vital: boolean; note?: string }
interface Notice { id: string; text: string; urgency: string; action_url?: string; robot?: string; state: string; received: string }
interface Question { id: string; text: string; robot: string; asked: string; until: string }
interface Timer { id: string; robot?: string; name?: string; text: string; due: string; reminder?: boolean }
interface Refused { at: string; address: string; device: string; code: string; reason: string; count: number }

const later = "perch.first.later";

export class HomeView extends View {
  static properties = { busy: { state: true }, pointing: { state: true } };
  declare busy: string; // name of the action in progress, or ""
  declare pointing: boolean; // whether the address for one more robot is shown
  private devices: Device[] = [];
  private last = new Map<string, Record_>();
  private notices: Notice[] = [];
  private questions: Question[] = [];
  private timers: Timer[] = [];
  private refused: Refused[] = [];
  private parts: Part[] = [];

  static styles = [View.styles, css`
    section + section { margin-top: 1.8rem; } section > h2 { margin-bottom: 0.7rem; }
    .robots { grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); }
    .asked { border-color: var(--warn); }
    .words { font-size: 1.05rem; margin-bottom: 0.7rem; white-space: pre-wrap; }
    .answers { justify-content: flex-end; margin-top: 0.4rem; }
    li + li { border-top: 1px solid var(--line); margin-top: 0.7rem; padding-top: 0.7rem; }
    .first { background: var(--soft); border-radius: 18px; padding: 1.1rem; display: flex; flex-wrap: wrap; gap: 0.8rem; align-items: center; justify-content: space-between; margin-bottom: 1.4rem; }
    .big { font-size: 2rem; font-weight: 650; line-height: 1.2; }
    details { margin-top: 1rem; }
    summary { cursor: pointer; padding: 0.4rem 0; }
    .link { display: inline-block; padding: 0.25rem 0; }
    .go { display: inline-flex; min-height: 2.6rem; align-items: center; padding: 0.4rem 0.9rem; border-radius: 10px; background: var(--accent); color: var(--on-accent); font-weight: 600; text-decoration: none; }
    .two { grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); margin-top: 1rem; }
  `];

  constructor() {
    super();
    this.busy = "";
    this.pointing = false;
    this.reloadOn(
      ["robot_seen", "robot_adopted", "robot_renamed", "robot_forgotten", "robot_online", "robot_offline", "robot_connected", "robot_disconnected",
        "notification", "notification_changed", "asked", "answered", "timer_rang", "fault", "firmware_installed"],
      ["robot", "timers", "settings", "firmware", "refused"],
    );
  }

  protected title_(): string {
    return say("title");
  }

  protected async load(): Promise<void> {
    const [devices, turns, notices, questions, timers, refused, status] = await Promise.all([
      get<Device[]>("api/v1/devices"), get<Record_[]>("api/v1/turns?limit=200"), get<Notice[]>("api/v1/notifications"),
      get<Question[]>("api/v1/permissions"), get<Timer[]>("api/v1/timers").catch(none), get<Refused[] | null>("api/v1/refused"), get<{ parts: Part[] }>("api/v1/status"),
    ]);
    devices.forEach((d) => board.learn(d.id, d));
    this.devices = devices;
    this.last = new Map();
    for (const t of turns) if (!this.last.has(t.robot)) this.last.set(t.robot, t);
    this.notices = notices;
    this.questions = questions;
    this.timers = [...timers].sort((a, b) => Date.parse(a.due) - Date.parse(b.due));
    this.refused = refused ?? [];
    this.parts = status.parts.filter((p) => !p.ok);
  }

  private named(robot: string | undefined): string {
    return robot ? nameIn(this.devices, robot) : say("forAll");
  }

  // do runs an action unless another one is in progress, and then loads everything again.
  private async do(name: string, work: () => Promise<unknown>, done: string): Promise<void> {
    if (this.busy !== "") return;
    this.busy = name;
    await this.act(work, done);
    this.busy = "";
    this.reload();
  }

  protected content() {
    const adopted = this.devices.filter((d) => d.adopted);
    const waiting = this.devices.filter((d) => !d.adopted || d.claimed);
    return html`${adopted.length === 0 ? this.offer() : nothing}
      ${this.asked()}${this.waiting(waiting)}
      <section aria-labelledby="robots"><h2 id="robots" class=${adopted.length === 0 ? "hidden" : ""}>${say("robots")}</h2>
        ${adopted.length > 0
          ? html`<div class="grid robots">${repeat(adopted, (d) => d.id, (d) => html`<p-robot-card .device=${d} .last=${this.last.get(d.id)}></p-robot-card>`)}</div>${this.another()}`
          : waiting.length === 0 ? this.empty() : nothing}</section>
      <section><h2 class="hidden">${say("notices")}</h2><div class="grid">${this.told()}${this.timer()}${this.faulty()}${this.away()}</div></section>`;
  }

  private offer() {
    if (kept(later) === "1") return nothing;
    const dismiss = () => {
      keep(later, "1");
      this.requestUpdate();
    };
    return html`<aside class="first" aria-label=${say("first")}><div><h2>${say("first")}</h2><p>${say("firstText")}</p></div>
      <div class="row"><a class="go" href="#/first" data-test="first">${say("begin")}</a><p-button data-test="first-later" @click=${dismiss}>${say("later")}</p-button></div></aside>`;
  }

  private asked() {
    if (this.questions.length === 0) return nothing;
    return html`<section aria-labelledby="asked"><h2 id="asked">${say("questions")}</h2><div class="grid" role="group" aria-labelledby="asked">
      ${repeat(this.questions, (q) => q.id, (q) => html`<p-card class="asked" data-test="question">
        ${q.robot ? html`<p class="small muted"><bdi>${say("asks", { name: this.named(q.robot) })}</bdi></p>` : nothing}<p class="words"><bdi>${q.text}</bdi></p>
        <div class="row"><p-button kind="main" data-test="allow" ?disabled=${this.busy !== ""} @click=${() => this.answer(q, true)}>${say("yes")}</p-button>
          <p-button data-test="deny" ?disabled=${this.busy !== ""} @click=${() => this.answer(q, false)}>${say("no")}</p-button>
          <span class="small muted"><p-countdown due=${q.until}></p-countdown></span></div></p-card>`)}</div></section>`;
  }

  private answer(q: Question, allow: boolean): void {
    void this.do(q.id, () => send("POST", `api/v1/permissions/${encodeURIComponent(q.id)}`, { allow }), say("answered"));
  }

  private waiting(list: Device[]) {
    if (list.length === 0) return nothing;
    const wish = (e: CustomEvent<Wish>) => void this.do("adopt", e.detail.work, e.detail.done());
    return html`<section aria-labelledby="new"><h2 id="new">${say("newRobots")}</h2><div class="grid" @wish=${wish}>
      ${repeat(list, (d) => d.id, (d) => html`<p-waiting .device=${d} ?busy=${this.busy === "adopt"}></p-waiting>`)}</div></section>`;
  }

  private told() {
    return html`<p-card heading=${say("notices")}><a slot="actions" class="link small" href="#/notifications">${say("allNotices")}</a>
      ${this.notices.length === 0 ? html`<p class="muted">${say("noNotices")}</p>`
        : html`<ul>${repeat(this.notices, (n) => n.id, (n) => this.notice(n))}</ul>`}</p-card>`;
  }

  private notice(n: Notice) {
    const link = webLink(n.action_url);
    return html`<li data-test="notice"><p class="words"><bdi>${n.text}</bdi></p>
      <p class="small muted">${n.urgency === "high" ? html`<span class="tag warn">${say("urgent")}</span> ` : nothing}<bdi>${this.named(n.robot)}</bdi> · ${ago(n.received)}</p>
      <div class="row small answers">${link ? html`<a href=${link} target="_blank" rel="noopener noreferrer" class="link">${say("open")}</a>` : nothing}
        <p-button data-test="ack" ?disabled=${this.busy !== ""}
          @click=${() => this.do(n.id, () => send("POST", `api/v1/notifications/${encodeURIComponent(n.id)}/ack`), say("acked"))}>${say("ack")}</p-button></div></li>`;
  }

  private timer() {
    const next = this.timers[0];
    return html`<p-card heading=${say("timer")}><a slot="actions" class="link small" href="#/timers">${say("allTimers")}</a>
      ${next ? html`<p class="big"><p-countdown due=${next.due} data-test="countdown"></p-countdown></p><p class="words"><bdi>${next.text}</bdi></p>
          <p class="small muted"><bdi>${next.name || this.named(next.robot)}</bdi> · ${say("rings", { at: clock(next.due) })}</p>`
        : html`<p class="muted">${say("noTimer")}</p>`}</p-card>`;
  }

  private faulty() {
    if (this.parts.length === 0) return nothing;
    return html`<p-card heading=${say("parts")}><a slot="actions" class="link small" href="#/doctor">${say("toDoctor")}</a>
      <ul data-test="parts">${this.parts.map((p) => html`<li><h3 class=${p.vital ? "bad" : "warn"}>${part(p.name)}</h3><p class="small">${told(p.note)}</p></li>`)}</ul></p-card>`;
  }

  private away() {
    if (this.refused.length === 0) return nothing;
    return html`<p-card heading=${say("refused")}><p class="small muted">${say("refusedText")}</p>
      <ul data-test="refused">${this.refused.map((r) => html`<li><h3><bdi>${r.device || say("unnamed")}</bdi></h3><p class="small"><bdi>${told(r.reason)}</bdi></p>
        <p class="small muted"><bdi>${r.address}</bdi> · ${say("tries", { n: r.count, ago: ago(r.at) })}</p></li>`)}</ul></p-card>`;
  }

  // another shows the address for one more robot, once its owner asks for it.
  private another() {
    return html`<details data-test="another" @toggle=${(e: ToggleEvent) => (this.pointing = e.newState === "open")}><summary>${say("pointHere")}</summary>
      ${this.pointing ? html`<p-card>${this.point()}</p-card>` : nothing}</details>`;
  }

  // point shows how a robot gets the address. Few need it, so it loads when it is first shown.
  private point() {
    void allWords().then(() => import("./home.point.js")).catch(() => undefined); // the connection is lost, which the shell tells
    return html`<p-point></p-point>`;
  }

  private empty() {
    return html`<p-empty heading=${say("none")} data-test="no-robot"><p>${say("noneText")}</p></p-empty>
      <div class="grid two"><p-card heading=${say("pointHere")}>${this.point()}</p-card>
        <p-card heading=${say("inPage")}><p class="words">${say("inPageText")}</p><a class="go" href="robot" data-test="robot-page">${say("inPageGo")}</a></p-card></div>`;
  }
}

// none returns an empty list if the server has no timers.
function none(e: unknown): Timer[] {
  if (e instanceof Refusal && e.status === 404) return [];
  throw e;
}

customElements.define("p-home", HomeView);
