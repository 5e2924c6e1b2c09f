// Colours, sizes and the choice of light or dark. They are custom properties of the document, which the styles of all
// elements use.

import { keep, kept } from "./store.js";

export type Theme = "auto" | "light" | "dark";

const key = "perch.theme";

const light = `
  --bg: #f5f4f0; --surface: #ffffff; --raised: #faf9f6; --text: #1c2125; --muted: #586068;
  --line: #dedbd3; --control: #80868c; --accent: #0b6b66; --on-accent: #ffffff; --soft: #e2efed;
  --ok: #1c6e37; --warn: #855500; --bad: #b3261e; --bad-soft: #fbe9e7; --warn-soft: #fbf0d9; --ok-soft: #e4f3e8;
  --shadow: 0 1px 2px rgb(28 33 37 / 6%), 0 4px 16px rgb(28 33 37 / 5%); --face: #0d0f11;
  --plot1: #0b6b66; --plot2: #b5541c; --plot3: #5a4fb0; --plot4: #8a6d00; --plot5: #a8326b; color-scheme: light;`;

const dark = `
  --bg: #121518; --surface: #1b1f23; --raised: #22272c; --text: #e9e7e2; --muted: #a6adb4;
  --line: #2d3338; --control: #767e86; --accent: #63cdc5; --on-accent: #06211f; --soft: #1b3533;
  --ok: #7fd796; --warn: #f0c052; --bad: #ff8f85; --bad-soft: #3c2221; --warn-soft: #37301d; --ok-soft: #1d3325;
  --shadow: 0 1px 2px rgb(0 0 0 / 30%), 0 4px 16px rgb(0 0 0 / 20%); --face: #000000;
  --plot1: #63cdc5; --plot2: #f0a070; --plot3: #a99ff5; --plot4: #e2c04a; --plot5: #f08cb8; color-scheme: dark;`;

const sheet = `
  :root { ${light} --radius: 14px; --gap: 1rem; }
  @media (prefers-color-scheme: dark) { :root:not([data-theme="light"]) { ${dark} } }
  :root[data-theme="dark"] { ${dark} }
  html { background: var(--bg); color: var(--text); -webkit-text-size-adjust: 100%; }
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
