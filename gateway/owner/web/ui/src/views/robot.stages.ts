// The bar with the stages of a turn until the first sound.

import { css, html, nothing, svg } from "lit";
import { catalogue } from "../lib/words.js";

const say = catalogue("robot");

const order = ["endpoint", "recognize", "first_token", "first_sentence", "first_audio"] as const;

// Stage is a part of the wait; rest is what no stage accounts for.
export type Stage = (typeof order)[number] | "rest";
const all: readonly Stage[] = [...order, "rest"];

export const stageStyles = css`
  .stages { display: grid; gap: 0.2rem; margin-top: 0.4rem; }
  .stages svg { width: 100%; height: 10px; display: block; border-radius: 5px; background: var(--fill); }
  .s0 { fill: var(--plot1); } .s1 { fill: var(--plot2); } .s2 { fill: var(--plot3); } .s3 { fill: var(--plot4); } .s4 { fill: var(--plot5); } .s5 { fill: var(--control); }
  .legend { display: flex; flex-wrap: wrap; gap: 0.2rem 0.9rem; }
  .legend span { display: inline-flex; gap: 0.35rem; align-items: center; }
  .legend svg { width: 0.8rem; height: 0.8rem; }
`;

// totalOf returns the time from the end of the person's speech to the first sound of the reply, in ms.
export function totalOf(stages: Record<string, number>): number {
  return stages["first_packet"] ?? order.reduce((n, s) => n + (stages[s] ?? 0), 0);
}

// partsOf returns the stages of the wait in their order. Together they are as long as totalOf: the first packet may leave
// before a stage has ended, or some time after the last.
export function partsOf(stages: Record<string, number>): { stage: Stage; ms: number }[] {
  let left = totalOf(stages);
  return all.flatMap((stage) => {
    const ms = Math.min(left, stage === "rest" ? left : stages[stage] ?? 0);
    left -= ms;
    return ms > 0 ? [{ stage, ms }] : [];
  });
}

// stageName returns the name of a stage in people's words.
export function stageName(stage: Stage): string {
  return say(stage);
}

// timeline renders the bar. most is the length of the whole bar in ms, the same for all turns in a list.
export function timeline(stages: Record<string, number>, most: number) {
  const total = totalOf(stages);
  if (total <= 0) return nothing;
  const parts = partsOf(stages);
  let at = 0;
  const list = parts.map(({ stage, ms }) => say("stage", { name: say(stage), ms: Math.round(ms) })).join(", ");
  return html`<div class="stages small"><svg viewBox="0 0 ${Math.max(most, total)} 10" preserveAspectRatio="none" role="img" aria-label=${say("stages", { list, ms: Math.round(total) })}>
      ${parts.map(({ stage, ms }) => svg`<rect class="s${all.indexOf(stage)}" x=${(at += ms) - ms} y="0" width=${ms} height="10"><title>${say("stage", { name: say(stage), ms: Math.round(ms) })}</title></rect>`)}</svg>
    <span class="muted" data-test="stages">${say("total", { ms: Math.round(total) })}${(stages["tools"] ?? 0) > 0 ? html` · ${say("stage", { name: say("tools_"), ms: Math.round(stages["tools"] ?? 0) })}` : nothing}</span></div>`;
}

// legend renders the colours of the stages, with their names and perhaps their durations in ms.
export function legend(durations?: readonly { stage: Stage; ms: number }[]) {
  const shown = durations ?? all.map((stage) => ({ stage, ms: 0 }));
  return html`<div class="legend small muted" role="group" aria-label=${say("legend")}>
    ${shown.map(({ stage, ms }) => html`<span><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="s${all.indexOf(stage)}" width="10" height="10" rx="3"></rect></svg>${
      durations ? say("stage", { name: say(stage), ms: Math.round(ms) }) : say(stage)}</span>`)}</div>`;
}
