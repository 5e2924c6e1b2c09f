// The home view: first what wants a person, then the robots.

import { css, html, nothing, type TemplateResult } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { Refusal, get, send } from "../lib/api.js";
import { board, type Record_ } from "../lib/board.js";
import { brand } from "../lib/brand.js";
import { isHere, nameIn, nameOf, type Device } from "../lib/robots.js";
import { part, told } from "../lib/said.js";
import { keep, kept } from "../lib/store.js";
import { wants, type Notice, type Question } from "../lib/wants.js";
import { View, type Wish } from "../lib/view.js";
import { ago, allWords, catalogue, clock, locale } from "../lib/words.js";
import "./home.card.js";
import "./home.countdown.js";
import { refuse, refused } from "./home.waiting.js";
import { toneOf } from "./home.words.js";
import { isUnfinished } from "./first.place.js";
import { webLink } from "./link.js";

const say = catalogue("home");

interface Part { name: string; ok: boolean; vital: boolean; note?: string }
interface Timer { id: string; robot?: string; name?: string; text: string; due: string; reminder?: boolean; days?: string }
interface Refused { at: string; address: string; device: string; code: string; reason: string; count: number }

const later = "perch.first.later";
const mostCards = 8; // more robots are shown small, with a search

export class HomeView extends View {
  static properties = { busy: { state: true }, pointing: { state: true }, find: { state: true } };
  declare busy: string; // name of the action in progress, or ""
  declare pointing: boolean; // whether the address for one more robot is shown
  declare find: string; // what the names of the robots are searched for
  private last = new Map<string, Record_>();
  private timers: Timer[] = [];
  private refused: Refused[] = [];
  private parts: Part[] = [];
  private unheard: string[] = [];
  private readonly draw = () => this.requestUpdate();

  static styles = [View.styles, css`
    section + section { margin-top: var(--s6); }
    .head { display: flex; flex-wrap: wrap; gap: var(--s1) var(--s4); align-items: baseline; margin-bottom: var(--s3); } .head h2 { font-size: var(--t-head); }
    .head input { width: 16rem; margin-inline-start: auto; }
    .wants { columns: 2 22rem; column-gap: var(--gap); } .wants > * { break-inside: avoid; margin-bottom: var(--gap); }
    .robots { grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); }
    .robots.many { grid-template-columns: repeat(auto-fill, minmax(min(100%, 13rem), 1fr)); gap: var(--s3); }
    .words { font-size: var(--t-lead); margin-bottom: var(--s2); white-space: pre-wrap; }
    .answers { justify-content: flex-end; margin-top: var(--s1); }
    li + li { border-top: 1px solid var(--line); margin-top: var(--s3); padding-top: var(--s3); }
    .first, .calm { border-radius: var(--wide); padding: var(--s5); display: flex; flex-wrap: wrap; gap: var(--s4); align-items: center; }
    .first { background: var(--soft); justify-content: space-between; margin-bottom: var(--s5); }
    .calm { background: var(--surface); box-shadow: var(--shadow); } .calm h2 { font-size: var(--t-head); } .calm .small { margin-inline-start: auto; }
    details { margin-top: var(--s4); }
    .link { display: inline-flex; min-height: var(--target); align-items: center; }
    .go { display: inline-flex; min-height: var(--target); align-items: center; padding: 0.35rem var(--s4); border-radius: var(--round); background: var(--accent); color: var(--on-accent); font-weight: 600; text-decoration: none; }
    .two { grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); margin-top: var(--s4); }
    @media (max-width: 599px) { .head input { width: 100%; } }
  `];

  constructor() {
    super();
    this.busy = this.find = "";
    this.pointing = false;
    this.reloadOn(
      ["robot_seen", "robot_adopted", "robot_renamed", "robot_forgotten", "robot_online", "robot_offline", "robot_connected", "robot_disconnected",
        "notification", "notification_changed", "asked", "answered", "timer_rang", "fault", "firmware_installed"],
      ["robot", "timers", "settings", "firmware", "refused"],
    );
  }

  connectedCallback(): void {
    super.connectedCallback();
    wants.addEventListener("change", this.draw);
    board.addEventListener("change", this.draw);
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    wants.removeEventListener("change", this.draw);
    board.removeEventListener("change", this.draw);
  }

  protected title_(): string {
    return say("title");
  }

  protected async load(): Promise<void> {
    const [, turns, timers, refused, status] = await Promise.all([
      wants.load(), get<Record_[]>("api/v1/turns?limit=200"), get<Timer[]>("api/v1/timers").catch(none), get<Refused[] | null>("api/v1/refused"),
      get<{ parts: Part[]; unheard?: string[] }>("api/v1/status"),
    ]);
    wants.devices.forEach((d) => board.learn(d.id, d));
    this.last = new Map();
    for (const t of turns) if (!this.last.has(t.robot)) this.last.set(t.robot, t);
    this.timers = timers.filter((t) => !t.days).sort((a, b) => Date.parse(a.due) - Date.parse(b.due));
    this.refused = refused ?? [];
    this.parts = status.parts.filter((p) => !p.ok);
    this.unheard = status.unheard ?? [];
  }

