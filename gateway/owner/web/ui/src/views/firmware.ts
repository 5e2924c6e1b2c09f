// The view of the firmware catalogue: the images, their rollout, and the versions on the robots.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { get, send, upload } from "../lib/api.js";
import { devices, nameIn, nameOf, type Device } from "../lib/robots.js";
import { type Said } from "../lib/said.js";
import { ask } from "../lib/ui.js";
import { View, sentence } from "../lib/view.js";
import { ago, catalogue } from "../lib/words.js";
import { planForm, readPlan, type Image, type Rollout } from "./firmware.plan.js";
import { list } from "./list.js";
import { size } from "./size.js";

const t = catalogue("firmware");

interface Update {
  installed_version: string;
  latest_version: string;
  sha256?: string;
  stage?: string;
  bytes?: number;
  size?: number;
}

interface Progress {
  version: string;
  share: number;
}

const stages = ["offered", "downloading", "downloaded", "installed", "rolled_back", "failed"] as const;

export class FirmwareView extends View {
  static properties = {
    images: { state: true }, robots: { state: true }, updates: { state: true }, progress: { state: true }, sending: { state: true }, refused: { state: true },
  };
  declare private images: Image[];
  declare private robots: Device[];
  declare private updates: ReadonlyMap<string, Update>;
  declare private progress: ReadonlyMap<string, Progress>;
  declare private sending: { name: string; share: number; cancel: AbortController } | undefined;
  declare private refused: Said;

  static styles = [View.styles, list, css`
    .image { border-top: 1px solid var(--line); padding: 0.9rem 0; display: grid; gap: 0.6rem; }
    .image:first-of-type { border-top: 0; padding-top: 0; }
    .image header { display: flex; flex-wrap: wrap; gap: 0.4rem 1rem; align-items: baseline; justify-content: space-between; }
    fieldset { border: 1px solid var(--line); border-radius: 10px; margin: 0; padding: 0.6rem 0.9rem; display: grid; gap: 0.5rem; min-width: 0; }
    legend { font-weight: 600; font-size: 0.9rem; padding: 0 0.3rem; }
    .share { display: flex; gap: 0.8rem; align-items: center; }
    output { font-variant-numeric: tabular-nums; min-width: 3.2rem; text-align: end; font-weight: 600; }
  `];

  constructor() {
    super();
    this.images = [];
    this.robots = [];
    this.updates = new Map();
    this.progress = new Map();
    this.refused = "";
    this.reloadOn(
      ["robot_seen", "robot_adopted", "robot_forgotten", "robot_renamed", "firmware_offered", "firmware_installed", "firmware_rolled_back", "firmware_failed"],
      ["firmware", "robot"],
    );
  }

  protected title_(): string {
    return t("title");
  }

  protected async load(): Promise<void> {
    const [images, all] = await Promise.all([get<Image[] | null>("api/v1/firmware"), devices()]);
    const robots = all.filter((d) => d.firmware);
    const updates = await Promise.all(
      robots.map(async (d): Promise<[string, Update] | undefined> => {
        try {
          return [d.id, await get<Update>(`api/v1/devices/${encodeURIComponent(d.id)}/firmware`)];
        } catch {
          return undefined; // the robot may just have been deleted; its row then shows only the installed version
        }
      }),
    );
    this.updates = new Map(updates.filter((u) => u !== undefined));
    this.robots = robots;
    this.images = images ?? [];
  }

  connectedCallback(): void {
    super.connectedCallback();
    this.follow(["firmware_progress"], (e) => {
      const [bytes, of] = [Number(e.data["bytes"]), Number(e.data["size"])];
      if (e.robot) this.progress = new Map([...this.progress, [e.robot, { version: String(e.data["version"]), share: of > 0 ? bytes / of : 0 }]]);
    });
    this.follow(["firmware_installed", "firmware_rolled_back", "firmware_failed"], (e) => {
      this.progress = new Map([...this.progress].filter(([id]) => id !== e.robot));
    });
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    this.sending?.cancel.abort();
  }

  protected content(): unknown {
    return html`<div class="stack">
      <p-card heading=${t("robots")}>${this.robots.length === 0
        ? html`<p-empty heading=${t("noRobots")}>${t("noRobotsHint")}</p-empty>`
        : this.table()}</p-card>
      ${this.form()}
      <p-card heading=${t("catalogue")}>${this.images.length === 0
        ? html`<p-empty heading=${t("none")}>${t("noneHint")}</p-empty>`
        : html`<div id="images">${repeat(this.images, (i) => i.sha256, (i) => this.image(i))}</div>`}</p-card>
    </div>`;
  }

