// The view of the memory: entries can be searched, added, edited and deleted.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { get, send } from "../lib/api.js";
import { devices, nameIn, type Device } from "../lib/robots.js";
import { type Said } from "../lib/said.js";
import { View, sentence } from "../lib/view.js";
import { ago, catalogue, clock } from "../lib/words.js";
import { list } from "./list.js";
import "./diary.js";

const t = catalogue("memory");

interface Entry {
  id: string;
  key?: string;
  name?: string;
  description?: string;
  type: string;
  body: string;
  tags?: string[] | null;
  robot?: string;
  source?: string;
  created: string;
  expires?: string;
  score?: number; // relevance for the search; set only in the results of a search
}

interface Edit {
  id: string;
  was: string; // the text when the edit began
  text: string;
}

const debounce = 200; // ms from the last key to the search
const atOnce = 100; // entries that are shown at first; the memory has up to 2000

const mostTags = 100; // maximum number of tags in the filter

const kinds = ["user", "feedback", "project", "reference"] as const;

export class MemoryView extends View {
  static properties = { entries: { state: true }, forgotten: { state: true }, fault: { state: true }, edit: { state: true }, shown: { state: true }, busy: { state: true } };
  declare private entries: Entry[];
  declare private forgotten: string[]; // IDs of entries that are not shown any more
  declare private fault: Said; // what is wrong with the text of a new entry
  declare private edit: Edit | undefined;
  declare private shown: number;
  declare private busy: boolean;
  private robots: Device[] = [];
  private query = "";
  private kind = ""; // filter: one of kinds, or "" for all
  private tag = "";
  private timer_: ReturnType<typeof setTimeout> | undefined;

  static styles = [View.styles, list, css`
    .editor { flex: 1 1 100%; display: grid; gap: 0.6rem; }
    .add { display: flex; flex-wrap: wrap; gap: 0.6rem; align-items: end; }
    .add p-field { flex: 1 1 16rem; } .add p-field.narrow { flex: 1 1 8rem; }
  `];

  constructor() {
    super();
    this.entries = [];
    this.forgotten = [];
    this.fault = "";
    this.shown = atOnce;
    this.busy = false;
    this.reloadOn([], ["memory"]);
  }

  protected title_(): string {
    return t("title");
  }

