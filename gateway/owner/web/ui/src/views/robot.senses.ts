// The perceptions of a robot, and the latest picture of its camera.

import { css, html, nothing } from "lit";
import { getBlob } from "../lib/api.js";
import { feed } from "../lib/feed.js";
import { board, follow, inWords, type Sensed } from "../lib/board.js";
import type { Device } from "../lib/robots.js";
import { controlsOf, run, type Tool } from "../lib/tools.js";
import { base } from "../lib/ui.js";
import { Spoken } from "../lib/view.js";
import { catalogue, clock } from "../lib/words.js";

const say = catalogue("robot");

const shown = 12;

export class Senses extends Spoken {
  static properties = { device: { attribute: false } };
  declare device: Device;
  static styles = [base, css`.now { margin-bottom: 0.6rem; } li { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 0 0.8rem; overflow-wrap: anywhere; padding: 0.35rem 0; border-top: 1px solid var(--line); }`];

  constructor() {
    super();
    follow(this, () => this.device?.id);
  }

  render() {
    const list = (board.now(this.device.id)?.sensed ?? []).slice(0, shown);
    const words = this.device.senses ?? [];
    return html`${words.length > 0 ? html`<div class="row now">${words.map((w) => html`<span class="tag"><bdi>${w}</bdi></span>`)}</div>` : nothing}
      <div role="log" aria-live="polite" aria-label=${say("senses")} data-test="sensed">
        ${list.length === 0 ? html`<p class="muted small">${say("noSenses")}</p>` : html`<ul>${list.map(line)}</ul>`}</div>`;
  }
}

function line(s: Sensed) {
  return html`<li class="small"><time class="muted" datetime=${s.at}>${clock(s.at)}</time><span><bdi>${s.name}</bdi>${Object.keys(s.data).length > 0 ? html` <bdi class="muted">${inWords(s.data)}</bdi>` : nothing}</span></li>`;
}

// Camera loads the picture only on request, because most robots have none.
export class Camera extends Spoken {
  static properties = { device: { attribute: false }, tools: { attribute: false }, src: { state: true }, busy: { state: true } };
  declare device: Device;
  declare tools: Tool[];
  declare src: string;
  declare busy: boolean;
  private end: (() => void) | undefined;
  static styles = [base, css`img { width: 100%; border-radius: 12px; display: block; background: var(--raised); } .stack { gap: 0.8rem; }`];

  connectedCallback(): void {
    super.connectedCallback();
    this.end = feed.on(["tool_status"], (e) => {
      // A brain has used the camera.
      if (e.robot === this.device.id && e.data["status"] === "done" && /photo|camera|snapshot/i.test(String(e.data["name"]))) void this.read().catch(() => undefined);
    });
  }
  disconnectedCallback(): void {
    super.disconnectedCallback();
    this.end?.();
    URL.revokeObjectURL(this.src ?? "");
  }

  private async read(): Promise<void> {
    const blob = await getBlob(`api/v1/devices/${encodeURIComponent(this.device.id)}/picture`);
    URL.revokeObjectURL(this.src ?? "");
    this.src = URL.createObjectURL(blob);
  }

  private begin(work: () => Promise<unknown>): void {
    this.wish(async () => {
      this.busy = true;
      try {
        await work();
      } finally {
        this.busy = false;
      }
    });
  }

  private take(): void {
    const photo = controlsOf(this.tools).photo?.tool;
    if (!photo) return;
    const args = Object.hasOwn(photo.schema.properties ?? {}, "question") ? { question: say("question") } : {};
    this.begin(async () => {
      await run(this.device.id, photo.name, args);
      await this.read();
    });
  }

  render() {
    const online = board.now(this.device.id)?.online ?? this.device.connected;
    return html`<div class="stack">${this.src ? html`<img src=${this.src} alt=${say("photo")} data-test="picture">` : nothing}
      <div class="row">${controlsOf(this.tools).photo ? html`<p-button kind="main" data-test="photo" ?busy=${this.busy} ?disabled=${!online} @click=${this.take}>${say("takePhoto")}</p-button>` : nothing}
        <p-button data-test="latest" ?disabled=${this.busy} @click=${() => this.begin(() => this.read())}>${say("latest")}</p-button></div></div>`;
  }
}

customElements.define("p-senses", Senses);
customElements.define("p-camera", Camera);