  private table(): unknown {
    return html`<table class="blocks" role="table" id="robots" aria-label=${t("robots")}>
      <thead role="rowgroup"><tr role="row">${(["robot", "board", "runs", "state", "act"] as const).map(
        (h) => html`<th role="columnheader" scope="col">${t(h)}</th>`)}</tr></thead>
      <tbody role="rowgroup">${repeat(this.robots, (d) => d.id, (d) => this.robot(d))}</tbody></table>`;
  }

  // hasImageFor reports whether the catalogue has an image for the board of a robot.
  private hasImageFor(d: Device): boolean {
    return this.images.some((i) => !i.boards?.length || i.boards.includes(d.board ?? ""));
  }

  private robot(d: Device): unknown {
    const u = this.updates.get(d.id);
    const running = this.progress.get(d.id);
    const newer = u?.sha256 && u.latest_version !== u.installed_version ? u : undefined;
    const stage = stages.find((s) => s === newer?.stage);
    return html`<tr role="row" data-test="robot" data-id=${d.id}>
      <th role="rowheader" scope="row">${nameOf(d)}</th>
      <td role="cell" data-head=${t("board")}>${d.board}</td>
      <td role="cell" data-head=${t("runs")}>${u?.installed_version || d.firmware}</td>
      <td role="cell" data-head=${t("state")}>${running
        ? html`<p-bar label=${t("progress", { name: nameOf(d), version: running.version })} .value=${running.share}></p-bar>
            <span class="small muted">${t("progress", { name: nameOf(d), version: running.version })}</span>`
        : stage
          ? html`<span class="tag ${stage === "failed" || stage === "rolled_back" ? "bad" : ""}">${t(stage)}</span>`
          : newer ? html`<span class="tag warn">${newer.latest_version}</span>` : this.hasImageFor(d) ? html`<span class="tag ok">${t("current")}</span>` : nothing}</td>
      <td role="cell">${newer && d.adopted
        ? html`<p-button label=${t("installOf", { version: newer.latest_version, name: nameOf(d) })} @click=${() => this.install(d, newer)} data-test="install">
            ${t("install", { version: newer.latest_version })}</p-button>`
        : nothing}</td>
    </tr>`;
  }

  private form(): unknown {
    const boards = [...new Set(this.robots.map((d) => d.board).filter((b): b is string => !!b))].sort();
    return html`<p-card heading=${t("upload")}>
      <form class="form" id="upload" @submit=${this.submit}>
        <div class="fields">
          <p-field label=${t("file")}><input type="file" name="file" accept=".bin,application/octet-stream" required ?disabled=${!!this.sending} /></p-field>
          <p-field label=${t("boards")} hint=${t("boardsHint")}><input name="boards" required list="boards" autocomplete="off" .value=${boards.length === 1 ? boards[0]! : ""} ?disabled=${!!this.sending} /></p-field>
          <p-field label=${t("signature")} hint=${t("signatureHint")}><input name="signature" autocomplete="off" ?disabled=${!!this.sending} /></p-field>
        </div>
        <datalist id="boards">${boards.map((b) => html`<option value=${b}></option>`)}</datalist>
        ${this.refused ? html`<p class="trouble" role="alert" id="refused">${this.refused}</p>` : nothing}
        ${this.sending
          ? html`<p class="small" role="status">${this.sending.share < 1 ? t("uploading", { name: this.sending.name }) : t("checking")}</p>
              <p-bar label=${t("uploading", { name: this.sending.name })} .value=${this.sending.share < 1 ? this.sending.share : undefined}></p-bar>
              <div class="row"><p-button @click=${() => this.sending?.cancel.abort()} data-test="cancel">${t("cancel")}</p-button></div>`
          : html`<div class="row"><p-button kind="main" type="submit" data-test="upload">${t("uploadButton")}</p-button></div>`}
      </form></p-card>`;
  }

  private async submit(e: Event): Promise<void> {
    e.preventDefault();
    const form = e.target as HTMLFormElement;
    const data = new FormData(form);
    const file = data.get("file");
    if (this.sending || !(file instanceof File) || file.size === 0) return;
    const query = new URLSearchParams();
    for (const board of String(data.get("boards") ?? "").split(",")) if (board.trim()) query.append("board", board.trim());
    const signature = String(data.get("signature") ?? "").trim();
    if (signature) query.set("signature", signature);
    const cancel = new AbortController();
    this.refused = "";
    this.sending = { name: file.name, share: 0, cancel };
    try {
      const image = await upload<Image>(`api/v1/firmware?${query}`, file, (share) => {
        if (this.sending) this.sending = { ...this.sending, share };
      }, cancel.signal);
      form.reset();
      this.tell(t("added", { version: image.version }));
      this.reload();
    } catch (why) {
      this.refused = cancel.signal.aborted ? t("uploadCancelled") : sentence(why);
    }
    this.sending = undefined;
  }

