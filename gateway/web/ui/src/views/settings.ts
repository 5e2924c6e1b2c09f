// The configuration, as a form and as text. What is saved has been checked by the
// server, and holds from the next start on.

import { css, html, nothing } from "lit";
import { Refusal, get, send } from "../lib/api.js";
import { ask } from "../lib/ui.js";
import { told } from "../lib/said.js";
import { View, sentence } from "../lib/view.js";
import { catalogue } from "../lib/words.js";
import { list } from "./list.js";
import { restarted, started } from "./restart.js";
import { differences } from "./settings.diff.js";
import "./settings.form.js";
import "./settings.text.js";
import type { ConfigText } from "./settings.text.js";
import { inWords, plain, type Changes, type Checked, type Fault, type Shown, type Warning } from "./settings.types.js";

const t = catalogue("settings");

const debounce = 700; // ms after the last key, before the text is checked

export class SettingsView extends View {
  static properties = {
    shown: { state: true }, theirs: { state: true }, changes: { state: true }, text: { state: true }, mode: { state: true },
    faults: { state: true }, warnings: { state: true }, busy: { state: true }, conflict: { state: true }, restarting: { state: true }, wrong: { state: true },
  };
  declare private shown: Shown | undefined; // what the changes are made to
  declare private theirs: Shown | undefined; // what somebody else has made of it meanwhile
  declare private changes: Changes;
  declare private text: string | undefined; // where it is changed
  declare private mode: "form" | "text";
  declare private faults: Fault[];
  declare private warnings: (Warning | string)[];
  declare private busy: "" | "check" | "save";
  declare private conflict: boolean;
  declare private restarting: boolean;
  declare private wrong: string; // what became of a restart
  private timer_: ReturnType<typeof setTimeout> | undefined;

  static styles = [View.styles, list, css`
    .bar { position: sticky; bottom: calc(0.6rem + var(--bar, 0px)); z-index: 5; display: flex; flex-wrap: wrap; gap: 0.6rem; align-items: center; justify-content: space-between;
      background: var(--surface); border: 1px solid var(--accent); border-radius: var(--radius); box-shadow: var(--shadow); padding: 0.7rem 1rem; }
    .diff { font: 0.82rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; max-height: 40vh; overflow: auto; }
    .diff p { white-space: pre-wrap; } .less { color: var(--bad); } .more { color: var(--ok); }
    code { overflow-wrap: anywhere; }
  `];

  constructor() {
    super();
    this.changes = new Map();
    this.mode = "form";
    this.faults = [];
    this.warnings = [];
    this.busy = "";
    this.wrong = "";
    this.conflict = this.restarting = false;
    this.reloadOn([], ["settings"]);
  }

  protected title_(): string {
    return t("title");
  }

  private get dirty(): boolean {
    return this.changes.size > 0 || (this.text !== undefined && this.text !== this.shown?.text);
  }

  protected async load(): Promise<void> {
    const now = await get<Shown>("api/v1/config");
    if (this.shown && this.dirty && now.digest !== this.shown.digest) this.theirs = now;
    else this.hold(now);
  }

