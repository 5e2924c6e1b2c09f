// The view of the configuration: a form for changes, and the owner's file as text. Changes take effect at once, unless
// the server reports that a key needs a restart.

import { css, html, nothing } from "lit";
import { Refusal, get, send } from "../lib/api.js";
import { ask } from "../lib/ui.js";
import { told } from "../lib/said.js";
import { View, sentence } from "../lib/view.js";
import { catalogue } from "../lib/words.js";
import { list } from "./list.js";
import { leaves, moved, moves, nextMove, restarted, started, type Move } from "./restart.js";
import "./settings.form.js";
import "./settings.text.js";
import { inWords, plain, type Changes, type Checked, type Done, type Fault, type Shown } from "./settings.types.js";

const t = catalogue("settings");

const debounce = 700; // ms from the last key to the check of the text

export class SettingsView extends View {
  static properties = {
    shown: { state: true }, changes: { state: true }, text: { state: true }, checked: { state: true }, mode: { state: true },
    faults: { state: true }, busy: { state: true }, restarting: { state: true }, wrong: { state: true }, move: { state: true },
  };
  declare private shown: Shown | undefined;
  declare private changes: Changes;
  declare private text: string | undefined; // edited text of the file, if it was edited
  declare private checked: Checked | undefined; // result of checking the edited text
  declare private mode: "form" | "text";
  declare private faults: Fault[]; // faults to show in the form
  declare private busy: boolean;
  declare private restarting: boolean;
  declare private wrong: string; // error of a restart
  declare private move: Move | undefined; // by the last restart
  private timer_: ReturnType<typeof setTimeout> | undefined;

  static styles = [View.styles, list, css`
    .bar { position: sticky; bottom: calc(0.6rem + var(--bar, 0px)); z-index: 5; display: flex; flex-wrap: wrap; gap: 0.6rem; align-items: center; justify-content: space-between;
      background: var(--surface); border: 1px solid var(--accent); border-radius: var(--radius); box-shadow: var(--shadow); padding: 0.7rem 1rem; }
    code { overflow-wrap: anywhere; }
  `];

  constructor() {
    super();
    this.changes = new Map();
    this.mode = "form";
    this.faults = [];
    this.wrong = "";
    this.busy = this.restarting = false;
    this.reloadOn([], ["settings"]);
  }

  protected title_(): string {
    return t("title");
  }

  // load keeps changes that are not saved.
  protected async load(): Promise<void> {
    const now = await get<Shown>("api/v1/config");
    this.shown = now;
    if (this.changes.size === 0) this.faults = now.faults ?? [];
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
      <p class="muted small">${t("file", { file: s.file || "–", settings: s.settings })}</p>
      ${this.restarting ? html`<p class="well" role="status" id="restarting">${t("restarting")}</p>` : waiting.length > 0 ? html`<div class="warning row"><p class="grow">${t("needsRestart", { keys: waiting.join(", ") })}</p>
        <p-button kind="main" @click=${this.restart} id="restart">${t("restart")}</p-button></div>` : nothing}
      ${moved(this.move)}${this.wrong ? html`<p class="trouble" role="alert">${this.wrong}</p>` : nothing}
      ${warnings.length > 0 ? html`<details class="well"><summary>${t("warnings")} (${warnings.length})</summary><ul>${warnings.map((w) => html`<li>${inWords(w)}</li>`)}</ul></details>` : nothing}
      <div class="row" role="group" aria-label=${t("how")}>${(["form", "text"] as const).map((m) => html`
        <p-button pressed=${this.mode === m ? "true" : "false"} @click=${() => (this.mode = m)} data-test=${m}>${t(m)}</p-button>`)}</div>
      ${this.mode === "form"
        ? html`<p-config-form .keys=${s.keys ?? []} .changes=${this.changes} .faults=${this.faults} @changed=${this.changed}></p-config-form>`
        : html`${s.why ? html`<p class="well">${told(s.why)}</p>` : nothing}
          <p-config-text .text=${this.text ?? s.text} .faults=${this.text === undefined ? (s.faults ?? []) : (this.checked?.faults ?? [])} ?checked=${this.checked !== undefined} @typed=${this.typed}></p-config-text>`}
      ${this.changes.size > 0 ? this.bar() : nothing}
    </div>`;
  }

  private bar(): unknown {
    return html`<div class="bar" id="bar"><p role="status">${t("pending", { n: this.changes.size })}</p>
      <div class="row">
        <p-button @click=${this.discard} ?disabled=${this.busy} data-test="discard">${t("discard")}</p-button>
        <p-button kind="main" @click=${this.save} ?busy=${this.busy} data-test="save">${t("save")}</p-button>
      </div></div>`;
  }

  private changed(e: CustomEvent<{ key: string; value: unknown }>): void {
    const { key, value } = e.detail;
    const now = this.shown?.keys?.find((k) => k.key === key);
    const changes = new Map(this.changes);
    if (value === undefined || (value !== null && now && now.type !== "secret" && plain(value) === plain(now.value))) changes.delete(key);
    else changes.set(key, value);
    this.changes = changes;
    this.faults = this.faults.filter((f) => f.key !== key);
  }

  private typed(e: CustomEvent<string>): void {
    this.text = e.detail;
    clearTimeout(this.timer_);
    this.timer_ = setTimeout(() => void this.check(), debounce);
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

  private async discard(): Promise<void> {
    if (!(await ask({ heading: t("discardReally"), text: t("pending", { n: this.changes.size }), yes: t("discard"), no: t("keepEditing"), danger: true }))) return;
    this.changes = new Map();
    this.faults = this.shown?.faults ?? [];
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
