// <p-inspector>: the list of frames.

import { LitElement, css, html } from "lit";
import { base } from "../lib/ui.js";
import { catalogue, languageChanged, languageTarget, locale } from "../lib/words.js";
import type { Frame, Frames } from "./frames.js";

const words = catalogue("webRobot");

const showEach = 250; // ms between two renderings; 17 packets of sound arrive in a second

const signs: Record<Frame["way"], string> = { out: "↑", in: "↓", note: "•" };

export class Inspector extends LitElement {
  static properties = { frames: { attribute: false } };
  declare frames: Frames;
  private timer = 0;
  private answer = "";
  static styles = [base, css`
    .table { position: relative; height: 22rem; overflow: auto; border: 1px solid var(--line); border-radius: 10px; margin-top: 0.7rem; background: var(--raised); }
    table { font: 12px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace; table-layout: fixed; min-width: 30rem; }
    th { position: sticky; top: 0; background: var(--raised); font: 600 0.8rem/1.4 system-ui, sans-serif; }
    th, td { padding: 0.25rem 0.5rem; }
    .t { width: 7rem; } .w { width: 2.2rem; } .k { width: 4.2rem; } .b { width: 3.6rem; text-align: end; }
    .out .w { color: var(--accent); } .in .w { color: var(--warn); } .sound { color: var(--muted); }
    td.c { white-space: pre-wrap; word-break: break-word; }
  `];

  connectedCallback(): void {
    super.connectedCallback();
    this.frames.addEventListener("change", this.later);
    languageTarget.addEventListener(languageChanged, this.later);
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    this.frames.removeEventListener("change", this.later);
    languageTarget.removeEventListener(languageChanged, this.later);
    clearTimeout(this.timer);
    this.timer = 0;
  }

  private readonly later = (): void => {
    if (this.timer || this.offsetParent === null) return;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.requestUpdate();
    }, showEach);
  };

  private atEnd = true;
  protected willUpdate(): void {
    const box = this.renderRoot.querySelector(".table");
    this.atEnd = !box || box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  }

  protected updated(): void {
    const box = this.renderRoot.querySelector(".table");
    if (box && this.atEnd) box.scrollTop = box.scrollHeight;
  }

  render() {
    const f = this.frames;
    return html`<div class="row">
      <p-button data-test="pause" pressed=${f.paused ? "true" : "false"} @click=${this.pause}>${words(f.paused ? "resume" : "pause")}</p-button>
      <p-button data-test="clear" @click=${() => f.clear()}>${words("clear")}</p-button>
      <p-button data-test="copy" @click=${this.copy}>${words("copy")}</p-button>
      <span class="muted small" data-test="frames">${words("frames", { n: f.all.length })}</span>
      <span class="small" role="status">${this.answer}</span>
    </div>
    <div class="table" tabindex="0" role="region" aria-label=${words("protocol")}><table>
      <thead><tr><th class="t" scope="col">${words("time")}</th><th class="w" scope="col"><span class="hidden">${words("way")}</span></th>
        <th class="k" scope="col">${words("kind")}</th><th class="b" scope="col">${words("size")}</th><th scope="col">${words("content")}</th></tr></thead>
      <tbody>${f.all.map((one) => this.row(one))}</tbody></table></div>`;
  }

  private row(f: Frame) {
    return html`<tr class="${f.way} ${f.kind}"><td class="t">${time(f.at)}</td>
      <td class="w"><span aria-hidden="true">${signs[f.way]}</span><span class="hidden">${words(f.way)}</span></td>
      <td class="k">${f.kind}</td><td class="b">${f.bytes}</td><td class="c">${f.text}</td></tr>`;
  }

  private readonly pause = (): void => {
    this.frames.paused = !this.frames.paused;
    this.requestUpdate();
  };

  // copy uses the clipboard API, which exists only in a secure context, or else copies a selection.
  private readonly copy = async (): Promise<void> => {
    const text = this.frames.lines();
    try {
      if (navigator.clipboard) await navigator.clipboard.writeText(text);
      else if (!copySelected(text)) throw new Error("refused");
      this.answer = words("copied");
    } catch {
      this.answer = words("cannotCopy");
    }
    this.requestUpdate();
  };
}

function copySelected(text: string): boolean {
  const area = Object.assign(document.createElement("textarea"), { value: text });
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

function time(at: number): string {
  return new Intl.DateTimeFormat(locale(), { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" }).format(at);
}

customElements.define("p-inspector", Inspector);
