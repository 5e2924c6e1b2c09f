// <p-config-text>: the owner's file as text, with line numbers, and marks at the lines of faults. Edits are checked but
// not saved.

import { css, html, nothing, type PropertyValues } from "lit";
import { base } from "../lib/ui.js";
import { Spoken } from "../lib/view.js";
import { catalogue } from "../lib/words.js";
import { list } from "./list.js";
import { faulty, type Fault } from "./settings.types.js";

const t = catalogue("settings");

export class ConfigText extends Spoken {
  static properties = { text: {}, faults: { attribute: false }, checked: { type: Boolean } };
  declare text: string;
  declare faults: readonly Fault[];
  declare checked: boolean; // the edited text was checked

  static styles = [base, list, css`
    .editor { display: grid; grid-template-columns: auto minmax(0, 1fr); border: 1px solid var(--control); border-radius: 10px; overflow: hidden; background: var(--surface); }
    .editor:focus-within { outline: 3px solid var(--accent); outline-offset: 2px; }
    ol, textarea { font: 0.86rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; padding: 0.6rem 0.5rem; height: min(65vh, 46rem); }
    ol { overflow: hidden; text-align: end; color: var(--muted); background: var(--raised); border-inline-end: 1px solid var(--line); min-width: 3rem; user-select: none; }
    ol .wrong { background: var(--bad); color: var(--surface); border-radius: 3px; margin-inline: -0.25rem; padding-inline: 0.25rem; }
    textarea { border: 0; border-radius: 0; resize: none; white-space: pre; overflow: auto; outline: none; min-height: 0; tab-size: 2; }
    .faults li { padding: 0.15rem 0; }
    .faults button { font: inherit; text-align: start; color: inherit; background: none; border: 0; padding: 0.25rem 0; min-height: 1.7rem; text-decoration: underline; cursor: pointer; overflow-wrap: anywhere; }
    form { display: flex; gap: 0.6rem; align-items: end; }
    form p-field { width: 8rem; }
  `];

  constructor() {
    super();
    this.text = "";
    this.faults = [];
    this.checked = false;
  }

  render() {
    const lines = this.text.split("\n").length;
    const wrong = new Set(this.faults.map((f) => f.line));
    return html`<div class="form">
      ${this.faults.length > 0 ? html`<div class="trouble" role="status"><p><strong>${t("faults", { n: this.faults.length })}</strong></p>
        <ul class="faults" id="faults">${this.faults.map((f) => html`<li data-test="fault" data-line=${f.line ?? 0}>${this.fault(f)}</li>`)}</ul></div>` : this.checked ? html`<p class="well" role="status" id="checked">${t("checked")}</p>` : nothing}
      <form @submit=${this.jump}>
        <p-field label=${t("line")}><input name="line" type="number" min="1" max=${lines} required /></p-field>
        <p-button type="submit" label=${t("toLine")}>${t("go")}</p-button>
      </form>
      <div class="editor">
        <ol aria-hidden="true">${Array.from({ length: lines }, (_, i) => html`<li class=${wrong.has(i + 1) ? "wrong" : ""}>${i + 1}</li>`)}</ol>
        <textarea id="text" wrap="off" spellcheck="false" autocapitalize="off" autocomplete="off" aria-label=${t("editor")} aria-describedby="hint"
          @input=${this.typed} @scroll=${this.scrolled}></textarea>
      </div>
      <p class="muted small" id="hint">${t("editorHint")}</p>
    </div>`;
  }

  private fault(f: Fault): unknown {
    const line = f.line;
    if (!line) return faulty(f);
    return html`<button type="button" @click=${() => this.show(line)}>${faulty(f, (message) => t("faultAt", { line, message }))}</button>`;
  }

  private get area(): HTMLTextAreaElement {
    return this.renderRoot.querySelector("textarea")!;
  }

  protected updated(changed: PropertyValues): void {
    super.updated(changed);
    // Setting an unchanged value would move the cursor.
    if (this.area.value !== this.text) this.area.value = this.text;
  }

  private typed(): void {
    this.text = this.area.value;
    this.dispatchEvent(new CustomEvent("typed", { detail: this.text }));
  }

  private scrolled(): void {
    const numbers = this.renderRoot.querySelector("ol");
    if (numbers) numbers.scrollTop = this.area.scrollTop;
  }

  private jump(e: Event): void {
    e.preventDefault();
    this.show(Number(new FormData(e.target as HTMLFormElement).get("line")));
  }

  // show selects a line and scrolls to it.
  show(line: number): void {
    const lines = this.text.split("\n");
    const n = Math.min(Math.max(1, line), lines.length);
    const from = lines.slice(0, n - 1).reduce((all, one) => all + one.length + 1, 0);
    this.area.focus();
    this.area.setSelectionRange(from, from + lines[n - 1]!.length);
    const height = parseFloat(getComputedStyle(this.area).lineHeight);
    this.area.scrollTop = Math.max(0, (n - 1) * height - this.area.clientHeight / 3);
  }
}

customElements.define("p-config-text", ConfigText);
