import { css } from "lit";

export const style = css`
  :host { max-width: 78rem; margin: 0 auto; padding: 1rem clamp(0.8rem, 3vw, 2rem) 3rem; }
  header { display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; align-items: baseline; margin-bottom: 1.2rem; }
  header a { display: inline-block; padding: 0.2rem 0; }
  main { display: grid; gap: 1.2rem; grid-template-columns: minmax(0, 1fr); }
  .left { display: grid; gap: 1.2rem; align-content: start; min-width: 0; grid-template-columns: minmax(0, 1fr); }
  @media (min-width: 60rem) {
    main { grid-template-columns: minmax(0, 1.1fr) minmax(0, 1fr); }
    .wide { grid-column: 1 / -1; }
  }
  .stage { background: radial-gradient(circle at 50% 35%, var(--surface), var(--raised) 75%); border: 1px solid var(--line); border-radius: calc(var(--radius) * 1.4);
    box-shadow: var(--shadow); padding: 1.2rem 1rem 1.4rem; display: grid; justify-items: center; gap: 0.8rem; text-align: center; overflow: hidden; }
  stack-chan-face { width: min(100%, 30rem, 62vh); cursor: grab; touch-action: none; user-select: none; -webkit-user-select: none; }
  stack-chan-face:active { cursor: grabbing; }
  .status { max-width: 46ch; min-height: 1.5em; }
  .big { font-size: 2rem; letter-spacing: 0.25em; font-weight: 700; }
  .buttons { justify-content: center; }
  .talk { font: inherit; font-weight: 650; font-size: 1.1rem; border: 0; border-radius: 999px; padding: 0.75rem 2.2rem; min-height: 3.2rem; cursor: pointer;
    background: var(--accent); color: var(--on-accent); touch-action: none; user-select: none; -webkit-user-select: none; }
  .talk.hang, .talk.interrupt { background: var(--surface); color: var(--text); box-shadow: inset 0 0 0 2px var(--control); }
  .talk.held { box-shadow: 0 0 0 6px var(--soft); }
  .talk:disabled { opacity: 0.6; cursor: default; }
  .talk:focus-visible { border-radius: 999px; }
  .notice { background: var(--warn-soft); border-radius: var(--radius); padding: 0.8rem 1rem; }
  .log { height: clamp(15rem, 42vh, 26rem); overflow: auto; display: flex; flex-direction: column; gap: 0.55rem; }
  @media (min-width: 60rem) { .log { height: min(28rem, 60vh); } }
  :host([small]) { width: min(100%, 26rem); padding: 0; } :host([small]) stack-chan-face { width: min(100%, 18rem); }
  .log p { padding: 0.45rem 0.8rem; border-radius: 12px; max-width: 88%; align-self: flex-start; background: var(--raised); border: 1px solid var(--line); }
  .log p.muted { border: 0; background: none; padding-inline: 0; }
  .log .you { align-self: flex-end; background: var(--soft); border-color: transparent; }
  .log .tool { font-size: 0.85rem; background: none; border-style: dashed; max-width: 100%; }
  .log .alert, .log .reminder { background: var(--warn-soft); border-color: transparent; }
  .log b { font-size: 0.8rem; font-weight: 650; margin-inline-end: 0.6em; color: var(--muted); } .log .you b, .log .alert b, .log .reminder b { color: inherit; }
  .log time { font-size: 0.75rem; color: var(--muted); margin-inline-end: 0.6em; } .log .you time, .log .alert time, .log .reminder time { color: inherit; }
  [data-test="played"] { margin-bottom: 0.6rem; }
  form.write { display: flex; gap: 0.6rem; margin-top: 0.8rem; }
`;
