import { css } from "lit";

// --bar is the height of the bar in the narrow layout. Views use it to leave space for the bar.
export const styles = css`
  .skip { position: absolute; inset-inline-start: var(--s4); top: -4rem; background: var(--accent); color: var(--on-accent); padding: var(--s2) var(--s4); border-radius: 0 0 var(--round) var(--round); z-index: 30; }
  .skip:focus { top: 0; }
  .frame { display: grid; grid-template-columns: 15.5rem minmax(0, 1fr); min-height: 100dvh; }
  .frame.outside { grid-template-columns: minmax(0, 1fr); }
  .side { position: sticky; top: 0; height: 100dvh; overflow-y: auto; padding: var(--s4) var(--s3); background: var(--surface); box-shadow: var(--shadow); display: flex; flex-direction: column; gap: var(--s2); }
  .brand { display: flex; gap: var(--s3); align-items: center; font-weight: 700; font-size: var(--t-lead); text-decoration: none; color: var(--text); padding: var(--s1) var(--s2); border-radius: var(--round); min-width: 0; }
  .brand span { overflow-wrap: anywhere; min-width: 0; }
  .mark { flex: none; }
  nav h2 { font-size: 0.78rem; font-weight: 600; color: var(--muted); margin: var(--s3) 0 var(--s1) 0.6rem; letter-spacing: 0.02em; }
  nav li a { display: flex; gap: var(--s3); align-items: center; padding: 0.38rem 0.6rem; border-radius: var(--round); text-decoration: none; color: var(--text); transition: background var(--quick); }
  nav li a span { min-width: 0; overflow-wrap: anywhere; }
  nav a:hover { background: var(--raised); }
  nav li a[aria-current] { background: var(--soft); font-weight: 650; }
  nav .icon { flex: none; color: var(--muted); }
  nav a[aria-current] .icon { color: var(--accent); }
  .badge { background: var(--bad); color: var(--surface); border-radius: 999px; min-width: 1.35rem; padding: 0 0.35rem; font-size: 0.75rem; line-height: 1.35rem; font-weight: 700; text-align: center; margin-inline-start: auto; flex: none; animation: pop var(--calm) var(--ease); }
  @keyframes pop { from { scale: 0; } }
  .apart { border-top: 1px solid var(--line); margin-top: var(--s3); padding-top: var(--s2); }
  .choices { display: grid; gap: var(--s2); margin-top: auto; padding: var(--s2) var(--s2) 0; }
  .choices label { display: grid; grid-template-columns: 5rem minmax(0, 1fr); align-items: center; font-size: var(--t-small); color: var(--muted); }
  .choices select { min-height: 2.1rem; padding: 0.2rem 0.4rem; font-size: var(--t-small); }
  .choices p-field label { display: block; font-size: var(--t-small); }
  .middle { min-width: 0; display: flex; flex-direction: column; }
  main { padding: var(--s5) clamp(1rem, 3vw, 2.4rem) var(--s7); max-width: 84rem; width: 100%; flex: 1; min-width: 0; margin-inline: auto; }
  main.alone { padding: var(--s7) var(--s4); text-align: center; color: var(--muted); }
  .outside main { display: grid; place-items: center; padding: var(--s4); }
  .outside .choices { grid-auto-flow: column; justify-content: center; padding: var(--s4); gap: var(--s4); }
  .outside .choices label { grid-template-columns: auto auto; gap: var(--s2); }
  .banner { position: sticky; top: 0; z-index: 15; }
  .banner p { display: flex; flex-wrap: wrap; gap: var(--s2); align-items: center; justify-content: center; padding: var(--s2) var(--s4); background: var(--soft); }
  .banner .lost { background: var(--warn-soft); color: var(--warn); }
  .banner:has(.mended) { height: 0; } /* the page does not move once more under a finger */
  .banner .mended { background: var(--ok-soft); color: var(--ok); }
  .banner i { width: 0.9em; height: 0.9em; border-radius: 50%; border: 2px solid currentcolor; border-inline-end-color: transparent; animation: turn 0.9s linear infinite; }
  @keyframes turn { to { transform: rotate(1turn); } }
  .bar { display: none; }
  .all { columns: 2; column-gap: var(--s2); }
  .all div, .all ul { break-inside: avoid; }
  .all li a { padding: 0 var(--s1); min-height: var(--target); gap: var(--s2); font-size: 0.95rem; hyphens: auto; } .all h2 { margin-inline-start: var(--s1); }
  p-dialog .choices { margin-top: var(--s4); } p-dialog .choices select { min-height: var(--target); }
  @media (max-width: 899px) {
    :host { --bar: 3.9rem; }
    .frame { grid-template-columns: minmax(0, 1fr); }
    .side { display: none; }
    .choices select { min-height: var(--target); }
    main { padding: var(--s4) var(--s4) calc(var(--bar) + var(--s6)); }
    .bar { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); position: fixed; inset: auto 0 0; height: calc(var(--bar) + env(safe-area-inset-bottom)); padding-bottom: env(safe-area-inset-bottom); background: var(--surface); box-shadow: var(--shadow); z-index: 10; }
    .bar a, .bar button { position: relative; display: grid; place-content: center; justify-items: center; gap: 0.1rem; font: inherit; font-size: 0.72rem; text-decoration: none; color: var(--muted); background: none; border: 0; cursor: pointer; min-width: 0; }
    .bar span { max-width: 100%; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; padding: 0 2px; }
    .bar a[aria-current] { color: var(--accent); font-weight: 650; }
    .bar a[aria-current] .icon { background: var(--soft); }
    .bar .icon { box-sizing: content-box; padding: 0.2rem 1rem; border-radius: 999px; color: inherit; transition: background var(--calm); }
    .bar .badge { position: absolute; top: 0.3rem; inset-inline-start: calc(50% + 0.35rem); margin: 0; }
    .bar :focus-visible { outline-offset: -3px; }
  }
`;
