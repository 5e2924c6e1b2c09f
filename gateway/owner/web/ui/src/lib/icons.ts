// Icons. They are hidden from screen readers, because the text beside them says the same.

import { svg, html, type TemplateResult } from "lit";

const paths = {
  home: "M4 11 12 4l8 7v8a1 1 0 0 1-1 1h-4v-6H9v6H5a1 1 0 0 1-1-1z",
  robot: "M5 8h14a1 1 0 0 1 1 1v8a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V9a1 1 0 0 1 1-1zM9 12.5v1M15 12.5v1M12 8V5M9 21h6",
  memory: "M6 4h12v16l-6-4-6 4z",
  notifications: "M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4",
  timers: "M12 8v5l3 2M9 3h6M12 21a8 8 0 1 0 0-16 8 8 0 0 0 0 16z",
  turns: "M4 5h12v8H9l-5 4zM16 9h4v10l-4-3H9v-3",
  sensed: "M3 12h4l2-6 4 12 2-6h6",
  firmware: "M12 3v11m0 0 4-4m-4 4-4-4M5 18v2h14v-2",
  engines: "M5 10v4M9 6v12M13 8.500v7M17 5v14M21 10v4M1 11v2",
  connections: "M9 12a4 4 0 0 1 4-4h4a4 4 0 0 1 0 8h-1M15 12a4 4 0 0 1-4 4H7a4 4 0 0 1 0-8h1",
  doctor: "M9 4h6v5h5v6h-5v5H9v-5H4V9h5z",
  logs: "M6 3h9l4 4v14H6zM9 11h7M9 15h7",
  backup: "M4 7h16v4H4zM6 11v9h12v-9M10 15h4",
  settings: "M4 7h9M17 7h3M15 4.500v5M4 17h3M11 17h9M9 14.500v5",
  talk: "M4 5h16v11H10l-5 4v-4H4zM8.500 10.500h.01M12 10.500h.01M15.500 10.500h.01",
  send: "M5 12h13m0 0-5-5m5 5-5 5",
  first: "M5 20V4l13 4-13 4",
  menu: "M4 7h16M4 12h16M4 17h16",
  out: "M14 4H6v16h8M10 12h11m0 0-4-4m4 4-4 4",
  battery: "M3 8h15v8H3zM21 11v2",
  charging: "M3 8h15v8H3zM21 11v2M11 9l-2 3h3l-2 3",
  volume: "M4 10v4h4l5 4V6L8 10zM16.500 9a4 4 0 0 1 0 6M19 6.500a8 8 0 0 1 0 11",
  muted: "M4 10v4h4l5 4V6L8 10zM17 10l4 4M21 10l-4 4",
  signal: "M4 10a12 12 0 0 1 16 0M7 13.500a7.500 7.500 0 0 1 10 0M12 18h.01",
  phone: "M8 3h8v18H8zM11 18h2",
};

export type Sign = keyof typeof paths;

export function icon(name: Sign): TemplateResult {
  return html`<svg class="icon" viewBox="0 0 24 24" width="20" height="20" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${svg`<path d=${paths[name]}></path>`}</svg>`;
}
