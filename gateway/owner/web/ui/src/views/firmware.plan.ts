// The form for the rollout plan of a firmware image.

import { html, nothing } from "lit";
import { nameOf, type Device } from "../lib/robots.js";
import { catalogue } from "../lib/words.js";

const t = catalogue("firmware");

export interface Rollout {
  boards: string[] | null;
  robots?: string[] | null;
  percent: number;
  hours?: string;
  auto: boolean;
  force?: boolean;
  paused?: boolean;
}

export interface Trial {
  stage: string;
  from: string;
}

export interface Image {
  sha256: string;
  size: number;
  boards: string[] | null;
  chip: string;
  project: string;
  version: string;
  added: string;
  signed: boolean;
  rollout: Rollout;
  stopped?: string;
  first?: string[];
  failed?: number; // how many of the first robots failed; missing if an earlier version of Perch has stopped the rollout
  robots?: Record<string, Trial> | null;
}

export function planForm(i: Image, all: readonly Device[], submit: (e: Event) => void): unknown {
  const boards = i.boards ?? [];
  const robots = all.filter((d) => d.adopted && d.board && boards.includes(d.board));
  const percent = i.rollout.auto || i.rollout.percent > 0 ? i.rollout.percent : 100;
  return html`<form class="form" @submit=${submit}>
    <p-field inline label=${t("auto")}><input type="checkbox" name="auto" .checked=${i.rollout.auto} /></p-field>
    <p-field label=${t("percent")} hint=${t("percentHint")}><input type="number" name="percent" min="0" max="100" step="1" required .value=${String(percent)} /></p-field>
    <p-field label=${t("hours")} hint=${t("hoursHint")}><input name="hours" autocomplete="off" .value=${i.rollout.hours ?? ""} placeholder="02:00-05:00" /></p-field>
    ${boards.length > 1
      ? html`<fieldset><legend>${t("onlyBoards")}</legend>${boards.map((b) => html`<p-field inline label=${b}>
          <input type="checkbox" name="board" value=${b} .checked=${(i.rollout.boards ?? []).length === 0 || i.rollout.boards!.includes(b)} /></p-field>`)}</fieldset>`
      : nothing}
    ${robots.length > 0
      ? html`<fieldset><legend>${t("onlyRobots")}</legend><p class="small muted">${t("onlyRobotsHint")}</p>${robots.map((d) => html`<p-field inline label=${nameOf(d)}>
          <input type="checkbox" name="robot" value=${d.id} .checked=${(i.rollout.robots ?? []).includes(d.id)} /></p-field>`)}</fieldset>`
      : nothing}
    <p-field inline label=${t("force")}><input type="checkbox" name="force" .checked=${i.rollout.force ?? false} /></p-field>
    <div class="row"><p-button kind="main" type="submit" data-test="save">${t("save")}</p-button></div>
  </form>`;
}

// readPlan returns the plan in the form. Robots of the plan that the form does not show stay in the plan.
export function readPlan(form: HTMLFormElement, i: Image): Rollout {
  const data = new FormData(form);
  const shownRobots = [...form.querySelectorAll<HTMLInputElement>("input[name=robot]")].map((b) => b.value);
  const boards = form.querySelector("input[name=board]") ? data.getAll("board").map(String) : i.rollout.boards ?? [];
  return {
    auto: data.get("auto") !== null,
    percent: Number(data.get("percent")),
    hours: String(data.get("hours") ?? "").trim(),
    boards: boards.length === (i.boards ?? []).length ? [] : boards,
    robots: [...(i.rollout.robots ?? []).filter((id) => !shownRobots.includes(id)), ...data.getAll("robot").map(String)],
    force: data.get("force") !== null,
  };
}
