// <p-found>: the servers that the appliance finds on the network. It dispatches "use" for one that is chosen for a job.

import { html, nothing } from "lit";
import { get } from "../lib/api.js";
import { type Said } from "../lib/said.js";
import { base } from "../lib/ui.js";
import { Spoken, sentence } from "../lib/view.js";
import { catalogue } from "../lib/words.js";
import type { Engine, Found, Job, Preset } from "./engines.types.js";
import { list } from "./list.js";

const t = catalogue("engines");

const fresh = 60_000; // ms; a search contacts all machines of the network, so that the view does not repeat it at once

let last: { found: Found; at: number } | undefined;

export type Use = { job: Job; preset: Preset };

interface Offer {
  name: string;
  url: string;
  uses: Use[];
}

export class FoundServers extends Spoken {
  static properties = { engines: { attribute: false }, fixed: { type: Boolean }, found: { state: true }, busy: { state: true }, refused: { state: true } };
  declare engines: readonly Engine[];
  declare fixed: boolean; // nothing can be added
  declare private found: Found | undefined;
  declare private busy: boolean;
  declare private refused: Said;

  static styles = [base, list];

  constructor() {
    super();
    this.engines = [];
    this.fixed = this.busy = false;
    this.refused = "";
  }

  connectedCallback(): void {
    super.connectedCallback();
    if (last && Date.now() - last.at < fresh) this.found = last.found;
    else void this.search();
  }

  private async search(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    this.refused = "";
    try {
      last = { found: await get<Found>("api/v1/found"), at: Date.now() };
      this.found = last.found;
    } catch (e) {
      this.refused = sentence(e);
    }
    this.busy = false;
  }

  private get offers(): Offer[] {
    const f = this.found;
    return [
      ...(f?.wyoming ?? []).map((s): Offer => ({ ...s, uses: (["recognizer", "synthesizer"] as const).filter((job) => s.hears === s.speaks || (job === "recognizer" ? s.hears : s.speaks)).map((job) => ({ job, preset: { kind: "wyoming", values: { url: s.url }, fixed: true } })) })),
      ...(f?.ollama ?? []).map((o): Offer => ({ name: "Ollama", url: o.url, uses: [{ job: "brain", preset: {
        kind: "openai", values: { url: `${o.url}/v1`, dialect: "ollama", ...(o.models?.[0] ? { model: o.models[0] } : {}) }, lists: { model: (o.models ?? []).map((name) => ({ name })) }, fixed: true,
      } }] })),
      ...(f?.homeassistant ?? []).map((s): Offer => ({ ...s, uses: (["recognizer", "brain", "synthesizer"] as const).map((job) => ({ job, preset: { kind: "assist", values: { url: s.url }, fixed: true } })) })),
    ];
  }

  // used reports whether a server does a job already.
  private used(url: string, job: Job): boolean {
    const host = URL.canParse(url) ? new URL(url).host : url;
    return this.engines.some((e) => e.list === job && (e.where ?? "").includes(host));
  }

  render() {
    const offers = this.offers;
    return html`<p-card heading=${t("found")}><p-button slot="actions" kind="quiet" ?busy=${this.busy} @click=${this.search} data-test="search">${t("search")}</p-button>
      <div role="status" aria-live="polite">${this.busy ? html`<p class="muted">${t("searching")}</p>` : this.found && offers.length === 0 ? html`<p class="muted">${t("nothingFound")}</p>` : nothing}</div>
      ${this.refused ? html`<p class="trouble" role="alert">${this.refused}</p>` : nothing}
      ${offers.length === 0 ? nothing : html`<ul class="items">${offers.map((o) => html`<li data-test="offer" data-url=${o.url}><div class="what"><p><b><bdi>${o.name}</bdi></b></p><p class="meta"><bdi>${o.url}</bdi></p></div>
        <div class="row">${o.uses.map((u) => this.used(o.url, u.job) ? html`<span class="tag ok">${t(`does_${u.job}` as "does_recognizer")}</span>`
          : this.fixed ? nothing
          : html`<p-button @click=${() => this.dispatchEvent(new CustomEvent<Use>("use", { detail: u }))} data-test=${`use-${u.job}`} label=${`${t(`use_${u.job}` as "use_recognizer")}: ${o.name}`}>${t(`use_${u.job}` as "use_recognizer")}</p-button>`)}</div></li>`)}</ul>`}
    </p-card>`;
  }
}

customElements.define("p-found", FoundServers);
