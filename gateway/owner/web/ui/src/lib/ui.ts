// The design system: the styles `base` and small elements for all views. The custom properties are in theme.ts.
//
//   <p-card heading="Timers"> ... <p-button slot="actions">..</p-button></p-card>     tone="warn", "bad" or "accent": wants a person
//   <p-button kind="main" ?busy=${..} ?disabled=${..} label="for a button that shows only a sign" @click=${..}>Save</p-button>
//     kind: plain; main, one at most in a card; quiet, for what is seldom used; danger
//   <p-field label="Name" hint=".." error=".."><input ...></p-field>       the label is tied to the control in it
//   <p-field inline label="Quiet"><input type="checkbox" class="switch"></p-field>    class switch: takes effect at once
//   <p-bar label="Uploading" .value=${0.4}></p-bar>                        0..1; undefined: it is not known how much
//   <p-dialog heading="Forget?" ?open=${..} @close=${..}> ... <p-button slot="actions">..</p-button></p-dialog>
//   <p-empty heading="No timers" look="asleep"> ... <p-button slot="action" kind="main">Set one</p-button></p-empty>
//     what will be here, and how it gets here; look: see brand.ts
//   if (await ask({ text, yes: "Forget", no: "Cancel", danger: true })) ...           only for what cannot be undone; see View.undoable
//
// Spaces: --s1 4 px, --s2 8, --s3 12, --s4 16 (--gap), --s5 24, --s6 32, --s7 48. Sizes of type: --t-small 14 px, --t-body 16,
// --t-lead 18, --t-head 20, --t-title 28, --t-figure 36 (class figure). Corners: --round for controls, --radius for cards, --wide for
// what fills the view. --target: least height of what is pressed. Elevations: --bg (none), --surface with --shadow (a card), and
// --surface with --float (what lies above the view). Motion: --quick for what follows a finger, --calm for what comes or goes,
// with --ease; class enter for what has just come.
//
// Colours: --text --muted --line; --accent: what can be done; --fill: a plain button; --soft: chosen; --ok --warn --bad, and what a robot does:
// --listens --thinks --works --speaks, each with a ground such as --ok-soft; --plot1 to --plot5 for lines of plots.

import { LitElement, css, html, nothing, render, type PropertyValues, type TemplateResult } from "lit";
import { brand, type Look } from "./brand.js";

export const base = css`
  :host { display: block; }
  :host([hidden]) { display: none; }
  * { box-sizing: border-box; }
  h1 { font-size: var(--t-title); line-height: 1.2; margin: 0; font-weight: 700; letter-spacing: -0.02em; overflow-wrap: anywhere; }
  h2 { font-size: var(--t-lead); line-height: 1.3; margin: 0; font-weight: 650; letter-spacing: -0.01em; overflow-wrap: anywhere; }
  h3 { font-size: var(--t-body); margin: 0; font-weight: 650; overflow-wrap: anywhere; }
  h1:focus { outline: none; }
  p { margin: 0; overflow-wrap: anywhere; }
  ul, ol { margin: 0; padding: 0; list-style: none; }
  dl { margin: 0; display: grid; grid-template-columns: max-content 1fr; gap: 0.3rem 1rem; }
  dt { color: var(--muted); } dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
  a { color: var(--accent); text-underline-offset: 0.15em; }
  code, pre, .code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: 0.9em; }
  pre { overflow: auto; margin: 0; }
  table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
  th { text-align: start; font-weight: 600; color: var(--muted); font-size: var(--t-small); }
  th, td { padding: var(--s2) var(--s3) var(--s2) 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
  input, select, textarea {
    font: inherit; color: var(--text); background: var(--surface); border: 1px solid var(--control); border-radius: var(--round);
    padding: 0.4rem var(--s3); min-height: var(--target); max-width: 100%; width: 100%; min-width: 0; transition: border-color var(--quick);
  }
  input:hover, select:hover, textarea:hover { border-color: var(--text); }
  textarea { resize: vertical; min-height: 5rem; }
  input[type="checkbox"], input[type="radio"] { width: 1.5rem; height: 1.5rem; min-height: 0; accent-color: var(--accent); margin: 0; flex: none; padding: 0; }
  input.switch { appearance: none; width: 2.75rem; border: 0; border-radius: 999px; background: var(--control); position: relative; cursor: pointer; transition: background var(--quick); }
  input.switch::after { content: ""; position: absolute; inset: 3px auto 3px 3px; aspect-ratio: 1; border-radius: 50%; background: var(--surface); transition: translate var(--quick) var(--ease); }
  input.switch:checked { background: var(--accent); } input.switch:checked::after { translate: 1.25rem; } input.switch:dir(rtl):checked::after { translate: -1.25rem; }
  input[type="range"] { padding: 0; border: 0; accent-color: var(--accent); background: transparent; min-height: var(--target); }
  input[type="color"] { padding: 0.2rem; width: 3.4rem; }
  input:disabled, select:disabled, textarea:disabled { opacity: 0.65; }
  :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 6px; }
  summary { cursor: pointer; min-height: var(--target); padding-block: var(--s2); border-radius: var(--round); }
  .row { display: flex; flex-wrap: wrap; gap: var(--s2); align-items: center; }
  .stack { display: grid; gap: var(--gap); grid-template-columns: minmax(0, 1fr); }
  .grid { display: grid; gap: var(--gap); grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
  .grow { flex: 1; min-width: 0; }
  .muted { color: var(--muted); } .small { font-size: var(--t-small); } .lead { font-size: var(--t-lead); } .figure { font-size: var(--t-figure); font-weight: 700; line-height: 1.1; letter-spacing: -0.03em; font-variant-numeric: tabular-nums; } .bad { color: var(--bad); } .warn { color: var(--warn); } .ok { color: var(--ok); }
  .tag { display: inline-block; max-width: 100%; overflow-wrap: anywhere; padding: 0.1rem 0.6rem; border-radius: 999px; background: var(--fill); color: var(--text); font-size: var(--t-small); }
  .tag.bad { background: var(--bad-soft); color: var(--bad); } .tag.warn { background: var(--warn-soft); color: var(--warn); } .tag.ok { background: var(--ok-soft); color: var(--ok); }
  .tag.listens { background: var(--listens-soft); color: var(--listens); } .tag.thinks { background: var(--thinks-soft); color: var(--thinks); }
  .tag.works { background: var(--works-soft); color: var(--works); } .tag.speaks { background: var(--speaks-soft); color: var(--speaks); }
  .enter { animation: enter var(--calm) var(--ease); } @keyframes enter { from { opacity: 0; translate: 0 var(--s2); } }
  .scroll { overflow-x: auto; }
  .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
  @media (prefers-reduced-motion: reduce) { *, ::before, ::after { animation: none !important; transition: none !important; } }
`;

