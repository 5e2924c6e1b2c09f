// <p-plot>: a plot of lines over a day. It is a separate module, so that uPlot is loaded only when it is needed.

import { LitElement, css, html, unsafeCSS, type PropertyValues } from "lit";
import uPlot from "uplot";
import sheet from "uplot/dist/uPlot.min.css" with { type: "text" };
import { locale } from "../lib/words.js";

export interface Lines {
  name: string; // label of the time
  at: number[]; // seconds since 1970
  lines: { name: string; values: (number | null)[] }[];
}

export class Plot extends LitElement {
  static properties = { data: { attribute: false }, label: {} };
  declare data: Lines | undefined;
  declare label: string | undefined;
  private plot: uPlot | undefined;
  private readonly size = new ResizeObserver(() => this.resize());
  private readonly dark = matchMedia("(prefers-color-scheme: dark)");
  private readonly theme = new MutationObserver(() => this.draw());
  private readonly draw = () => this.make();

  static styles = [unsafeCSS(sheet), css`
    :host { display: block; min-width: 0; }
    .u-legend { color: var(--text); text-align: start; }
    .u-legend th { color: var(--muted); font-weight: 500; }
    .uplot { font: inherit; }
  `];

  connectedCallback(): void {
    super.connectedCallback();
    this.size.observe(this);
    this.dark.addEventListener("change", this.draw);
    this.theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    if (this.hasUpdated) this.make();
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    this.size.disconnect();
    this.theme.disconnect();
    this.dark.removeEventListener("change", this.draw);
    this.plot?.destroy();
    this.plot = undefined;
  }

  protected updated(changed: PropertyValues): void {
    super.updated(changed);
    this.make();
  }

  render() {
    return html`<div id="plot" role="img" aria-label=${this.label ?? ""}></div>`;
  }

  private resize(): void {
    const width = this.clientWidth;
    if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: height(width) });
  }

  // make replaces the plot. That is also needed for a change of colours, which uPlot reads only once.
  private make(): void {
    const place = this.renderRoot.querySelector<HTMLElement>("#plot");
    const data = this.data;
    if (!place || !data || !this.isConnected) return;
    this.plot?.destroy();
    const colour = (name: string) => getComputedStyle(this).getPropertyValue(name).trim();
    const number = new Intl.NumberFormat(locale());
    const time = new Intl.DateTimeFormat(locale(), { hour: "2-digit", minute: "2-digit" });
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const width = this.clientWidth || 320;
    this.plot = new uPlot({
      width,
      height: height(width),
      padding: [12, 12, 0, 0],
      cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_, __, most) => [0, Math.max(100, most * 1.1)] } },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((s) => time.format(s * 1000)), space: 60 },
        { ...axis, values: (_, ticks) => ticks.map((ms) => number.format(ms)), size: 60 },
      ],
      series: [
        { value: (_, s) => (s === null || s === undefined ? "–" : time.format(s * 1000)), label: data.name },
        ...data.lines.map((line, i): uPlot.Series => ({
          label: line.name,
          stroke: colour(`--plot${i + 1}`),
          width: 2,
          dash: i === 0 ? undefined : [6, 4], // distinguishes the lines without colours
          spanGaps: true,
          points: { show: true, size: 7, fill: colour(`--plot${i + 1}`) },
          value: (_, ms) => (ms === null || ms === undefined ? "–" : `${number.format(ms)} ms`),
        })),
      ],
    }, [data.at, ...data.lines.map((line) => line.values)], place);
  }
}

function height(width: number): number {
  return width < 500 ? 200 : 260;
}

customElements.define("p-plot", Plot);
