// Colours, sizes and the choice of light or dark. They are custom properties of the document, which the styles of all
// elements use.

import { keep, kept } from "./store.js";

export type Theme = "auto" | "light" | "dark";

const key = "perch.theme";

const light = `
  --bg: #f4f2ec; --surface: #ffffff; --raised: #faf8f4; --fill: #eceae3; --text: #1a1f23; --muted: #565e66;
  --line: #e3e0d8; --control: #80868c; --accent: #08706a; --on-accent: #ffffff; --soft: #dff0ee;
  --ok: #1c6e37; --warn: #855500; --bad: #b3261e; --bad-soft: #fbe9e7; --warn-soft: #fbf0d9; --ok-soft: #e4f3e8;
  --listens: #0f6d3e; --thinks: #6a48cc; --works: #955600; --speaks: #1d63c6;
  --listens-soft: #dcf3e6; --thinks-soft: #ece7fb; --works-soft: #fcecd0; --speaks-soft: #dfebfc;
  --shadow: 0 0 0 1px rgb(60 50 30 / 6%), 0 1px 2px rgb(60 50 30 / 5%), 0 6px 18px rgb(60 50 30 / 5%);
  --float: 0 0 0 1px rgb(60 50 30 / 7%), 0 4px 12px rgb(60 50 30 / 10%), 0 18px 48px rgb(60 50 30 / 18%); --face: #0d0f11;
  --plot1: #08706a; --plot2: #b5541c; --plot3: #5a4fb0; --plot4: #8a6d00; --plot5: #a8326b; color-scheme: light;`;

const dark = `
  --bg: #0f1214; --surface: #191d21; --raised: #21262b; --fill: #2a3036; --text: #eae8e3; --muted: #a6adb4;
  --line: #2b3137; --control: #767e86; --accent: #63cdc5; --on-accent: #06211f; --soft: #173431;
  --ok: #7fd796; --warn: #f0c052; --bad: #ff8f85; --bad-soft: #3c2221; --warn-soft: #37301d; --ok-soft: #1d3325;
  --listens: #5fdc9c; --thinks: #b9a3ff; --works: #ffbd66; --speaks: #7fbcff;
  --listens-soft: #17311f; --thinks-soft: #292240; --works-soft: #382b18; --speaks-soft: #172a40;
  --shadow: 0 0 0 1px rgb(255 255 255 / 5%), 0 1px 2px rgb(0 0 0 / 30%);
  --float: 0 0 0 1px rgb(255 255 255 / 8%), 0 8px 24px rgb(0 0 0 / 45%), 0 18px 48px rgb(0 0 0 / 45%); --face: #000000;
  --plot1: #63cdc5; --plot2: #f0a070; --plot3: #a99ff5; --plot4: #e2c04a; --plot5: #f08cb8; color-scheme: dark;`;

const sizes = `
  --s1: 0.25rem; --s2: 0.5rem; --s3: 0.75rem; --s4: 1rem; --s5: 1.5rem; --s6: 2rem; --s7: 3rem; --gap: var(--s4);
  --t-small: 0.875rem; --t-body: 1rem; --t-lead: 1.125rem; --t-head: 1.25rem; --t-title: 1.75rem; --t-figure: 2.25rem;
  --round: 10px; --radius: 16px; --wide: 24px; --target: 2.5rem; --quick: 0.15s; --calm: 0.3s; --ease: cubic-bezier(0.2, 0.8, 0.2, 1);`;

const sheet = `
  :root { ${light} ${sizes} }
  @media (prefers-color-scheme: dark) { :root:not([data-theme="light"]) { ${dark} } }
  :root[data-theme="dark"] { ${dark} }
  @media (max-width: 899px), (pointer: coarse) { :root { --target: 2.75rem; --t-title: 1.5rem; } }
  html { background: var(--bg); color: var(--text); -webkit-text-size-adjust: 100%; -webkit-tap-highlight-color: transparent; }
  body { margin: 0; font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Hiragino Sans", "Noto Sans CJK JP", "PingFang SC", sans-serif; }`;

// dress adds the style sheet to the document.
export function dress(): void {
  const style = new CSSStyleSheet();
  style.replaceSync(sheet);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, style];
  show(theme());
}

// theme returns the stored choice.
export function theme(): Theme {
  const value = kept(key);
  return value === "light" || value === "dark" ? value : "auto";
}

// setTheme changes and stores the choice.
export function setTheme(t: Theme): void {
  keep(key, t);
  show(t);
}

function show(t: Theme): void {
  if (t === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = t;
}