  // hold makes a configuration the one that is edited.
  private hold(now: Shown): void {
    this.shown = now;
    this.theirs = undefined;
    this.warnings = now.warnings ?? [];
    if (!this.dirty) {
      this.faults = now.faults ?? [];
      this.text = undefined;
    }
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.timer_);
  }

  protected content(): unknown {
    const s = this.shown!;
    return html`<div class="stack">
      <p class="muted small">${t("file", { file: s.file })}</p>
      ${s.writable ? (s.why ? html`<p class="well">${told(s.why)}</p>` : nothing) : html`<p class="warning" role="note" id="read-only">${told(s.why, (why) => t("readOnly", { why }))}</p>`}
      ${this.restarting ? html`<p class="well" role="status" id="restarting">${t("restarting")}</p>` : s.restart ? html`<div class="warning row"><p class="grow">${t("needsRestart")}</p>
        <p-button kind="main" @click=${this.restart} id="restart">${t("restart")}</p-button></div>` : nothing}
      ${this.wrong ? html`<p class="trouble" role="alert">${this.wrong}</p>` : nothing}
      ${this.theirs ? html`<div class="warning row" role="alert"><p class="grow">${t("otherChanged")}</p>
        <p-button @click=${() => (this.conflict = true)} id="compare">${t("compare")}</p-button></div>` : nothing}
      ${this.warnings.length > 0 ? html`<details class="well"><summary>${t("warnings")} (${this.warnings.length})</summary><ul>${this.warnings.map((w) => html`<li>${inWords(w)}</li>`)}</ul></details>` : nothing}
      <div class="row" role="group" aria-label=${t("how")}>${(["form", "text"] as const).map((m) => html`
        <p-button pressed=${this.mode === m ? "true" : "false"} @click=${() => this.show(m)} data-test=${m}>${t(m)}</p-button>`)}</div>
      ${this.mode === "form"
        ? html`<p-config-form .keys=${s.keys ?? []} .changes=${this.changes} .faults=${this.faults} ?readonly=${!s.writable}
            @changed=${this.changed} @text=${(e: CustomEvent<number>) => this.show("text", e.detail)}></p-config-form>`
        : html`<p-config-text .text=${this.text ?? s.text} .faults=${this.faults} ?readonly=${!s.writable} @typed=${this.typed}></p-config-text>`}
      ${this.dirty ? this.bar() : nothing}
      ${this.comparison()}
    </div>`;
  }

  private bar(): unknown {
    return html`<div class="bar" id="bar"><p role="status">${this.text === undefined ? t("pending", { n: this.changes.size }) : t("pendingText")}</p>
      <div class="row">
        <p-button @click=${this.discard} ?disabled=${this.busy !== ""} data-test="discard">${t("discard")}</p-button>
        <p-button @click=${() => this.check(true)} ?busy=${this.busy === "check"} data-test="check">${t("check")}</p-button>
        <p-button kind="main" @click=${() => this.save()} ?busy=${this.busy === "save"} data-test="save">${t("save")}</p-button>
      </div></div>`;
  }

  // show changes between form and text. Only one of them has changes at a time.
  private async show(mode: "form" | "text", line?: number): Promise<void> {
    if (this.dirty && mode !== this.mode) {
      if (!(await this.discard())) return;
    }
    this.mode = mode;
    if (line === undefined) return;
    await this.updateComplete;
    const editor = this.renderRoot.querySelector<ConfigText>("p-config-text");
    await editor?.updateComplete;
    editor?.show(line);
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
    this.timer_ = setTimeout(() => void this.check(false), debounce);
  }

  private change(): Record<string, unknown> {
    return this.text !== undefined ? { text: this.text } : { set: Object.fromEntries(this.changes) };
  }

  private async check(told: boolean): Promise<void> {
    if (told) this.busy = "check";
    const text = this.text;
    const done = await this.act(async () => {
      const checked = await send<Checked>("POST", "api/v1/config/check", this.change());
      if (text !== this.text) return; // more was typed meanwhile
      this.faults = checked.faults ?? [];
      this.warnings = checked.warnings ?? [];
    });
    if (told) this.busy = "";
    if (done && told) this.tell(this.faults.length > 0 ? t("faults", { n: this.faults.length }) : t("checked"), this.faults.length > 0);
  }

  // save writes the changes over what they were made to, or over a newer one that
  // its owner has seen.
  private async save(digest = this.shown?.digest): Promise<void> {
    this.busy = "save";
    clearTimeout(this.timer_);
    try {
      await send("PUT", "api/v1/config", { ...this.change(), digest });
      this.changes = new Map();
      this.text = undefined;
      this.theirs = undefined;
      this.faults = [];
      this.conflict = false;
      this.hold(await get<Shown>("api/v1/config"));
      this.tell(t("saved"));
    } catch (e) {
      await this.refused(e);
    }
    this.busy = "";
  }

  private async refused(e: unknown): Promise<void> {
    const faults = e instanceof Refusal ? (e.body as { faults?: Fault[] } | undefined)?.faults : undefined;
    if (faults && faults.length > 0) {
      this.faults = faults;
      this.conflict = false;
      this.tell(t("faults", { n: faults.length }), true);
    } else if (e instanceof Refusal && e.code === "changed_since") {
      await this.act(async () => {
        this.theirs = await get<Shown>("api/v1/config");
        this.conflict = true;
      });
    } else this.tell(sentence(e), true);
  }

  private async discard(): Promise<boolean> {
    if (!(await ask({ heading: t("discardReally"), text: this.text === undefined ? t("pending", { n: this.changes.size }) : t("pendingText"), yes: t("discard"), no: t("keepEditing"), danger: true }))) return false;
    this.takeTheirs();
    return true;
  }

  private takeTheirs(): void {
    clearTimeout(this.timer_);
    this.changes = new Map();
    this.text = undefined;
    this.faults = [];
    this.conflict = false;
    if (this.shown) this.hold(this.theirs ?? this.shown);
  }

  // comparison shows what somebody else has changed beside one's own changes.
  private comparison(): unknown {
    const theirs = this.theirs;
    const s = this.shown;
    if (!theirs || !s) return nothing;
    const lines = (after: string) => {
      const found = differences(s.text, after);
      return found.length === 0 ? html`<p>${t("nothingChanged")}</p>` : found.map((d) => html`<p class=${d.kind}>${d.kind === "less" ? "− " : "+ "}${d.line}</p>`);
    };
    return html`<p-dialog heading=${t("conflict")} ?open=${this.conflict} @close=${() => (this.conflict = false)}>
      <div class="form"><p>${t("conflictText")}</p>
        <h3>${t("theirs")}</h3><div class="diff well" tabindex="0" role="group" aria-label=${t("theirs")} id="theirs">${lines(theirs.text)}</div>
        <h3>${t("mine")}</h3><div class="diff well" tabindex="0" role="group" aria-label=${t("mine")} id="mine">${this.text !== undefined
          ? lines(this.text)
          : [...this.changes].map(([key, value]) => html`<p>${key}: ${this.mine(key, value)}</p>`)}</div>
      </div>
      <p-button slot="actions" @click=${() => (this.conflict = false)}>${t("keepEditing")}</p-button>
      <p-button slot="actions" @click=${this.takeTheirs} data-test="theirs">${t("takeTheirs")}</p-button>
      <p-button slot="actions" kind="danger" @click=${() => this.save(theirs.digest)} data-test="mine">${t(this.text !== undefined ? "overwrite" : "keepMine")}</p-button>
    </p-dialog>`;
  }

  private mine(key: string, value: unknown): string {
    if (value === null) return t("reset");
    return this.shown?.keys?.find((k) => k.key === key)?.type === "secret" ? "••••••" : plain(value);
  }

  private async restart(): Promise<void> {
    if (!(await ask({ heading: t("restartReally"), text: t("restartText"), yes: t("restart"), no: t("keepEditing") }))) return;
    this.wrong = "";
    let back = true;
    const done = await this.act(async () => {
      const before = await started();
      await send("POST", "api/v1/restart");
      this.restarting = true;
      back = await restarted(before);
      if (back) await this.load();
    });
    this.restarting = false;
    if (!back) this.wrong = t("notBack");
    else if (done) this.tell(t("restarted"));
  }
}

customElements.define("p-settings", SettingsView);
