// The brand: the face of a Stack-chan on its perch, as a small drawing that needs no script to move.

import { html, svg, type TemplateResult } from "lit";

export type Look = "calm" | "happy" | "asleep" | "curious";

const eyes: Record<Look, TemplateResult> = {
  calm: svg`<circle cx="12" cy="11.500" r="1.800" fill="#fff"></circle><circle cx="20" cy="11.500" r="1.800" fill="#fff"></circle>`,
  happy: svg`<path d="M10 12.500a2 2 0 0 1 4 0M18 12.500a2 2 0 0 1 4 0"></path>`,
  asleep: svg`<path d="M10 11.500a2 2 0 0 0 4 0M18 11.500a2 2 0 0 0 4 0"></path>`,
  curious: svg`<circle cx="13" cy="10" r="1.800" fill="#fff"></circle><circle cx="21" cy="10" r="1.800" fill="#fff"></circle>`,
};

const mouths: Record<Look, string> = { calm: "M13 16.500h6", happy: "M12.500 16a3.800 3.800 0 0 0 7 0", asleep: "M14.500 17h3", curious: "M15 16.500h3.500" };

// brand draws the face on its perch, size px wide and high.
export function brand(size: number, look: Look = "calm"): TemplateResult {
  return html`<svg class="mark" viewBox="0 0 32 32" width=${size} height=${size} fill="none" stroke="#fff" stroke-width="1.600" stroke-linecap="round" aria-hidden="true">
    <rect x="4" y="3" width="24" height="19" rx="5" fill="var(--face)" stroke="none"></rect><g class="eyes" stroke-width="1.400">${eyes[look]}</g>
    ${svg`<path d=${mouths[look]}></path>`}<path d="M16 22v3M3 27.500h26" stroke="var(--accent)" stroke-width="2.600"></path></svg>`;
}
