// "Point a robot here": the address to enter in a robot, and its QR code.

import { css, html, nothing, svg } from "lit";
import { get, send } from "../lib/api.js";
import { feed } from "../lib/feed.js";
import { type Said } from "../lib/said.js";
import { base } from "../lib/ui.js";
import { Spoken, sentence } from "../lib/view.js";
import { catalogue } from "../lib/words.js";

const say = catalogue("point");

// Entry is what an owner enters in a robot that makes no check-in.
interface Entry {
  address: string;
  token: string;
}

export class Point extends Spoken {
  static properties = { urls: { state: true }, rows: { state: true }, failure: { state: true }, copied: { state: true }, entry: { state: true }, entryRows: { state: true }, refused: { state: true } };
  declare urls: string[];
  declare rows: string[];
  declare failure: Said;
  declare copied: string;
  declare entry: Entry | undefined;
  declare entryRows: string[];
  declare refused: Said;
  static styles = [base, css`
    .both { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr) auto; align-items: start; }
    svg { width: 10rem; height: 10rem; background: #fff; border-radius: 10px; padding: 0.6rem; border: 1px solid var(--line); }
    code { display: block; background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: 0.5rem 0.7rem; overflow-wrap: anywhere; margin-top: 0.3rem; }
    .words { display: grid; gap: 0.8rem; }
    .line { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 0.5rem; align-items: center; }
    .line code { margin: 0; }
    details { margin-top: 0.8rem; }
    @media (max-width: 559px) { .both { grid-template-columns: minmax(0, 1fr); } svg { display: none; } } /* a phone does not scan itself */
  `];

  constructor() {
    super();
    this.urls = [];
    this.rows = [];
    this.entryRows = [];
  }

  connectedCallback(): void {
    super.connectedCallback();
    void this.read();
    feed.addEventListener("connected", this.readAgain);
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    feed.removeEventListener("connected", this.readAgain);
  }

  private readonly readAgain = () => void this.read(); // a restart may have changed the address

  private async read(): Promise<void> {
    try {
      this.failure = "";
      this.urls = (await get<{ ota: string[] }>("api/v1/address")).ota;
      const first = this.urls[0];
      if (first) this.rows = (await get<{ rows: string[] }>(`api/v1/qr?text=${encodeURIComponent(first)}`)).rows;
    } catch (e) {
      this.failure = sentence(e);
    }
  }

  // add adds a robot by hand, and shows what is entered in it.
  private async add(e: SubmitEvent): Promise<void> {
    e.preventDefault();
    const name = new FormData(e.target as HTMLFormElement).get("name");
    try {
      this.entry = await send<Entry>("POST", "api/v1/devices", { name });
      this.entryRows = (await get<{ rows: string[] }>(`api/v1/qr?text=${encodeURIComponent(`${this.entry.address}\n${this.entry.token}`)}`)).rows;
      this.refused = "";
    } catch (e) {
      this.refused = sentence(e);
    }
  }

  private byHand() {
    if (this.entry) {
      return html`<div class="both" data-test="by-hand"><div class="words"><p>${say("enter")}</p>${this.address(this.entry.address)}${this.address(this.entry.token)}</div>
        ${this.entryRows.length > 0 ? qr(this.entryRows, say("code", { url: this.entry.address })) : nothing}</div>`;
    }
    return html`<form data-test="add-by-hand" @submit=${(e: SubmitEvent) => void this.add(e)}><p class="muted small">${say("hand")}</p>
      <div class="line"><input name="name" required maxlength="32" aria-label=${say("name")}><p-button type="submit">${say("add")}</p-button></div>
      ${this.refused ? html`<p class="bad" role="alert">${this.refused}</p>` : nothing}</form>`;
  }

  private async copy(url: string): Promise<void> {
    await navigator.clipboard.writeText(url);
    this.copied = url;
  }

  private address(url: string) {
    // Pages from plain http have no clipboard API; the address can be selected instead.
    return html`<div class="line"><code data-test="ota">${url}</code>${navigator.clipboard
      ? html`<p-button @click=${() => void this.copy(url)}><span aria-live="polite">${this.copied === url ? say("copied") : say("copy")}</span></p-button>` : nothing}</div>`;
  }

  render() {
    if (this.failure) return html`<p class="bad">${this.failure}</p>`;
    const [first] = this.urls;
    return html`${this.pointed()}<details data-test="other-ways"><summary>${say("more")}</summary><div class="words">
      ${first ? html`<div class="small muted">${say("tool")}<code>perch-tools robot provision --ota ${first}</code></div>` : nothing}${this.byHand()}</div></details>`;
  }

  private pointed() {
    const [first, ...others] = this.urls;
    if (!first) return nothing;
    return html`<div class="both"><div class="words"><p>${say("how")}</p>${this.address(first)}
        ${others.length > 0 ? html`<p class="muted small">${say("other")}</p>${others.map((u) => this.address(u))}` : nothing}</div>
      ${this.rows.length > 0 ? qr(this.rows, say("code", { url: first })) : nothing}</div>`;
  }
}

// qr draws a QR code. In rows, 1 is a dark module and 0 a light one.
export function qr(rows: string[], label: string) {
  const size = rows.length;
  const d = rows.flatMap((row, y) => [...row].map((cell, x) => (cell === "1" ? `M${x} ${y}h1v1h-1z` : ""))).join("");
  return html`<svg viewBox="-1 -1 ${size + 2} ${size + 2}" role="img" aria-label=${label} shape-rendering="crispEdges">${svg`<path d=${d} fill="#000"></path>`}</svg>`;
}

customElements.define("p-point", Point);
