// The bar with the stages of a turn until the first sound.

import { css, html, nothing, svg } from "lit";
import { catalogue } from "../lib/words.js";

const say = catalogue("robot");

const order = ["endpoint", "recognize", "first_token", "first_sentence", "first_audio"] as const;

export const stageStyles = css`
  .stages { display: grid; gap: 0.2rem; margin-top: 0.4rem; }
  .stages svg { width: 100%; height: 10px; display: block; border-radius: 5px; background: var(--line); }
  .s0 { fill: var(--plot1); } .s1 { fill: var(--plot2); } .s2 { fill: var(--plot3); } .s3 { fill: var(--plot4); } .s4 { fill: var(--plot5); }
  .legend { display: flex; flex-wrap: wrap; gap: 0.2rem 0.9rem; }
  .legend span { display: inline-flex; gap: 0.35rem; align-items: center; }
  .legend svg { width: 0.8rem; height: 0.8rem; }
`;

function sum(stages: Record<string, number>): number {
  return order.reduce((n, s) => n + (stages[s] ?? 0), 0);
}

// totalOf returns the time from the end of the person's speech to the first sound of the reply.
export function totalOf(stages: Record<string, number>): number {
  return stages["first_packet"] ?? sum(stages);
}

// timeline renders the bar. most is the length of the whole bar in ms, the same for all turns in a list.
export function timeline(stages: Record<string, number>, most: number) {
  const total = totalOf(stages);
  if (total <= 0 && sum(stages) <= 0) return nothing;
  const scale = Math.max(most, sum(stages), total, 1);
  let at = 0;
  const parts = order.flatMap((name, i) => {
    const ms = stages[name] ?? 0;
    if (ms <= 0) return [];
    const x = at;
    at += ms;
    return [svg`<rect class="s${i}" x=${x} y="0" width=${ms} height="10"><title>${say("stage", { name: say(name), ms })}</title></rect>`];
  });
  const list = order.filter((s) => (stages[s] ?? 0) > 0).map((s) => say("stage", { name: say(s), ms: stages[s] ?? 0 })).join(", ");
  return html`<div class="stages small"><svg viewBox="0 0 ${scale} 10" preserveAspectRatio="none" role="img" aria-label=${say("stages", { list, ms: total })}>${parts}</svg>
    <span class="muted" data-test="stages">${say("total", { ms: total })}${(stages["tools"] ?? 0) > 0 ? html` · ${say("stage", { name: say("tools_"), ms: stages["tools"] ?? 0 })}` : nothing}</span></div>`;
}

// legend renders the colours of the stages.
export function legend() {
  return html`<div class="legend small muted" role="group" aria-label=${say("legend")}>
    ${order.map((name, i) => html`<span><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="s${i}" width="10" height="10" rx="3"></rect></svg>${say(name)}</span>`)}</div>`;
}
