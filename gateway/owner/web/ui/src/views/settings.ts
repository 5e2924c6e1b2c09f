// The view of the configuration: a form for changes, and in its last group the owner's file as text. The address may name
// a group to open: #/settings/quiet. A change is checked as soon as it is made; it is saved, and takes effect, on request.

import { css, html, nothing } from "lit";
import { Refusal, get, send } from "../lib/api.js";
import { ask } from "../lib/ui.js";
import { explained, labels } from "../lib/explained.js";
import { told } from "../lib/said.js";
import { View, sentence } from "../lib/view.js";
import { catalogue, language, locale, type Language } from "../lib/words.js";
import type { Engine } from "./engines.types.js";
import { list } from "./list.js";
import { leaves, moved, moves, nextMove, restarted, started, type Move } from "./restart.js";
import { same } from "./settings.fields.js";
import "./settings.form.js";
import "./settings.text.js";
import { Texts } from "./settings.texts.js";
import { inWords, type Changes, type Checked, type Done, type Fault, type Shown } from "./settings.types.js";

const t = catalogue("settings");

const debounce = 700; // ms from the last change to the check of the text or the changes

export class SettingsView extends View {
  static properties = {
    shown: { state: true }, changes: { state: true }, text: { state: true }, checked: { state: true }, asText: { state: true },
    faults: { state: true }, busy: { state: true }, restarting: { state: true }, wrong: { state: true }, move: { state: true }, texts: { state: true },
  };
  declare private shown: Shown | undefined;
  declare private changes: Changes;
  declare private text: string | undefined; // edited text of the file, if it was edited
  declare private checked: Checked | undefined; // result of checking the edited text
  declare private asText: boolean; // the owner's file is shown
  declare private faults: Fault[]; // faults to show in the form
  declare private busy: boolean;
  declare private restarting: boolean;
  declare private wrong: string; // error of a restart
  declare private move: Move | undefined; // by the last restart
  declare private texts: Texts;
  private textsOf: Language = "en";
  private timer_: ReturnType<typeof setTimeout> | undefined;
  private readonly first = location.hash.split("/")[2] ?? ""; // name of the group that the address names

  static styles = [View.styles, list, css`
    .bar { position: sticky; bottom: calc(var(--s3) + var(--bar, 0px)); z-index: 5; display: flex; flex-wrap: wrap; gap: var(--s2) var(--s3); align-items: center; justify-content: space-between;
      background: var(--surface); border-radius: var(--radius); box-shadow: var(--float); padding: var(--s3) var(--s4); }
    code { overflow-wrap: anywhere; }
  `];

  constructor() {
    super();
    this.changes = new Map();
    this.faults = [];
    this.wrong = "";
    this.texts = new Texts();
    this.busy = this.restarting = this.asText = false;
    this.reloadOn([], ["settings", "voices"]);
  }

  protected title_(): string {
    return t("title");
  }

  // load keeps changes that are not saved. A voice is chosen from those that its engine lists.
  protected async load(): Promise<void> {
    const [now, engines] = await Promise.all([get<Shown>("api/v1/config"), get<Engine[] | null>("api/v1/engines").catch(() => null)]);
    for (const e of engines ?? []) {
      const voice = now.keys?.find((k) => k.key === `${e.key}.voice`);
      if (!voice || !e.voices?.length) continue;
      voice.type = "choice";
      voice.choices = ["", ...e.voices.map((v) => v.name)];
      voice.options = e.voices.map((v) => ({ value: v.name, label: v.title || v.name }));
    }
    this.shown = now;
    if (this.changes.size === 0) this.faults = now.faults ?? [];
  }

