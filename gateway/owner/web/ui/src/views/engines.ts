// The view of the engines: a card for each job. Engines are added, tried, changed, put in order and removed where they are
// shown.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { get, send } from "../lib/api.js";
import { explained, type Explained } from "../lib/explained.js";
import { english, told } from "../lib/said.js";
import { View } from "../lib/view.js";
import { catalogue, clock, language, locale, type Language } from "../lib/words.js";
import "./engines.form.js";
import "./engines.found.js";
import "./engines.models.js";
import type { Use } from "./engines.found.js";
import "./engines.try.js";
import { jobs, place, type Engine, type Job, type Kinds, type Preset } from "./engines.types.js";
import { list } from "./list.js";
import type { Key } from "./settings.types.js";

const t = catalogue("engines");

// Open is the form that is open: for an engine to try or to change, or for a new one of a job.
type Open = { what: "try" | "change"; key: string } | { what: "add"; job: Job; preset: Preset | undefined };

// Drag is an engine that is being dragged to another place in its list.
interface Drag {
  job: Job;
  from: number;
  to: number;
  y: number; // where it began
  by: number; // px from there
}

export class EnginesView extends View {
  static properties = { engines: { state: true }, open: { state: true }, removed: { state: true }, drag: { state: true }, keys: { state: true }, kinds: { state: true }, texts: { state: true } };
  declare private engines: Engine[];
  declare private open: Open | undefined;
  declare private removed: string; // key of the engine that is not shown, since it is about to be removed
  declare private drag: Drag | undefined;
  declare private keys: readonly Key[] | undefined; // of the configuration; undefined if this visitor may not see it
  declare private kinds: Kinds;
  declare private texts: Explained;
  private textsOf: Language = "en";
  private stale = true; // whether keys has to be loaded

  static styles = [View.styles, list, css`
    .items > li { position: relative; gap: var(--s2) var(--s3); } .items .what { flex-basis: 12rem; }
    .rank { display: grid; place-items: center; width: var(--s6); height: var(--s6); border-radius: 50%; background: var(--fill); font-weight: 650; flex: none; }
    .first .rank { background: var(--soft); color: var(--accent); }
    .grip { cursor: grab; touch-action: none; padding: var(--s2) var(--s1); color: var(--muted); flex: none; user-select: none; }
    .dragged { z-index: 2; background: var(--surface); box-shadow: var(--float); border-radius: var(--round); } .dragged .grip { cursor: grabbing; }
    .before::before, .after::after { content: ""; position: absolute; inset-inline: 0; height: 3px; border-radius: 3px; background: var(--accent); }
    .before::before { top: -2px; } .after::after { bottom: -2px; }
    .order { display: flex; align-items: center; gap: var(--s1); }
    .do { margin-inline-start: auto; }
    .own { margin-bottom: var(--s3); }
  `];

  constructor() {
    super();
    this.engines = [];
    this.removed = "";
    this.kinds = {};
    this.texts = {};
    this.reloadOn(["fault", "turn_ended"], ["engines", "settings", "voices"]);
  }

  connectedCallback(): void {
    super.connectedCallback();
    this.follow(["changed"], () => (this.stale = true));
  }

  protected willUpdate(): void {
    const l = language();
    if (l === this.textsOf) return;
    this.textsOf = l;
    explained(l).then((texts) => l === this.textsOf && (this.texts = texts), () => (this.texts = {})); // else in English
  }

  protected title_(): string {
    return t("title");
  }

  protected async load(): Promise<void> {
    const [engines, kinds] = await Promise.all([get<Engine[] | null>("api/v1/engines"), Object.keys(this.kinds).length > 0 ? this.kinds : get<Kinds>("api/v1/engines/kinds")]);
    if (this.stale) {
      this.stale = false;
      this.keys = await get<{ keys: Key[] }>("api/v1/config").then((c) => c.keys, () => undefined); // a visitor of this machine sees the engines only
    }
    const open = this.open && "key" in this.open ? this.open.key : "";
    const [before, after] = [this.engines, engines ?? []].map((all) => all.find((e) => e.key === open));
    if (before && (after?.kind !== before.kind || after.where !== before.where)) this.open = undefined; // the list was changed
    this.engines = engines ?? [];
    this.kinds = kinds;
  }

