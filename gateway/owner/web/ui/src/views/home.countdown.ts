import { css, html } from "lit";
import { serverNow } from "../lib/api.js";
import { base } from "../lib/ui.js";
import { Spoken } from "../lib/view.js";
import { catalogue } from "../lib/words.js";

const say = catalogue("home");

// left formats a remaining time as hours, minutes and seconds.
export function left(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const two = (n: number) => String(n).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const rest = `${two(Math.floor((seconds % 3600) / 60))}:${two(seconds % 60)}`;
  return hours > 0 ? `${hours}:${rest}` : rest;
}

// Countdown shows the time until due, by the server's clock. It is not a live region, because a screen reader would then
// read out every second.
export class Countdown extends Spoken {
  static properties = { due: {} };
  declare due: string;
  private timer: ReturnType<typeof setInterval> | undefined;
  static styles = [base, css`:host { display: inline; font-variant-numeric: tabular-nums; }`];

  connectedCallback(): void {
    super.connectedCallback();
    this.timer = setInterval(() => this.requestUpdate(), 1000);
  }
  disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.timer);
  }
  render() {
    const ms = Date.parse(this.due) - serverNow();
    return html`<span role="timer" aria-live="off">${ms <= 0 ? say("due") : left(ms)}</span>`;
  }
}

customElements.define("p-countdown", Countdown);
