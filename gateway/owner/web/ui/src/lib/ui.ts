// The styles `base` and small elements for all views.
//
//   <p-card heading="Timers"> ... <p-button slot="actions">..</p-button></p-card>
//   <p-button kind="main" ?busy=${..} ?disabled=${..} label="for a button that shows only a sign" @click=${..}>Save</p-button>
//   <p-field label="Name" hint=".." error=".."><input ...></p-field>       the label is tied to the control in it
//   <p-bar label="Uploading" .value=${0.4}></p-bar>                        0..1; undefined: it is not known how much
//   <p-dialog heading="Forget?" ?open=${..} @close=${..}> ... <p-button slot="actions">..</p-button></p-dialog>
//   <p-empty heading="No timers"> ... </p-empty>
//   if (await ask({ text, yes: "Forget", no: "Cancel", danger: true })) ...
//
// The colours are custom properties: --bg --surface --raised --text --muted --line --control --accent --on-accent
// --soft --ok --warn --bad --ok-soft --warn-soft --bad-soft, --plot1 to --plot5 for lines of plots; --radius, --gap.

import { LitElement, css, html, nothing, render, type PropertyValues, type TemplateResult } from "lit";

export const base = css`
  :host { display: block; }
  :host([hidden]) { display: none; }
  * { box-sizing: border-box; }
  h1 { font-size: 1.6rem; line-height: 1.25; margin: 0; font-weight: 650; letter-spacing: -0.01em; overflow-wrap: anywhere; }
  h2 { font-size: 1.1rem; line-height: 1.3; margin: 0; font-weight: 650; overflow-wrap: anywhere; }
  h3 { font-size: 1rem; margin: 0; font-weight: 650; overflow-wrap: anywhere; }
  h1:focus { outline: none; }
  p { margin: 0; overflow-wrap: anywhere; }
  ul, ol { margin: 0; padding: 0; list-style: none; }
  dl { margin: 0; display: grid; grid-template-columns: max-content 1fr; gap: 0.3rem 1rem; }
  dt { color: var(--muted); } dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
  a { color: var(--accent); text-underline-offset: 0.15em; }
  code, pre, .code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 0.9em; }
  pre { overflow: auto; margin: 0; }
  table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
  th { text-align: start; font-weight: 600; color: var(--muted); font-size: 0.875rem; }
  th, td { padding: 0.5rem 0.75rem 0.5rem 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
  input, select, textarea {
    font: inherit; color: var(--text); background: var(--surface); border: 1px solid var(--control); border-radius: 10px;
    padding: 0.5rem 0.7rem; min-height: 2.6rem; max-width: 100%; width: 100%; min-width: 0;
  }
  textarea { resize: vertical; min-height: 5rem; }
  input[type="checkbox"], input[type="radio"] { width: 1.5rem; height: 1.5rem; min-height: 0; accent-color: var(--accent); margin: 0; flex: none; }
  input[type="range"] { padding: 0; border: 0; accent-color: var(--accent); background: transparent; min-height: 2rem; }
  input[type="color"] { padding: 0.2rem; width: 3.4rem; }
  input:disabled, select:disabled, textarea:disabled { opacity: 0.65; }
  :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 6px; }
  .row { display: flex; flex-wrap: wrap; gap: 0.6rem; align-items: center; }
  .stack { display: grid; gap: var(--gap); grid-template-columns: minmax(0, 1fr); }
  .grid { display: grid; gap: var(--gap); grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
  .grow { flex: 1; min-width: 0; }
  .muted { color: var(--muted); } .small { font-size: 0.875rem; } .bad { color: var(--bad); } .warn { color: var(--warn); } .ok { color: var(--ok); }
  .tag { display: inline-block; max-width: 100%; overflow-wrap: anywhere; padding: 0.1rem 0.6rem; border-radius: 999px; background: var(--soft); color: var(--text); font-size: 0.875rem; }
  .tag.bad { background: var(--bad-soft); color: var(--bad); } .tag.warn { background: var(--warn-soft); color: var(--warn); } .tag.ok { background: var(--ok-soft); color: var(--ok); }
  .scroll { overflow-x: auto; }
  .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
  @media (prefers-reduced-motion: reduce) { *, ::before, ::after { animation: none !important; transition: none !important; } }
`;

export class Card extends LitElement {
  static properties = { heading: {} };
  declare heading: string | undefined;
  static styles = [base, css`
    :host { background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); box-shadow: var(--shadow); padding: 1rem 1.1rem; min-width: 0; }
    header { display: flex; flex-wrap: wrap; gap: 0.6rem; align-items: center; justify-content: space-between; margin-bottom: 0.7rem; }
    .none { display: none; }
  `];
  render() {
    return html`${this.heading ? html`<header><h2>${this.heading}</h2><slot name="actions"></slot></header>` : nothing}<slot></slot>`;
  }
}