  // shown returns the engines of a job that are not about to be removed.
  private shown(job: Job): Engine[] {
    return this.engines.filter((e) => e.list === job && e.key !== this.removed);
  }

  // entries returns references to engines of the present list, for the server.
  private entries(engines: readonly Engine[]): unknown[] {
    return engines.map((e) => ({ from: place(e), kind: e.kind, of: this.engines.filter((one) => one.list === e.list).length }));
  }

  private listOf(job: Job): Key | undefined {
    const key = jobs.find(([j]) => j === job)![1];
    return this.keys?.find((k) => k.key === key);
  }

  protected content(): unknown {
    return html`<div class="stack" @spoken=${() => this.requestUpdate()}><p class="lead">${t("about")}</p>
      <p-found .engines=${this.engines} ?fixed=${!this.keys} @use=${(e: CustomEvent<Use>) => this.add(e.detail.job, e.detail.preset)}></p-found>
      ${jobs.map(([job, key]) => this.card(job, key))}<p-models></p-models></div>`;
  }

  private card(job: Job, key: string): unknown {
    const some = this.shown(job);
    const k = this.listOf(job);
    const mayChange = k !== undefined && !k.by;
    const adding = this.open?.what === "add" && this.open.job === job ? this.open : undefined;
    return html`<p-card heading=${t(job)} id=${`card-${job}`}>
      ${mayChange && !adding ? html`<p-button slot="actions" @click=${() => this.add(job, undefined)} label=${`${t("add")}: ${t(job)}`} data-test="add">${t("add")}</p-button>` : nothing}
      <div class="own stack">
        <p class="muted small">${t(`what_${job}` as "what_recognizer")}</p>
        ${k?.by ? html`<p class="well small">${t("setBy", { by: k.by })}</p>` : nothing}
        ${k?.in_file ? html`<div class="well row"><p class="small grow">${t("beforeFile")}</p>
          <p-button @click=${() => this.giveBack(key)} data-test="give-back">${t("giveBack")}</p-button></div>` : nothing}
        ${adding ? html`<p-engine-form list=${key} .kinds=${this.kinds[key] ?? []} .preset=${adding.preset} .others=${this.entries(some)}
          @done=${() => this.added(key)} @cancel=${() => this.close("add")}></p-engine-form>` : nothing}
      </div>
      <ul class="items" id=${job}>${repeat(some, (e) => e.key, (e, i) => this.engine(e, i, some, mayChange))}</ul>
      ${some.length === 0 ? html`<p class="muted">${t("nobody")}</p>` : nothing}
    </p-card>`;
  }