  private image(i: Image): unknown {
    const trials = Object.entries(i.robots ?? {});
    return html`<section class="image" data-test="image" data-sha=${i.sha256} aria-label=${`${i.project} ${i.version}`}>
      <header><div><h3>${i.version} <span class="muted">${i.project}</span> ${i.signed ? html`<span class="tag ok">${t("signed")}</span>` : nothing}</h3>
        <p class="meta">${t("meta", { boards: (i.boards ?? []).join(", "), chip: i.chip, size: size(i.size), ago: ago(i.added) })}</p></div>
        <p><span class="tag ${i.rollout.paused || i.stopped ? "warn" : i.rollout.auto ? "ok" : ""}">${planned(i.rollout)}</span>
          ${(i.rollout.robots ?? []).length > 0 ? html`<span class="small muted">${t("chosen", { n: i.rollout.robots!.length })}</span>` : nothing}</p>
      </header>
      ${i.stopped ? html`<p class="warning">${i.failed ? t("stopped", { failed: i.failed, first: i.first?.length ?? 0 }) : t("stoppedAlone")}</p>` : nothing}
      ${trials.length > 0 ? html`<details><summary>${t("tried")} (${trials.length})</summary><ul class="items">
        ${trials.map(([id, trial]) => {
          const stage = stages.find((s) => s === trial.stage);
          return html`<li><span>${nameIn(this.robots, id)}</span><span class="row">
            ${trial.from ? html`<span class="small muted">${t("from", { version: trial.from })}</span>` : nothing}
            <span class="tag ${trial.stage === "installed" ? "ok" : trial.stage === "failed" || trial.stage === "rolled_back" ? "bad" : ""}">${stage ? t(stage) : trial.stage}</span></span></li>`;
        })}</ul></details>` : nothing}
      <details data-test="plan"><summary>${t("plan")}</summary>${planForm(i, this.robots, (e) => this.plan(e, i))}</details>
      <div class="row">
        ${i.rollout.auto && i.rollout.percent > 0 && !i.stopped
          ? html`<p-button label=${t(i.rollout.paused ? "resumeOf" : "pauseOf", { version: i.version })} @click=${() => this.pause(i)} data-test="pause">
              ${t(i.rollout.paused ? "resume" : "pause")}</p-button>`
          : nothing}
        <p-button kind="danger" label=${t("removeOf", { version: i.version })} @click=${() => this.remove_(i)} data-test="remove">${t("remove")}</p-button>
      </div>
    </section>`;
  }

  private roll(i: Image, plan: Partial<Rollout>, done: string): Promise<boolean> {
    return this.act(async () => {
      const now = await send<Image>("POST", `api/v1/firmware/${i.sha256}/rollout`, { ...i.rollout, ...plan });
      this.images = this.images.map((one) => (one.sha256 === i.sha256 ? { ...one, ...now } : one));
    }, done);
  }

  private async plan(e: Event, i: Image): Promise<void> {
    e.preventDefault();
    await this.roll(i, { ...readPlan(e.target as HTMLFormElement, i), paused: i.rollout.paused ?? false }, t("saved"));
  }

  private async pause(i: Image): Promise<void> {
    await this.roll(i, { paused: !i.rollout.paused }, t(i.rollout.paused ? "resumedNow" : "pausedNow"));
  }

  private async install(d: Device, u: Update): Promise<void> {
    const what = { version: u.latest_version, name: nameOf(d) };
    if (!(await ask({ heading: t("installReally", what), text: t("installText"), yes: t("act"), no: t("cancel") }))) return;
    let queued = false;
    const done = await this.act(async () => {
      const path = `api/v1/devices/${encodeURIComponent(d.id)}/upgrade`;
      queued = (await send<{ queued: boolean }>("POST", path, { sha256: u.sha256 })).queued;
    });
    if (done) this.tell(t(queued ? "installLater" : "installNow"));
    this.reload();
  }

  private async remove_(i: Image): Promise<void> {
    if (!(await ask({ heading: t("removeReally", { version: i.version }), text: t("removeText"), yes: t("remove"), no: t("cancel"), danger: true }))) return;
    if (await this.act(() => send("DELETE", `api/v1/firmware/${i.sha256}`), t("removed"))) {
      this.images = this.images.filter((one) => one.sha256 !== i.sha256);
      this.reload();
    }
  }
}

function planned(r: Rollout): string {
  if (!r.auto || r.percent === 0) return t("byHand");
  if (r.paused) return t("paused", { percent: r.percent });
  return r.hours ? t("rollingHours", { percent: r.percent, hours: r.hours }) : t("rolling", { percent: r.percent });
}

customElements.define("p-firmware", FirmwareView);
