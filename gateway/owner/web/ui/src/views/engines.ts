// The view of the engines. Each shows its condition and can be tried.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { get } from "../lib/api.js";
import { told } from "../lib/said.js";
import { View } from "../lib/view.js";
import { catalogue, clock } from "../lib/words.js";
import "./engines.try.js";
import { list } from "./list.js";

const t = catalogue("engines");

interface Engine {
  part: string;
  list: string;
  kind: string;
  where?: string;
  ok: boolean;
  note?: string;
  since?: string;
  try?: string;
  sample?: string;
}

const lists = ["recognizer", "brain", "brain_deep", "synthesizer"] as const;

export class EnginesView extends View {
  static properties = { engines: { state: true }, open: { state: true } };
  declare private engines: Engine[];
  declare private open: string; // part of the engine whose form is shown

  static styles = [View.styles, list, css`.where { color: var(--muted); font-size: 0.875rem; }`];

  constructor() {
    super();
    this.engines = [];
    this.open = "";
    this.reloadOn(["fault", "turn_ended"], ["engines", "settings"]);
  }

  protected title_(): string {
    return t("title");
  }

  protected async load(): Promise<void> {
    this.engines = (await get<Engine[] | null>("api/v1/engines")) ?? [];
  }

  protected content(): unknown {
    if (this.engines.length === 0) {
      return html`<div class="stack"><p class="lead">${t("about")}</p><p-empty heading=${t("none")}>${t("noneHint")}</p-empty></div>`;
    }
    return html`<div class="stack" @spoken=${() => this.requestUpdate()}><p class="lead">${t("about")}</p>
      ${lists.map((l) => {
        const some = this.engines.filter((e) => e.list === l);
        return some.length === 0 ? nothing : html`<p-card heading=${t(l)}><ul class="items" id=${l}>
          ${repeat(some, (e) => e.part, (e, i) => this.engine(e, i === 0, some.length > 1))}</ul></p-card>`;
      })}</div>`;
  }

  private engine(e: Engine, first: boolean, several: boolean): unknown {
    const kind = e.list === "synthesizer" || e.list === "recognizer" ? e.list : "brain";
    const open = this.open === e.part;
    return html`<li data-test="engine" data-part=${e.part}>
      <div class="what"><p class="row"><strong>${e.kind}</strong><span class="tag ${e.ok ? "ok" : "bad"}">${t(e.ok ? "works" : "broken")}</span></p>
        ${e.note ? html`<p class="small">${told(e.note)}</p>` : nothing}
        <p class="meta">${e.where && e.where !== e.note ? html`<span>${e.where}</span>` : nothing}
          ${e.since ? html`<time datetime=${e.since}>${t("since", { time: clock(e.since) })}</time>` : nothing}
          ${several ? html`<span>${t(first ? "first" : "fallback")}</span>` : nothing}</p></div>
      ${e.try
        ? html`<p-button label=${open ? t("close") : t("tryOf", { name: e.kind })} @click=${() => (this.open = open ? "" : e.part)} data-test="try">${t(open ? "close" : "tryIt")}</p-button>`
        : nothing}
      ${open ? html`<p-try .engine=${e.part} .kind=${kind} .sample=${e.sample ?? ""}></p-try>` : nothing}
    </li>`;
  }
}

customElements.define("p-engines", EnginesView);