  private engine(e: Engine, i: number, all: readonly Engine[], mayChange: boolean): unknown {
    const job = e.list as Job;
    const sort = job === "synthesizer" || job === "recognizer" ? job : "brain";
    const kinds = this.kinds[jobs.find(([j]) => j === job)![1]] ?? [];
    const k = kinds.find((one) => one.kind === e.kind);
    const open = this.open && "key" in this.open && this.open.key === e.key ? this.open.what : "";
    const d = this.drag?.job === job ? this.drag : undefined;
    const dragged = d?.from === i;
    const mark = d && !dragged && d.to === i ? (d.to < d.from ? "before" : "after") : "";
    const name = `${e.kind} (${i + 1})`;
    const note = e.note === e.where ? "" : e.note;
    return html`<li data-test="engine" data-part=${e.part} data-kind=${e.kind} class="${i === 0 ? "first" : ""} ${dragged ? "dragged" : ""} ${mark}" .style=${dragged ? `translate: 0 ${d.by}px` : ""}>
      ${all.length === 1 ? nothing : html`<div class="order">${!mayChange ? nothing : html`<span class="grip" aria-hidden="true" data-test="grip" @pointerdown=${(p: PointerEvent) => this.grip(p, job, i)}
          @pointermove=${this.pull} @pointerup=${this.drop} @pointercancel=${() => (this.drag = undefined)}>⠿</span>`}
        <span class="rank" title=${t(i === 0 ? "first" : "fallback")}>${i + 1}</span>
        ${!mayChange ? nothing : html`<p-button kind="quiet" label=${t("earlier", { name })} ?disabled=${i === 0} @click=${() => this.step(job, i, i - 1)} data-test="earlier">↑</p-button>
          <p-button kind="quiet" label=${t("later", { name })} ?disabled=${i === all.length - 1} @click=${() => this.step(job, i, i + 1)} data-test="later">↓</p-button>`}</div>`}
      <div class="what"><p class="row"><strong>${e.kind}</strong><span class="tag ${e.ok ? "ok" : "bad"}">${t(e.ok ? "works" : "broken")}</span>
          ${e.cost ? html`<span class="tag">${t(e.cost)}</span>` : nothing}</p>
        ${k ? html`<p class="small">${this.texts[k.about] ?? english(k.summary)}</p>` : nothing}
        ${note ? html`<p class="small ${e.ok ? "muted" : "bad"}">${told(note)}</p>` : nothing}
        <p class="meta">${e.where ? html`<bdi>${e.where}</bdi>` : nothing}
          ${!e.ok && e.since ? html`<time datetime=${e.since}>${t("since", { time: clock(e.since) })}</time>` : nothing}
          ${e.wait ? html`<span data-test="wait">${t("wait", { median: seconds(e.wait.median), p95: seconds(e.wait.p95), n: e.wait.uses })}</span>` : nothing}</p></div>
      <div class="row do">
        ${e.try ? html`<p-button label=${open === "try" ? t("close") : t("tryOf", { name })} @click=${() => this.toggle("try", e)} data-test="try">${t(open === "try" ? "close" : "tryIt")}</p-button>` : nothing}
        ${mayChange && k && k.options.some((o) => !o.sections) ? html`<p-button kind="quiet" label=${t("changeOf", { name })} @click=${() => this.toggle("change", e)} data-test="change">${t("change")}</p-button>` : nothing}
        ${mayChange && (all.length > 1 || job === "brain_deep") ? html`<p-button kind="quiet" label=${t("removeOf", { name })} @click=${() => this.takeOut(e, name)} data-test="remove">${t("remove")}</p-button>` : nothing}
      </div>
      ${open === "try" ? html`<p-try .engine=${e.part} .kind=${sort} .sample=${e.sample ?? ""}></p-try>` : nothing}
      ${open === "change" ? html`<p-engine-form list=${e.key.slice(0, e.key.lastIndexOf("."))} at=${e.key} .kinds=${kinds} .preset=${{ kind: e.kind, values: {}, lists: { voice: e.voices ?? [] }, fixed: true }} .keys=${(this.keys ?? []).filter((one) => one.key.startsWith(`${e.key}.`))}
        @done=${() => this.changed()} @cancel=${() => this.close("change")}></p-engine-form>` : nothing}
    </li>`;
  }

  private async toggle(what: "try" | "change", e: Engine): Promise<void> {
    const open = this.open && "key" in this.open && this.open.key === e.key && this.open.what === what;
    const now = open ? undefined : await this.settled(e);
    this.open = now && { what, key: now.key };
  }

  // settled finishes the removal of an engine that can still be undone, and returns e with its new place, or undefined if the
  // list was changed otherwise.
  private async settled(e: Engine): Promise<Engine | undefined> {
    const [gone, before] = [this.engines.find((one) => one.key === this.removed), this.engines.length];
    if (!gone) return e;
    await this.settle();
    const key = e.key.slice(0, e.key.lastIndexOf("."));
    const shift = this.engines.length < before && gone.list === e.list && place(gone) < place(e) ? 1 : 0;
    return this.engines.find((one) => one.key === `${key}.${place(e) - shift}` && one.kind === e.kind && one.where === e.where);
  }

  // ---- changes

  private add(job: Job, preset: Preset | undefined): void {
    this.open = { what: "add", job, preset };
    void this.updateComplete.then(() => {
      const form = this.renderRoot.querySelector<HTMLElement>(`#card-${job} p-engine-form`);
      form?.scrollIntoView({ block: "nearest" });
      setTimeout(() => form?.shadowRoot?.querySelector<HTMLElement>("input, select")?.focus()); // after the form is rendered
    });
  }