export class Button extends LitElement {
  static shadowRootOptions = { ...LitElement.shadowRootOptions, delegatesFocus: true };
  static formAssociated = true;
  static properties = { kind: {}, type: {}, label: {}, busy: { type: Boolean, reflect: true }, disabled: { type: Boolean, reflect: true }, pressed: {} };
  declare kind: "plain" | "main" | "danger" | undefined;
  declare type: "button" | "submit" | undefined;
  declare label: string | undefined; // accessible name of a button that shows only an icon
  declare busy: boolean;
  declare disabled: boolean;
  declare pressed: "true" | "false" | undefined; // state of a toggle button
  static styles = [base, css`
    :host { display: inline-block; }
    button {
      font: inherit; font-weight: 600; border-radius: 10px; border: 1px solid var(--control); background: var(--surface); color: var(--text);
      min-height: 2.6rem; min-width: 2.6rem; padding: 0.4rem 0.9rem; cursor: pointer; width: 100%; display: inline-flex; gap: 0.5rem; align-items: center; justify-content: center;
    }
    button:hover { background: var(--raised); }
    .main { background: var(--accent); border-color: var(--accent); color: var(--on-accent); } .main:hover { background: var(--accent); filter: brightness(1.08); }
    .danger { color: var(--bad); border-color: var(--bad); } .danger:hover { background: var(--bad-soft); }
    [aria-pressed="true"] { background: var(--soft); border-color: var(--accent); }
    button:disabled { cursor: default; opacity: 0.55; }
    i { width: 1em; height: 1em; border-radius: 50%; border: 2px solid currentcolor; border-inline-end-color: transparent; animation: turn 0.8s linear infinite; }
    @keyframes turn { to { transform: rotate(1turn); } }
  `];

  constructor() {
    super();
    // A button in a shadow tree does not submit the form around it.
    this.addEventListener("click", (e) => {
      if (this.busy || this.disabled) {
        e.stopImmediatePropagation();
        return;
      }
      if (this.type === "submit") this.closest("form")?.requestSubmit();
    });
  }

  render() {
    return html`<button class=${this.kind ?? "plain"} type="button" ?disabled=${this.disabled} aria-label=${this.label ?? nothing}
      title=${this.label ?? nothing} aria-pressed=${this.pressed ?? nothing} aria-busy=${this.busy ? "true" : nothing}>
      ${this.busy ? html`<i aria-hidden="true"></i>` : nothing}<slot></slot></button>`;
  }
}

export class Empty extends LitElement {
  static properties = { heading: {} };
  declare heading: string | undefined;
  static styles = [base, css`
    :host { text-align: center; padding: 2.5rem 1rem; color: var(--muted); border: 1px dashed var(--line); border-radius: var(--radius); }
    h2 { color: var(--text); margin-bottom: 0.4rem; }
  `];
  render() {
    return html`${this.heading ? html`<h2>${this.heading}</h2>` : nothing}<slot></slot>`;
  }
}

let fields = 0;

// Field labels the control in it. The label is added beside the control, because a label and its control must be in the
// same tree.
export class Field extends LitElement {
  static properties = { label: {}, hint: {}, error: {} };
  declare label: string | undefined;
  declare hint: string | undefined;
  declare error: string | TemplateResult | undefined; // a part of it may be in another language
  private readonly number = ++fields;
  private own: HTMLLabelElement | undefined;
  private note: HTMLParagraphElement | undefined;
  static styles = [base, css`
    :host { display: block; min-width: 0; }
    ::slotted(label) { display: block; font-weight: 600; font-size: 0.9rem; margin-bottom: 0.25rem; }
    ::slotted(.p-note) { font-size: 0.875rem; color: var(--muted); margin: 0.25rem 0 0; overflow-wrap: anywhere; }
    ::slotted(.p-note.error) { color: var(--bad); }
    :host([inline]) { display: flex; gap: 0.6rem; align-items: center; }
    :host([inline]) ::slotted(label) { margin: 0; order: 2; font-weight: 500; }
  `];

  protected updated(changed: PropertyValues): void {
    super.updated(changed);
    this.tie();
  }