  private named(robot: string | undefined): string {
    return robot ? nameIn(wants.devices, robot) : say("forAll");
  }

  // do runs an action unless another one is in progress, and then loads everything again.
  private async do(name: string, work: () => Promise<unknown>, done: string): Promise<void> {
    if (this.busy !== "") return;
    this.busy = name;
    await this.act(work, done);
    this.busy = "";
    this.reload();
  }

  // dealt hides something at once and does the work when it cannot be undone any more.
  private dealt<T extends { id: string }>(list: T[], text: string, work: (one: T) => Promise<unknown>): void {
    const ids = list.map((one) => one.id);
    wants.hide(ids);
    const show = () => wants.hide(ids, false);
    this.undoable(text, () => Promise.all(list.map(work)).then(() => wants.load().catch(() => undefined)).then(show), show);
  }

  protected content() {
    const adopted = wants.devices.filter((d) => d.adopted && isHere(d));
    const empty = adopted.length === 0 && wants.waiting.length === 0;
    return html`${isUnfinished(wants.devices) ? this.offer() : nothing}
      ${this.forYou(empty)}
      ${adopted.length > 0 ? this.robots(adopted) : empty ? html`<section>${this.empty()}</section>` : nothing}
      ${this.away()}`;
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

  // forYou shows what wants a person, the most urgent first.
  private forYou(empty: boolean) {
    const urgent = wants.notices.some((n) => n.urgency === "high");
    const cards = [...this.asked(), urgent ? this.told(true) : nothing, this.waiting(), this.deaf(), this.faulty(), urgent ? nothing : this.told(false), this.timer()].filter((c) => c !== nothing);
    if (cards.length === 0) {
      return empty ? nothing : html`<section class="calm" data-test="calm">${brand(56, "happy")}<div><h2>${say("calm")}</h2><p class="muted">${say("calmText")}</p></div></section>`;
    }
    return html`<section aria-labelledby="wants"><div class="head"><h2 id="wants">${say("forYou")}</h2></div>
      <div class="wants" role="group" aria-labelledby="wants" @wish=${(e: CustomEvent<Wish>) => void this.do("adopt", e.detail.work, e.detail.done())}>${cards}</div></section>`;
  }

  private asked(): TemplateResult[] {
    return wants.questions.map((q) => html`<p-card class="enter" tone="accent" data-test="question">
        <p class="small muted"><bdi>${q.robot ? say("asks", { name: this.named(q.robot) }) : say("question")}</bdi></p><p class="words"><bdi>${q.text}</bdi></p>
        <div class="row"><p-button kind="main" data-test="allow" ?disabled=${this.busy !== ""} @click=${() => this.answer(q, true)}>${say("yes")}</p-button>
          <p-button data-test="deny" ?disabled=${this.busy !== ""} @click=${() => this.answer(q, false)}>${say("no")}</p-button>
          <span class="small muted"><p-countdown due=${q.until}></p-countdown></span></div></p-card>`);
  }

  private answer(q: Question, allow: boolean): void {
    void this.do(q.id, () => send("POST", `api/v1/permissions/${encodeURIComponent(q.id)}`, { allow }), say("answered"));
  }

  private waiting() {
    const list = wants.waiting;
    if (list.length === 0) return nothing;
    const plain = list.filter((d) => !d.claimed && !d.claimants?.length);
    const all = () => this.do("adopt", () => Promise.all(plain.map((d) => send("POST", "api/v1/adopt", { robot: d.id }))), say("adoptedAll", { n: plain.length }));
    return html`<p-card class="enter" tone="accent" heading=${say("newRobots", { n: list.length })}>
      ${plain.length > 1 ? html`<div slot="actions" class="row"><p-button kind="quiet" data-test="refuse-all" @click=${() => this.refuse(plain)}>${say("refuseAll")}</p-button>
        <p-button kind="main" data-test="adopt-all" ?busy=${this.busy === "adopt"} @click=${all}>${say("adoptAll")}</p-button></div>` : nothing}
      <ul>${repeat(list, (d) => d.id, (d) => html`<li><p-waiting .device=${d} ?busy=${this.busy === "adopt"} @refuse=${() => this.refuse([d])}></p-waiting></li>`)}</ul></p-card>`;
  }

  private refuse(list: Device[]): void {
    this.dealt(list, list.length === 1 ? refused(list[0]!) : say("refusedAll", { n: list.length }), refuse);
  }

  private told(urgent: boolean) {
    const list = [...wants.notices].sort((a, b) => Number(b.urgency === "high") - Number(a.urgency === "high"));
    if (list.length === 0) return nothing;
    return html`<p-card class="enter" heading=${say("notices")} tone=${urgent ? "bad" : nothing}>
      ${list.length > 1 ? html`<p-button slot="actions" kind="quiet" data-test="ack-all" @click=${() => this.ack(list)}>${say("ackAll")}</p-button>` : nothing}
      <ul>${repeat(list.slice(0, 5), (n) => n.id, (n) => this.notice(n))}</ul>
      <a class="link small" href="#/notifications">${say("allNotices")}</a></p-card>`;
  }

  private ack(list: Notice[]): void {
    this.dealt(list, say("acked", { n: list.length }), (n) => send("POST", `api/v1/notifications/${encodeURIComponent(n.id)}/ack`));
  }

  private notice(n: Notice) {
    const link = webLink(n.action_url);
    return html`<li data-test="notice"><p class="words"><bdi>${n.text}</bdi></p>
      <p class="small muted">${n.urgency === "high" ? html`<span class="tag bad">${say("urgent")}</span> ` : nothing}<bdi>${this.named(n.robot)}</bdi> · ${ago(n.received)}</p>
      <div class="row small answers">${link ? html`<a href=${link} target="_blank" rel="noopener noreferrer" class="link">${say("open")}</a>` : nothing}
        <p-button data-test="ack" @click=${() => this.ack([n])}>${say("ack")}</p-button></div></li>`;
  }

  private timer() {
    const next = this.timers[0];
    if (!next) return nothing;
    return html`<p-card heading=${say("timer")}><a slot="actions" class="link small" href="#/timers">${say("allTimers")}</a>
      <p class="figure"><p-countdown due=${next.due} data-test="countdown"></p-countdown></p><p class="words"><bdi>${next.text}</bdi></p>
      <p class="small muted"><bdi>${next.name || this.named(next.robot)}</bdi> · ${say("rings", { at: clock(next.due) })}</p></p-card>`;
  }

  // deaf says why robots do not understand what the household speaks, and what to do about it.
  private deaf() {
    if (this.unheard.length === 0) return nothing;
    const languages = new Intl.ListFormat(locale()).format(this.unheard.map((l) => new Intl.DisplayNames(locale(), { type: "language" }).of(l) ?? l));
    return html`<p-card heading=${say("deaf", { languages })} tone="warn" data-test="deaf"><p class="small">${say("deafText", { languages })}</p>
      <p><a class="go" href="#/engines">${say("deafGo")}</a></p></p-card>`;
  }

  private faulty() {
    if (this.parts.length === 0) return nothing;
    return html`<p-card heading=${say("parts")} tone=${this.parts.some((p) => p.vital) ? "bad" : "warn"}><a slot="actions" class="link small" href="#/doctor">${say("toDoctor")}</a>
      <ul data-test="parts">${this.parts.map((p) => html`<li><h3 class=${p.vital ? "bad" : "warn"}>${part(p.name)}</h3><p class="small">${told(p.note)}</p></li>`)}</ul></p-card>`;
  }

  // robots shows those who are busy first, and many of them small.
  private robots(adopted: Device[]) {
    const many = adopted.length > mostCards;
    const sought = this.find.trim().toLocaleLowerCase(locale());
    const live = (d: Device) => toneOf(board.now(d.id)?.state ?? d.state) !== "";
    const shown = (sought === "" ? adopted : adopted.filter((d) => nameOf(d).toLocaleLowerCase(locale()).includes(sought)));
    const sorted = many ? [...shown].sort((a, b) => Number(live(b)) - Number(live(a))) : shown;
    const busy = adopted.filter(live).map(nameOf);
    return html`<section aria-labelledby="robots"><div class="head"><h2 id="robots">${say("robots")}</h2>
        <p class="small muted" data-test="house">${busy.length === 0 ? say("quiet") : say("busy", { names: new Intl.ListFormat(locale()).format(busy.slice(0, 3)), n: busy.length })}</p>
        ${many ? html`<input type="search" data-test="find" placeholder=${say("find", { n: adopted.length })} aria-label=${say("find", { n: adopted.length })}
          .value=${this.find} @input=${(e: Event) => (this.find = (e.target as HTMLInputElement).value)}>` : nothing}</div>
      <div class=${many ? "grid robots many" : "grid robots"}>${repeat(sorted, (d) => d.id, (d) => html`<p-robot-card .device=${d} .last=${this.last.get(d.id)} ?small=${many}></p-robot-card>`)}</div>
      ${sorted.length === 0 ? html`<p class="muted" role="status">${say("foundNone")}</p>` : nothing}
      ${this.another()}</section>`;
  }

  private away() {
    if (this.refused.length === 0) return nothing;
    const list = this.refused;
    const forget = () => {
      this.refused = [];
      this.undoable(say("refusedForgotten"), () => send("DELETE", "api/v1/refused"), () => {
        this.refused = list;
        this.requestUpdate();
      });
    };
    return html`<section><p-card heading=${say("refused")}><p-button slot="actions" kind="quiet" data-test="forget-refused" @click=${forget}>${say("forgetThese")}</p-button>
      <p class="small muted">${say("refusedText")}</p>
      <ul data-test="refused">${list.map((r) => html`<li><h3><bdi>${r.device || say("unnamed")}</bdi></h3><p class="small"><bdi>${told(r.reason)}</bdi></p>
        <p class="small muted"><bdi>${r.address}</bdi> · ${say("tries", { n: r.count, ago: ago(r.at) })}</p></li>`)}</ul></p-card></section>`;
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
    return html`<p-empty heading=${say("none")} look="curious" data-test="no-robot"><p>${say("noneText")}</p></p-empty>
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
