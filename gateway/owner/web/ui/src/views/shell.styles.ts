import { css } from "lit";

// --bar is the height of the bar in the narrow layout. Views use it to leave space for the bar.
export const styles = css`
  .skip { position: absolute; inset-inline-start: 1rem; top: -4rem; background: var(--accent); color: var(--on-accent); padding: 0.5rem 1rem; border-radius: 0 0 10px 10px; z-index: 30; }
  .skip:focus { top: 0; }
  .frame { display: grid; grid-template-columns: 15.5rem minmax(0, 1fr); min-height: 100dvh; }
  .frame.outside { grid-template-columns: minmax(0, 1fr); }
  .side { position: sticky; top: 0; height: 100dvh; overflow-y: auto; padding: 1rem 0.8rem; border-inline-end: 1px solid var(--line); background: var(--surface); display: flex; flex-direction: column; gap: 0.6rem; }
  .brand { display: flex; gap: 0.7rem; align-items: center; font-weight: 700; font-size: 1.15rem; text-decoration: none; color: var(--text); padding: 0.3rem 0.5rem; border-radius: 10px; min-width: 0; }
  .brand span { overflow-wrap: anywhere; min-width: 0; }
  .mark { flex: none; }
  nav h2 { font-size: 0.78rem; font-weight: 600; color: var(--muted); margin: 0.7rem 0 0.15rem 0.6rem; letter-spacing: 0.02em; }
  nav li a { display: flex; gap: 0.65rem; align-items: center; padding: 0.38rem 0.6rem; border-radius: 10px; text-decoration: none; color: var(--text); }
  nav a:hover { background: var(--raised); }
  nav li a[aria-current] { background: var(--soft); font-weight: 650; }
  nav .icon { flex: none; color: var(--muted); }
  nav a[aria-current] .icon { color: var(--accent); }
  .apart { border-top: 1px solid var(--line); margin-top: 0.7rem; padding-top: 0.5rem; }
  .choices { display: grid; gap: 0.5rem; margin-top: auto; padding: 0.6rem 0.5rem 0; }
  .choices label { display: grid; grid-template-columns: 5rem minmax(0, 1fr); align-items: center; font-size: 0.875rem; color: var(--muted); }
  .choices select { min-height: 2.1rem; padding: 0.2rem 0.4rem; font-size: 0.9rem; }
  .middle { min-width: 0; display: flex; flex-direction: column; }
  main { padding: 1.6rem clamp(1rem, 3vw, 2.4rem) 3rem; max-width: 84rem; width: 100%; flex: 1; min-width: 0; margin-inline: auto; }
  main.alone { padding: 3rem 1rem; text-align: center; color: var(--muted); }
  .outside main { display: grid; place-items: center; padding: 1rem; }
  .outside .choices { grid-auto-flow: column; justify-content: center; padding: 1rem; gap: 1rem; }
  .outside .choices label { grid-template-columns: auto auto; gap: 0.5rem; }
  .banner { position: sticky; top: 0; z-index: 15; }
  .banner p { display: flex; flex-wrap: wrap; gap: 0.7rem; align-items: center; justify-content: center; padding: 0.55rem 1rem; background: var(--soft); }
  .banner .lost { background: var(--warn-soft); color: var(--warn); }
  .banner .mended { background: var(--ok-soft); color: var(--ok); }
  .banner i { width: 0.9em; height: 0.9em; border-radius: 50%; border: 2px solid currentcolor; border-inline-end-color: transparent; animation: turn 0.9s linear infinite; }
  @keyframes turn { to { transform: rotate(1turn); } }
  .bar { display: none; }
  .all { columns: 2; column-gap: 0.5rem; }
  .all div, .all ul { break-inside: avoid; }
  .all li a { padding: 0.38rem 0.3rem; gap: 0.45rem; font-size: 0.95rem; hyphens: auto; } .all span { min-width: 0; overflow-wrap: anywhere; } .all h2 { margin-inline-start: 0.3rem; }
  p-dialog .choices { margin-top: 1rem; }
  @media (max-width: 899px) {
    :host { --bar: 3.9rem; }
    .frame { grid-template-columns: minmax(0, 1fr); }
    .side { display: none; }
    main { padding: 1rem 1rem calc(var(--bar) + 2rem); }
    .bar { display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); position: fixed; inset: auto 0 0; height: calc(var(--bar) + env(safe-area-inset-bottom)); padding-bottom: env(safe-area-inset-bottom); background: var(--surface); border-top: 1px solid var(--line); z-index: 10; }
    .bar a, .bar button { display: grid; place-content: center; justify-items: center; gap: 0.1rem; font: inherit; font-size: 0.72rem; text-decoration: none; color: var(--text); background: none; border: 0; cursor: pointer; min-width: 0; }
    .bar span { max-width: 100%; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; padding: 0 2px; }
    .bar a[aria-current] { color: var(--accent); font-weight: 650; }
    .bar :focus-visible { outline-offset: -3px; }
  }
`;
