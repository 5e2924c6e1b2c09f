// Styles of lists, tables and filters.

import { css } from "lit";

export const list = css`
  p.p-note { margin-top: 0.25rem; }
  .lead { color: var(--muted); max-width: 46rem; }
  .form { display: grid; gap: 0.8rem; grid-template-columns: minmax(0, 1fr); }
  .fields { display: grid; gap: 0.8rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 11rem), 1fr)); align-items: start; }
  .filters { display: flex; flex-wrap: wrap; gap: 0.8rem; align-items: end; }
  .filters p-field { flex: 1 1 11rem; max-width: 20rem; }
  .items > li { padding: 0.85rem 0; border-bottom: 1px solid var(--line); display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: center; justify-content: space-between; }
  .items > li:first-child { padding-top: 0.2rem; }
  .items > li:last-child { border-bottom: 0; padding-bottom: 0.2rem; }
  .items .what { flex: 1 1 15rem; min-width: 0; }
  .items .text { white-space: pre-wrap; overflow-wrap: anywhere; }
  .meta { color: var(--muted); font-size: 0.875rem; display: flex; flex-wrap: wrap; gap: 0.2rem 0.8rem; align-items: baseline; margin-top: 0.2rem; }
  .warning { background: var(--warn-soft); color: var(--text); border-radius: 10px; padding: 0.7rem 0.9rem; overflow-wrap: anywhere; }
  .trouble { background: var(--bad-soft); color: var(--bad); border-radius: 10px; padding: 0.7rem 0.9rem; overflow-wrap: anywhere; }
  .well { background: var(--raised); border: 1px solid var(--line); border-radius: 10px; padding: 0.7rem 0.9rem; overflow-wrap: anywhere; }
  td > time { white-space: nowrap; }
  .row > .tag, td[data-head] > .tag { overflow-wrap: break-word; } /* not in the middle of a word that fits */
  .num { text-align: end; white-space: nowrap; }
  details > summary { cursor: pointer; font-weight: 600; min-height: 2rem; padding: 0.25rem 0; }
  tbody tr:last-child > * { border-bottom: 0; }
  tbody th { color: var(--text); font-size: inherit; }
  /* On a phone, a row of a table becomes a block, with the heading before each cell. */
  @media (max-width: 44rem) {
    table.blocks, .blocks tbody, .blocks tr, .blocks td, .blocks tbody th { display: block; }
    .blocks thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
    .blocks tr { padding: 0.7rem 0; border-bottom: 1px solid var(--line); }
    .blocks tbody tr:last-child { border-bottom: 0; }
    .blocks td, .blocks tbody th { border: 0; padding: 0.1rem 0; text-align: start; white-space: normal; }
    .blocks td[data-head]::before { content: attr(data-head) ": "; color: var(--muted); font-size: 0.875rem; }
    .blocks td:empty { display: none; }
  }
`;