export class Card extends LitElement {
  static properties = { heading: {}, tone: { reflect: true } };
  declare heading: string | undefined;
  declare tone: "warn" | "bad" | "accent" | undefined;
  static styles = [base, css`
    :host { background: var(--surface); border-radius: var(--radius); box-shadow: var(--shadow); padding: var(--s4) 1.25rem; min-width: 0; position: relative; }
    :host([tone])::before { content: ""; position: absolute; inset-block: var(--s4); inset-inline-start: 0; width: 4px; border-start-end-radius: 4px; border-end-end-radius: 4px; background: var(--mark); }
    :host([tone="warn"]) { --mark: var(--warn); } :host([tone="bad"]) { --mark: var(--bad); } :host([tone="accent"]) { --mark: var(--accent); }
    header { display: flex; flex-wrap: wrap; gap: var(--s2) var(--s3); align-items: center; justify-content: space-between; margin-bottom: var(--s3); }
  `];
  render() {
    return html`${this.heading ? html`<header><h2>${this.heading}</h2><slot name="actions"></slot></header>` : nothing}<slot></slot>`;
  }
}

export class Button extends LitElement {
  static shadowRootOptions = { ...LitElement.shadowRootOptions, delegatesFocus: true };
  static formAssociated = true;
  static properties = { kind: {}, type: {}, label: {}, busy: { type: Boolean, reflect: true }, disabled: { type: Boolean, reflect: true }, pressed: {} };
  declare kind: "plain" | "main" | "quiet" | "danger" | undefined;
  declare type: "button" | "submit" | undefined;
  declare label: string | undefined; // accessible name of a button that shows only an icon
  declare busy: boolean;
  declare disabled: boolean;
  declare pressed: "true" | "false" | undefined; // state of a toggle button
  static styles = [base, css`
    :host { display: inline-block; }
    button {
      font: inherit; font-weight: 600; border-radius: var(--round); border: 1px solid transparent; background: var(--fill); color: var(--text); min-height: var(--target); min-width: var(--target);
      padding: 0.35rem var(--s4); cursor: pointer; width: 100%; display: inline-flex; gap: var(--s2); align-items: center; justify-content: center; transition: background var(--quick), filter var(--quick), scale var(--quick);
    }
    button:hover { filter: brightness(0.96); } button:active:not(:disabled) { scale: 0.97; }
    .main { background: var(--accent); color: var(--on-accent); } .main:hover { filter: brightness(1.1); }
    .quiet { background: transparent; color: var(--accent); padding-inline: var(--s3); } .quiet:hover { background: var(--soft); filter: none; }
    .danger { background: transparent; color: var(--bad); border-color: currentcolor; } .danger:hover { background: var(--bad-soft); filter: none; }
    [aria-pressed="true"] { background: var(--soft); border-color: var(--accent); }
    @media (forced-colors: active) { button { border-color: ButtonText; } }
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
  static properties = { heading: {}, look: {} };
  declare heading: string | undefined;
  declare look: Look | undefined;
  static styles = [base, css`
    :host { text-align: center; padding: var(--s6) var(--s4); color: var(--muted); background: var(--raised); border-radius: var(--radius); }
    h2 { color: var(--text); margin: var(--s3) 0 var(--s1); } div { max-width: 34rem; margin-inline: auto; }
    .eyes { transform-box: fill-box; transform-origin: center; animation: blink 5s infinite; }
    ::slotted([slot="action"]) { margin-top: var(--s4); }
    @keyframes blink { 0%, 94%, 100% { transform: none; } 97% { transform: scaleY(0.1); } }
  `];
  render() {
    return html`${brand(72, this.look)}${this.heading ? html`<h2>${this.heading}</h2>` : nothing}<div><slot></slot></div><slot name="action"></slot>`;
  }
}

let fields = 0;

// Field labels the control in it. The label is added beside the control, because a label and its control must be in the
// same tree.
export class Field extends LitElement {
  static properties = { label: {}, hint: {}, error: {} };
  declare label: string | TemplateResult | undefined;
  declare hint: string | undefined;
  declare error: string | TemplateResult | undefined; // a part of it may be in another language
  private readonly number = ++fields;
  private own: HTMLLabelElement | undefined;
  private note: HTMLParagraphElement | undefined;
  static styles = [base, css`
    :host { display: block; min-width: 0; }
    ::slotted(label) { display: block; font-weight: 600; font-size: var(--t-small); margin-bottom: var(--s1); }
    ::slotted(.p-note) { font-size: var(--t-small); color: var(--muted); margin: var(--s1) 0 0; overflow-wrap: anywhere; }
    ::slotted(.p-note.error) { color: var(--bad); }
    :host([inline]) { display: flex; flex-wrap: wrap; gap: 0 var(--s3); align-items: center; min-height: var(--target); }
    :host([inline]) ::slotted(label) { margin: 0; order: 2; font-weight: 500; font-size: var(--t-body); flex: 1; min-width: 0; } :host([inline]) ::slotted(.p-note) { order: 3; flex-basis: 100%; }
  `];

  protected updated(changed: PropertyValues): void {
    super.updated(changed);
    this.tie();
  }

  private tie(): void {
    const control = this.querySelector<HTMLElement>("input, select, textarea, output");
    if (!control) return;
    control.id ||= `field-${this.number}`;
    this.own ??= Object.assign(document.createElement("label"), { slot: "label" });
    if (!this.own.isConnected) this.append(this.own); // a template that puts in another control removes it
    this.own.htmlFor = control.id;
    render(this.label ?? "", this.own);
    const note = this.error || this.hint || "";
    if (!note && !this.note) return;
    this.note ??= Object.assign(document.createElement("p"), { slot: "note", id: `note-${this.number}` });
    if (!this.note.isConnected) this.append(this.note);
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
    div { height: var(--s2); border-radius: 999px; background: var(--fill); overflow: hidden; }
    i { display: block; height: 100%; background: var(--accent); border-radius: 999px; transition: width var(--calm) var(--ease); }
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
    dialog { border: 0; border-radius: var(--wide); background: var(--surface); color: var(--text); box-shadow: var(--float); padding: var(--s5); width: min(34rem, calc(100vw - 2rem)); max-height: calc(100dvh - 2rem); overflow: auto; animation: come var(--calm) var(--ease); }
    dialog::backdrop { background: rgb(0 0 0 / 45%); animation: dim var(--calm); }
    h2 { margin-bottom: var(--s3); font-size: var(--t-head); }
    footer { display: flex; flex-wrap: wrap; gap: var(--s2); justify-content: flex-end; margin-top: var(--s5); }
    @keyframes come { from { opacity: 0; translate: 0 var(--s5); } } @keyframes dim { from { opacity: 0; } }
    @media (max-width: 599px) {
      dialog { margin-block-end: 0; width: 100vw; max-width: none; border-end-start-radius: 0; border-end-end-radius: 0; padding-bottom: calc(var(--s5) + env(safe-area-inset-bottom)); }
      footer ::slotted(*) { flex: 1; }
    }
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
