// The view of the doctor: checks of the appliance, and remedies for faults.

import { css, html, nothing } from "lit";
import { get } from "../lib/api.js";
import { part, told } from "../lib/said.js";
import { View } from "../lib/view.js";
import { catalogue, clock } from "../lib/words.js";
import { list } from "./list.js";

const t = catalogue("doctor");

interface Item {
  name: string;
  ok: boolean;
  level?: string;
  note?: string;
}

const levels = ["problem", "warning", "ok"] as const;
type Level = (typeof levels)[number];

export class DoctorView extends View {
  static properties = { items: { state: true }, busy: { state: true } };
  declare private items: Item[];
  declare private busy: boolean;
  private at = new Date();

  static styles = [View.styles, list, css`
    .item { display: grid; grid-template-columns: 7rem minmax(0, 1fr); gap: 0.3rem 1rem; padding: 0.8rem 0; border-bottom: 1px solid var(--line); }
    .item:last-child { border-bottom: 0; padding-bottom: 0; } .item:first-child { padding-top: 0; }
    .total { font-size: 1.1rem; font-weight: 600; }
    @media (max-width: 40rem) { .item { grid-template-columns: minmax(0, 1fr); } }
  `];

  constructor() {
    super();
    this.items = [];
    this.busy = false;
  }

  protected title_(): string {
    return t("title");
  }

  protected actions(): unknown {
    return html`<p-button ?busy=${this.busy} @click=${this.again} id="again">${t("again")}</p-button>`;
  }

  protected async load(): Promise<void> {
    this.busy = true;
    try {
      this.items = (await get<{ items: Item[] | null }>("api/v1/doctor")).items ?? [];
      this.at = new Date();
    } finally {
      this.busy = false;
    }
  }

  private async again(): Promise<void> {
    await this.act(() => this.load());
  }

  protected content(): unknown {
    const of = (...some: Level[]) => this.items.filter((i) => some.includes(level(i)));
    const needs = [...of("problem"), ...of("warning")];
    return html`<div class="stack">
      <p class="lead">${t("about")}</p>
      ${this.items.length === 0
        ? html`<p-empty heading=${t("none")}>${t("noneHint")}</p-empty>`
        : html`<div role="status"><p class="total">${summary(of("problem").length, of("warning").length)}</p><p class="meta">${t("at", { time: clock(this.at) })}</p></div>
          ${needs.length > 0 ? html`<p-card heading=${t("needs")}><ul id="needs">${needs.map((i) => this.item(i))}</ul></p-card>` : nothing}
          ${of("ok").length > 0 ? html`<p-card heading=${t("works")}><ul id="works">${of("ok").map((i) => this.item(i))}</ul></p-card>` : nothing}`}
    </div>`;
  }

  private item(i: Item): unknown {
    const l = level(i);
    return html`<li class="item" data-test="item" data-level=${l}>
      <div><span class="tag ${l === "problem" ? "bad" : l === "warning" ? "warn" : "ok"}">${t(l)}</span></div>
      <div><h3>${part(i.name)}</h3>
        ${i.note ? html`<p>${told(i.note)}</p>` : nothing}
      </div></li>`;
  }
}

function level(i: Item): Level {
  return levels.find((l) => l === i.level) ?? (i.ok ? "ok" : "problem");
}

function summary(problems: number, warnings: number): string {
  const p = t("problems", { n: problems });
  const w = t("warnings", { n: warnings });
  if (problems > 0 && warnings > 0) return t("and", { problems: p, warnings: w });
  return problems > 0 ? p : warnings > 0 ? w : t("allWell");
}

customElements.define("p-doctor", DoctorView);