  private close(what: Open["what"]): void {
    if (this.open?.what === what) this.open = undefined;
  }

  private async refresh(): Promise<void> {
    this.stale = true;
    await this.load();
  }

  private async added(key: string): Promise<void> {
    this.removed = ""; // the new list is without it
    await this.act(() => this.refresh(), t("added"));
    this.open = { what: "try", key: `${key}.0` };
  }

  private async changed(): Promise<void> {
    this.open = undefined;
    await this.act(() => this.refresh(), t("saved"));
  }

  private async giveBack(key: string): Promise<void> {
    this.open = undefined;
    this.removed = "";
    await this.act(async () => {
      await send("DELETE", `api/v1/config/${key}`);
      await this.refresh();
    }, t("gaveBack"));
  }

  // arrange makes engines the list of a job.
  private arrange(job: Job, engines: readonly Engine[]): Promise<unknown> {
    this.removed = "";
    return send("PUT", `api/v1/config/${jobs.find(([j]) => j === job)![1]}`, this.entries(engines));
  }

  private async move(job: Job, from: number, to: number): Promise<void> {
    const order = this.shown(job);
    const [one] = order.splice(from, 1);
    if (!one) return;
    order.splice(to, 0, one);
    this.open = undefined;
    await this.act(async () => {
      await this.arrange(job, order);
      await this.refresh();
    }, t("moved", { name: one.kind, n: to + 1 }));
  }

  private async step(job: Job, from: number, to: number): Promise<void> {
    await this.move(job, from, to);
    await this.updateComplete;
    // The focus goes with the engine.
    const item = this.renderRoot.querySelectorAll(`#${job} > li`)[to];
    const button = item?.querySelector<HTMLElement>(to < from ? "[data-test=earlier]:not([disabled])" : "[data-test=later]:not([disabled])");
    (button ?? item?.querySelector<HTMLElement>("[data-test=earlier]:not([disabled]), [data-test=later]:not([disabled])"))?.focus();
  }

  private async takeOut(engine: Engine, name: string): Promise<void> {
    this.open = undefined;
    const e = await this.settled(engine);
    if (!e) return;
    const rest = this.shown(e.list as Job).filter((one) => one.key !== e.key);
    this.undoable(t("removed", { name }), async () => {
      if (this.removed !== e.key) return; // another change has removed it
      await this.arrange(e.list as Job, rest);
      await this.refresh();
    }, () => (this.removed = ""));
    this.removed = e.key;
  }

  // ---- dragging

  private grip(p: PointerEvent, job: Job, from: number): void {
    p.preventDefault();
    (p.target as HTMLElement).setPointerCapture(p.pointerId);
    this.drag = { job, from, to: from, y: p.clientY, by: 0 };
  }

  private pull(p: PointerEvent): void {
    const d = this.drag;
    if (!d) return;
    const rows = [...this.renderRoot.querySelectorAll<HTMLElement>(`#${d.job} > li`)].map((li) => li.getBoundingClientRect());
    const own = rows[d.from]!;
    const by = p.clientY - d.y;
    const middle = own.top - d.by + own.height / 2 + by; // its place without the present shift
    let to = d.from;
    rows.forEach((r, i) => {
      const center = r.top + r.height / 2;
      if (i < d.from && middle < center) to = Math.min(to, i);
      if (i > d.from && middle > center) to = Math.max(to, i);
    });
    this.drag = { ...d, by, to };
  }

  private drop(): void {
    const d = this.drag;
    this.drag = undefined;
    if (d && d.to !== d.from) void this.move(d.job, d.from, d.to);
  }
}

// seconds returns a time in ms for people: 40 ms, 1.3 s.
function seconds(ms: number): string {
  const [unit, n] = ms < 100 ? (["millisecond", ms] as const) : (["second", ms / 1000] as const);
  return new Intl.NumberFormat(locale(), { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: 1 }).format(n);
}

customElements.define("p-engines", EnginesView);
