// <p-models>: the models of the perch-speech on the appliance's machine.

import { css, html, nothing } from "lit";
import { get, send } from "../lib/api.js";
import { english, told, type Said } from "../lib/said.js";
import { ask, base } from "../lib/ui.js";
import { Spoken, sentence } from "../lib/view.js";
import { catalogue, languageName } from "../lib/words.js";
import { list } from "./list.js";
import { size } from "./size.js";

const t = catalogue("engines");

const again = 1000; // ms between two requests during a download

const jobs = ["hears", "speaks", "detects", "judges"] as const;

interface Model {
  name: string;
  does: string;
  language?: string; // none for any
  bytes?: number; // none if unknown
  licence?: string;
  source?: string; // a page or a folder
  installed: boolean;
  getting?: boolean;
  progress?: number; // bytes that have come of a model that is not installed
  error?: string; // of the latest download
}

export class Models extends Spoken {
  static properties = { models: { state: true }, missing: { state: true }, refused: { state: true } };
  declare private models: Model[] | undefined;
  declare private missing: string; // why there is no perch-speech, in English
  declare private refused: Said;
  private timer: ReturnType<typeof setTimeout> | undefined;

  static styles = [base, list, css`.items { margin-top: var(--s3); } .items > li > .trouble { flex: 1 1 100%; } p-bar { margin-block: var(--s2); }`];

  constructor() {
    super();
    this.missing = this.refused = "";
  }

  connectedCallback(): void {
    super.connectedCallback();
    void this.load();
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.timer);
  }

  private async load(): Promise<void> {
    clearTimeout(this.timer);
    try {
      const now = await get<{ models: Model[]; missing?: string }>("api/v1/speech/models");
      this.models = now.models;
      this.missing = now.missing ?? "";
    } catch (e) {
      this.refused = sentence(e);
    }
    if (this.isConnected && this.models?.some((m) => m.getting)) this.timer = setTimeout(() => void this.load(), again);
  }

  private async change(method: "POST" | "DELETE", m: Model): Promise<void> {
    this.refused = "";
    try {
      await send(method, `api/v1/speech/models/${encodeURIComponent(m.name)}`);
    } catch (e) {
      this.refused = sentence(e);
    }
    await this.load();
  }

  private async takeOut(m: Model): Promise<void> {
    const name = m.name;
    if (await ask({ heading: t("removeOf", { name }), text: t("modelRemove"), yes: t("remove"), no: t("cancel"), danger: true })) await this.change("DELETE", m);
  }

  render() {
    if (!this.models && !this.refused) return nothing;
    return html`<p-card heading=${t("models")}>
      ${this.missing ? html`<p class="muted">${t("modelsMissing")}</p><p class="small muted" data-test="missing">${english(this.missing)}</p>` : html`<p class="muted small">${t("modelsAbout")}</p>`}
      ${this.refused ? html`<p class="trouble" role="alert">${this.refused}</p>` : nothing}
      ${this.models?.length ? html`<ul class="items">${this.models.map((m) => this.model(m))}</ul>` : nothing}
    </p-card>`;
  }

  private model(m: Model): unknown {
    const job = jobs.find((j) => j === m.does);
    const licence = english(m.licence || m.source);
    const done = t("modelProgress", { done: size(m.progress ?? 0), size: size(m.bytes ?? 0) });
    return html`<li data-test="model" data-name=${m.name}><div class="what"><p class="row"><b><bdi>${m.name}</bdi></b>${m.installed ? html`<span class="tag ok">${t("modelThere")}</span>` : nothing}</p>
        <p class="small">${job ? t(`model_${job}`) : english(m.does)}</p>
        <p class="meta"><span>${m.language ? languageName(m.language) : t("modelAny")}</span>${m.bytes ? html`<span>${size(m.bytes)}</span>` : nothing}
          ${m.source?.startsWith("https://") ? html`<a href=${m.source} target="_blank" rel="noopener noreferrer">${licence}</a>` : html`<bdi>${licence}</bdi>`}</p>
        ${m.getting ? html`<p-bar label=${`${m.name}: ${done}`} .value=${(m.progress ?? 0) / (m.bytes || 1)}></p-bar><p class="small muted">${done}</p>` : nothing}</div>
      <div class="row">${m.getting
        ? html`<p-button label=${`${t("modelStop")}: ${m.name}`} @click=${() => this.change("DELETE", m)} data-test="stop">${t("modelStop")}</p-button>`
        : m.installed
          ? html`<p-button kind="quiet" label=${t("removeOf", { name: m.name })} @click=${() => this.takeOut(m)} data-test="remove">${t("remove")}</p-button>`
          : html`<p-button label=${`${t("modelGet")}: ${m.name}`} @click=${() => this.change("POST", m)} data-test="get">${t("modelGet")}</p-button>`}</div>
      ${m.error ? html`<p class="trouble" role="alert">${told(m.error)}</p>` : nothing}</li>`;
  }
}

customElements.define("p-models", Models);