  protected willUpdate(): void {
    const l = language();
    if (l === this.textsOf) return;
    this.textsOf = l;
    // If the translations cannot be loaded, the server's English texts are shown.
    Promise.all([explained(l), labels(l)]).then((own) => l === this.textsOf && (this.texts = new Texts(...own)), () => (this.texts = new Texts()));
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.timer_);
  }

  protected content(): unknown {
    const s = this.shown!;
    const warnings = s.warnings ?? [];
    const waiting = s.restart ?? [];
    return html`<div class="stack">
      ${this.restarting ? html`<p class="well" role="status" id="restarting">${t("restarting")}</p>` : waiting.length > 0 ? html`<div class="warning row"><p class="grow">${t("needsRestart", { keys: this.named(waiting) })}</p>
        <p-button kind="main" @click=${this.restart} id="restart">${t("restart")}</p-button></div>` : nothing}
      ${moved(this.move)}${this.wrong ? html`<p class="trouble" role="alert">${this.wrong}</p>` : nothing}
      ${warnings.length > 0 ? html`<details class="well"><summary>${t("warnings")} (${warnings.length})</summary><ul>${warnings.map((w) => html`<li>${inWords(w)}</li>`)}</ul></details>` : nothing}
      <p-config-form .keys=${s.keys ?? []} .groups=${s.groups} .changes=${this.changes} .faults=${this.faults} .file=${s.file} .first=${this.first}
.texts=${this.texts}
        @changed=${this.changed}>${this.file()}</p-config-form>
      ${this.changes.size > 0 ? this.bar() : nothing}
    </div>`;
  }

  // file renders where the configuration is, and the owner's file as text.
  private file(): unknown {
    const s = this.shown!;
    return html`<div slot="text" class="stack"><h3>${t("text")}</h3><p class="muted small">${t("file", { file: s.file || "–", settings: s.settings })}</p>
      <div><p-button pressed=${this.asText ? "true" : "false"} @click=${() => (this.asText = !this.asText)} data-test="text">${t("showText")}</p-button></div>
      ${!this.asText ? nothing : html`${s.why ? html`<p class="well">${told(s.why)}</p>` : nothing}
        <p-config-text .text=${this.text ?? s.text} .faults=${this.text === undefined ? (s.faults ?? []) : (this.checked?.faults ?? [])} ?checked=${this.checked !== undefined} @typed=${this.typed}></p-config-text>`}</div>`;
  }

  // named returns the labels of keys.
  private named(keys: readonly string[]): string {
    const names = keys.map((key) => {
      const k = this.shown?.keys?.find((o) => o.key === key);
      return k ? this.texts.name(key, k.label) : key;
    });
    return new Intl.ListFormat(locale(), { type: "unit" }).format(names);
  }

  private bar(): unknown {
    const later = (this.shown?.keys ?? []).filter((k) => k.restart && this.changes.has(k.key)).map((k) => k.key);
    return html`<div class="bar" id="bar"><div role="status"><p>${t("pending", { n: this.changes.size })}</p>
        ${later.length > 0 ? html`<p class="small muted">${t("needsRestart", { keys: this.named(later) })}</p>` : nothing}</div>
      <div class="row">
        <p-button @click=${this.discard} ?disabled=${this.busy} data-test="discard">${t("discard")}</p-button>
        <p-button kind="main" @click=${this.save} ?busy=${this.busy} data-test="save">${t("save")}</p-button>
      </div></div>`;
  }

  private changed(e: CustomEvent<{ key: string; value: unknown }>): void {
    const { key, value } = e.detail;
    const now = this.shown?.keys?.find((k) => k.key === key);
    const changes = new Map(this.changes);
    if (value === undefined || (value !== null && now && now.type !== "secret" && same(now, value, now.value))) changes.delete(key);
    else changes.set(key, value);
    this.changes = changes;
    this.faults = this.faults.filter((f) => f.key !== key);
    this.soon(() => this.checkChanges());
  }

  private typed(e: CustomEvent<string>): void {
    this.text = e.detail;
    this.soon(() => this.check());
  }

  private soon(work: () => Promise<void>): void {
    clearTimeout(this.timer_);
    this.timer_ = setTimeout(() => void work(), debounce);
  }

  // checkChanges shows the faults that the changes would cause, at their fields.
  private async checkChanges(): Promise<void> {
    const changes = this.changes;
    const set = Object.fromEntries(changes);
    try {
      const faults = changes.size === 0 ? this.shown?.faults : (await send<Checked>("POST", "api/v1/config/check", { set })).faults;
      if (changes === this.changes) this.faults = faults ?? []; // otherwise there was another change during the request
    } catch {
      // Saving makes the same check, and shows why it fails.
    }
  }

  private async check(): Promise<void> {
    const text = this.text;
    await this.act(async () => {
      const checked = await send<Checked>("POST", "api/v1/config/check", { text });
      if (text === this.text) this.checked = checked; // otherwise the text was edited during the request
    });
  }

  private async save(): Promise<void> {
    this.busy = true;
    try {
      await send<Done>("PUT", "api/v1/config", { set: Object.fromEntries(this.changes) });
      this.changes = new Map();
      await this.load();
      this.tell(t("saved"));
    } catch (e) {
      const faults = e instanceof Refusal ? (e.body as { faults?: Fault[] } | undefined)?.faults : undefined;
      if (faults && faults.length > 0) this.faults = faults;
      this.tell(faults && faults.length > 0 ? t("faults", { n: faults.length }) : sentence(e), true);
    }
    this.busy = false;
  }

  private discard(): void {
    const { changes, faults } = this;
    this.changes = new Map();
    this.faults = this.shown?.faults ?? [];
    this.undoable(t("discarded"), () => Promise.resolve(), () => Object.assign(this, { changes, faults }));
  }

  private async restart(): Promise<void> {
    const move = await nextMove();
    if (!(await ask({ heading: t("restartReally"), text: `${t("restartText")} ${move ? moves(move.old, move.name) : ""}`, yes: t("restart"), no: t("keepEditing") }))) return;
    this.wrong = "";
    let back = true;
    const done = await this.act(async () => {
      const before = await started();
      await send("POST", "api/v1/restart");
      this.move = move;
      if (leaves(move)) {
        this.shown = { ...this.shown!, restart: [] };
        return;
      }
      this.restarting = true;
      back = await restarted(before);
      if (back) await this.load();
    });
    this.restarting = false;
    if (!back) this.wrong = t("notBack");
    else if (done && move?.old !== location.hostname) this.tell(t("restarted"));
  }
}

customElements.define("p-settings", SettingsView);