  protected async load(): Promise<void> {
    const asked = this.query;
    const [entries, robots] = await Promise.all([
      get<Entry[] | null>(`api/v1/memory?q=${encodeURIComponent(asked)}`),
      devices(),
    ]);
    if (asked !== this.query) return this.load(); // the query has changed during the request
    this.robots = robots;
    const found = entries ?? [];
    this.entries = found.some((e) => e.score !== undefined) ? found : found.reverse(); // the best match or the newest first
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.timer_);
  }

  // chosen returns the entries that match the filters, without those that have just been forgotten.
  private chosen(): Entry[] {
    return this.entries.filter((e) => !this.forgotten.includes(e.id) && (this.kind === "" || e.type === this.kind) && (this.tag === "" || e.tags?.includes(this.tag)));
  }

  private choose(kind: string, tag: string): void {
    [this.kind, this.tag, this.shown] = [kind, tag, atOnce];
    this.requestUpdate();
  }

  // filters renders the filters by type and, if there are tags, by tag.
  private filters(): unknown {
    const tags = [...new Set(this.entries.flatMap((e) => e.tags ?? []))].sort().slice(0, mostTags);
    const picked = (e: Event) => (e.target as HTMLSelectElement).value;
    return html`<div class="add">
      <p-field label=${t("type")}><select data-test="memory-type" @change=${(e: Event) => this.choose(picked(e), this.tag)}>
        ${["", ...kinds].map((k) => html`<option value=${k} ?selected=${k === this.kind}>${k === "" ? t("all") : t(k as (typeof kinds)[number])}</option>`)}</select></p-field>
      ${tags.length === 0 ? nothing : html`<p-field label=${t("tag")}><select data-test="memory-tag" @change=${(e: Event) => this.choose(this.kind, picked(e))}>
        ${["", ...tags].map((tag) => html`<option value=${tag} ?selected=${tag === this.tag}>${tag || t("all")}</option>`)}</select></p-field>`}</div>`;
  }

  protected content(): unknown {
    const searching = this.query.trim() !== "" || this.kind !== "" || this.tag !== "";
    const chosen = this.chosen();
    return html`<div class="stack">
      <p class="lead">${t("about")}</p>
      <p-card>
        <form class="add" novalidate @submit=${this.add} id="add">
          <p-field label=${t("add")} .error=${this.fault}><input name="text" maxlength="1000" autocomplete="off" data-test="memory-text" /></p-field>
          <p-field class="narrow" label=${t("type")}><select name="type" data-test="memory-new-type">${kinds.map((k) => html`<option value=${k}>${t(k)}</option>`)}</select></p-field>
          <p-field class="narrow" label=${t("tags")}><input name="tags" maxlength="200" autocomplete="off" data-test="memory-tags" /></p-field>
          <p-button kind="main" type="submit" ?busy=${this.busy} data-test="memory-add">${t("addButton")}</p-button>
        </form>
      </p-card>
      <p-card>
        <p-field label=${t("search")}><input type="search" id="search" autocomplete="off" .value=${this.query} @input=${this.search} /></p-field>
        ${this.filters()}
        <p class="meta" role="status" id="count">${t(searching ? "found" : "count", { n: chosen.length })}</p>
        ${this.edit && !this.entries.some((e) => e.id === this.edit?.id) ? html`<div class="editor">${this.editor(undefined)}</div>` : nothing}
        ${chosen.length === 0
          ? html`<p-empty heading=${t(searching ? "noneFound" : "none")}>${t(searching ? "noneFoundHint" : "noneHint")}</p-empty>`
          : html`<ul class="items" id="memories">${repeat(chosen.slice(0, this.shown), (e) => e.id, (e) => this.item(e))}</ul>`}
        ${chosen.length > this.shown
          ? html`<p-button @click=${() => (this.shown += atOnce)}>${t("more")}</p-button>`
          : nothing}
      </p-card>
      <p-diary></p-diary>
    </div>`;
  }

  private item(e: Entry): unknown {
    if (this.edit?.id === e.id) return html`<li data-id=${e.id}><div class="editor">${this.editor(e)}</div></li>`;
    const kind = kinds.find((k) => k === e.type);
    return html`<li data-id=${e.id} data-test="memory">
      <div class="what">
        ${e.name && !e.body.startsWith(e.name.replace(/…$/, "")) ? html`<p><strong>${e.name}</strong></p>` : nothing}
        <p class="text">${e.body}</p>
        ${e.description && e.description !== e.body ? html`<p class="muted small">${e.description}</p>` : nothing}
        <p class="meta">
          <span>${kind ? t(kind) : e.type}</span>
          <time datetime=${e.created}>${ago(e.created)}</time>
          ${e.source ? html`<span>${t("by", { source: e.source })}</span>` : nothing}
          ${e.robot ? html`<span>${t("ofRobot", { name: nameIn(this.robots, e.robot) })}</span>` : nothing}
          ${e.expires ? html`<span>${t("expires", { time: clock(e.expires) })}</span>` : nothing}
          ${(e.tags ?? []).map((tag) => html`<span class="tag">${tag}</span>`)}
        </p>
      </div>
      <div class="row">
        <p-button label=${t("editOf", { text: short(e.body) })} @click=${() => this.begin(e)} data-test="edit">${t("edit")}</p-button>
        <p-button kind="danger" label=${t("forgetOf", { text: short(e.body) })} @click=${() => this.forget(e)} data-test="forget">${t("forget")}</p-button>
      </div>
    </li>`;
  }

  // editor renders the form for editing an entry. now is the entry at present, which somebody else may have changed or
  // deleted.
  private editor(now: Entry | undefined): unknown {
    const edit = this.edit!;
    const note = !now ? (this.query ? "" : t("goneSince")) : now.body !== edit.was ? t("changedSince", { text: now.body }) : "";
    return html`
      ${note ? html`<p class="warning" role="alert">${note}</p>` : nothing}
      <p-field label=${t("text")}><textarea id="edit-text" rows="3" .value=${edit.text} @input=${(i: Event) => {
        this.edit = { ...edit, text: (i.target as HTMLTextAreaElement).value };
      }}></textarea></p-field>
      <div class="row">
        <p-button kind="main" ?busy=${this.busy} ?disabled=${edit.text.trim() === "" || !now} @click=${this.save} data-test="save">${t("save")}</p-button>
        <p-button @click=${() => this.end()} data-test="cancel">${t("cancel")}</p-button>
      </div>`;
  }

  private async begin(e: Entry): Promise<void> {
    this.edit = { id: e.id, was: e.body, text: e.body };
    await this.updateComplete;
    this.renderRoot.querySelector<HTMLTextAreaElement>("#edit-text")?.focus();
  }

  // end closes the form, and returns the focus to the button that has opened it.
  private async end(): Promise<void> {
    const id = this.edit?.id;
    this.edit = undefined;
    await this.updateComplete;
    [...this.renderRoot.querySelectorAll<HTMLElement>("li[data-id]")]
      .find((li) => li.dataset["id"] === id)?.querySelector<HTMLElement>("p-button")?.focus();
  }

  private async save(): Promise<void> {
    const edit = this.edit;
    if (!edit) return;
    this.busy = true;
    const done = await this.act(() => send("PUT", `api/v1/memory/${encodeURIComponent(edit.id)}`, { text: edit.text.trim() }), t("saved"));
    this.busy = false;
    if (!done) return;
    this.entries = this.entries.map((e) => (e.id === edit.id ? { ...e, body: edit.text.trim() } : e));
    await this.end();
  }

  private async add(e: Event): Promise<void> {
    e.preventDefault();
    const fields = (e.target as HTMLFormElement).elements;
    const input = fields.namedItem("text") as HTMLInputElement;
    const words = fields.namedItem("tags") as HTMLInputElement;
    const type = (fields.namedItem("type") as HTMLSelectElement).value;
    const tags = words.value.split(/[\s,#]+/).filter(Boolean);
    const text = input.value.trim();
    if (this.busy) return;
    this.fault = text === "" ? t("needText") : "";
    if (text !== "") {
      this.busy = true;
      try {
        await send("POST", "api/v1/memory", { text, ...(type !== kinds[0] ? { type } : {}), ...(tags.length > 0 ? { tags } : {}) });
        this.tell(t("added"));
      } catch (failure) {
        this.fault = sentence(failure);
      }
      this.busy = false;
    }
    if (this.fault !== "") return input.focus();
    input.value = words.value = "";
    this.reload();
  }

  private async forget(e: Entry): Promise<void> {
    this.forgotten = [...this.forgotten, e.id];
    this.undoable(t("forgotten"), () => send("DELETE", `api/v1/memory/${encodeURIComponent(e.id)}`),
      () => (this.forgotten = this.forgotten.filter((id) => id !== e.id)));
    await this.updateComplete;
    this.renderRoot.querySelector<HTMLElement>("#search")?.focus();
  }

  private search(e: Event): void {
    this.query = (e.target as HTMLInputElement).value;
    clearTimeout(this.timer_);
    this.timer_ = setTimeout(() => {
      this.shown = atOnce;
      this.reloadNow();
    }, debounce);
  }

  private reloadNow(): void {
    void this.act(async () => {
      await this.load();
      this.requestUpdate();
    });
  }
}

// short shortens a text for the label of a button.
function short(text: string): string {
  return text.length > 60 ? text.slice(0, 59) + "…" : text;
}

customElements.define("p-memory", MemoryView);