  private tie(): void {
    const control = this.querySelector<HTMLElement>("input, select, textarea, output");
    if (!control) return;
    control.id ||= `field-${this.number}`;
    this.own ??= this.appendChild(Object.assign(document.createElement("label"), { slot: "label" }));
    this.own.htmlFor = control.id;
    this.own.textContent = this.label ?? "";
    const note = this.error || this.hint || "";
    if (!note && !this.note) return;
    this.note ??= this.appendChild(Object.assign(document.createElement("p"), { slot: "note", id: `note-${this.number}` }));
    this.note.className = this.error ? "p-note error" : "p-note";
    render(note, this.note);
    if (note) control.setAttribute("aria-describedby", this.note.id);
    else control.removeAttribute("aria-describedby");
    if (this.error) control.setAttribute("aria-invalid", "true");
    else control.removeAttribute("aria-invalid");
  }

  render() {
    return html`<slot name="label"></slot><slot @slotchange=${() => this.tie()}></slot><slot name="note"></slot>`;
  }
}

export class Bar extends LitElement {
  static properties = { value: { type: Number }, label: {} };
  declare value: number | undefined;
  declare label: string | undefined;
  static styles = [base, css`
    div { height: 0.7rem; border-radius: 999px; background: var(--line); overflow: hidden; }
    i { display: block; height: 100%; background: var(--accent); border-radius: 999px; transition: width 0.2s; }
    .unknown { width: 30%; animation: go 1.4s ease-in-out infinite alternate; }
    @keyframes go { to { margin-inline-start: 70%; } }
  `];
  render() {
    const known = this.value !== undefined && !Number.isNaN(this.value);
    const percent = known ? Math.round(Math.min(1, Math.max(0, this.value!)) * 100) : 0;
    return html`<div role="progressbar" aria-label=${this.label ?? nothing} aria-valuemin="0" aria-valuemax="100" aria-valuenow=${known ? percent : nothing}>
      <i class=${known ? "" : "unknown"} .style=${known ? `width:${percent}%` : ""}></i></div>`;
  }
}

export class Dialog extends LitElement {
  static properties = { heading: {}, open: { type: Boolean, reflect: true } };
  declare heading: string | undefined;
  declare open: boolean;
  static styles = [base, css`
    :host { display: contents; }
    dialog { border: 1px solid var(--line); border-radius: var(--radius); background: var(--surface); color: var(--text); padding: 1.2rem; width: min(34rem, calc(100vw - 2rem)); max-height: calc(100dvh - 2rem); overflow: auto; }
    dialog::backdrop { background: rgb(0 0 0 / 45%); }
    h2 { margin-bottom: 0.7rem; }
    footer { display: flex; flex-wrap: wrap; gap: 0.6rem; justify-content: flex-end; margin-top: 1.1rem; }
  `];
  protected updated(): void {
    const dialog = this.renderRoot.querySelector("dialog");
    if (!dialog || !this.isConnected) return;
    if (this.open && !dialog.open) dialog.showModal();
    if (!this.open && dialog.open) dialog.close();
  }
  render() {
    return html`<dialog aria-label=${this.heading ?? nothing} @close=${this.closed}>
      ${this.heading ? html`<h2>${this.heading}</h2>` : nothing}<slot></slot><footer><slot name="actions"></slot></footer></dialog>`;
  }
  private closed(e: Event): void {
    e.stopPropagation();
    this.open = false;
    this.dispatchEvent(new Event("close"));
  }
}

// ask shows a dialog with two buttons, and returns whether the button yes was chosen.
export function ask(q: { heading?: string; text: string; yes: string; no: string; danger?: boolean }): Promise<boolean> {
  return new Promise((resolve) => {
    const dialog = document.createElement("p-dialog") as Dialog;
    dialog.heading = q.heading ?? q.yes;
    dialog.append(Object.assign(document.createElement("p"), { textContent: q.text }));
    const answer = (yes: boolean) => {
      resolve(yes);
      dialog.open = false;
    };
    const button = (text: string, kind: "plain" | "main" | "danger", name: string, yes: boolean) => {
      const b = document.createElement("p-button") as Button;
      b.slot = "actions";
      b.kind = kind;
      b.textContent = text;
      b.dataset["test"] = name;
      b.addEventListener("click", () => answer(yes));
      dialog.append(b);
    };
    button(q.no, "plain", "no", false);
    button(q.yes, q.danger ? "danger" : "main", "yes", true);
    dialog.addEventListener("close", () => {
      resolve(false);
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.open = true;
  });
}

customElements.define("p-card", Card);
customElements.define("p-button", Button);
customElements.define("p-empty", Empty);
customElements.define("p-field", Field);
customElements.define("p-bar", Bar);
customElements.define("p-dialog", Dialog);
