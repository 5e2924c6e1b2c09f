// A table with a cell for each hour of a day, coloured by its number.

import { css, html } from "lit";
import { hourName, type Hours } from "./week.js";

export const heatStyles = css`
  .heat { table-layout: fixed; border-collapse: separate; border-spacing: 2px; font-size: var(--t-small); }
  .heat th, .heat td { border: 0; padding: 0; }
  .heat thead th { font-weight: 400; white-space: nowrap; }
  .heat tbody th { width: 5.5rem; padding-inline-end: var(--s2); font-weight: 500; vertical-align: middle; hyphens: auto; overflow-wrap: anywhere; }
  .heat .names { width: 5.5rem; }
  .heat tbody td { height: 1.5rem; border-radius: 4px; background: var(--fill); }
  .heat td[style] { background: color-mix(in srgb, var(--plot1) calc(25% + 75% * var(--much)), var(--fill)); }
  @media (max-width: 30rem) { .heat { border-spacing: 1px; } .heat tbody th, .heat .names { width: 3.6rem; font-size: 0.75rem; } .heat td { border-radius: 2px; } }
`;

// heat renders the table. label describes it, and tell returns the text of a cell.
export function heat(rows: readonly (readonly [string, Hours])[], label: string, tell: (hour: string, n: number) => string, test: string) {
  const most = Math.max(1, ...rows.flatMap(([, hours]) => Object.values(hours)));
  return html`<table class="heat" data-test=${test}><caption class="hidden">${label}</caption>
    <colgroup><col class="names"></colgroup>
    <thead><tr><td></td>${[0, 6, 12, 18].map((hour) => html`<th colspan="6" scope="colgroup">${hourName(hour)}</th>`)}</tr></thead>
    <tbody>${rows.map(([name, hours]) => html`<tr><th scope="row"><bdi>${name}</bdi></th>${Array.from({ length: 24 }, (_, hour) => {
      const n = hours[hour] ?? 0;
      const text = n > 0 ? tell(hourName(hour), n) : "";
      return n > 0 ? html`<td title=${text} .style=${`--much:${n / most}`}><span class="hidden">${text}</span></td>` : html`<td></td>`;
    })}</tr>`)}</tbody></table>`;
}
