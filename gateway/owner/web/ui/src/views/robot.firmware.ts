// A robot's firmware, and the progress of an upgrade.

import { css, html, nothing } from "lit";
import { send } from "../lib/api.js";
import { feed, type Event_ } from "../lib/feed.js";
import { base } from "../lib/ui.js";
import { Spoken } from "../lib/view.js";
import { catalogue } from "../lib/words.js";

const say = catalogue("robotFirmware");

export interface Update { installed_version: string; latest_version: string; sha256?: string; stage?: string; bytes?: number; size?: number; rolled_back?: boolean }
export interface Image { sha256: string; version: string; boards?: string[] | null; size: number; name?: string }

const megabyte = 1 << 20;
const kinds = ["firmware_offered", "firmware_progress", "firmware_installed", "firmware_rolled_back", "firmware_failed"];

export class RobotFirmware extends Spoken {
  static properties = { robot: {}, board: {}, update_: { attribute: false }, images: { attribute: false }, latest: { state: true } };
  declare robot: string;
  declare board: string;
  declare update_: Update;
  declare images: Image[];
  declare latest: { kind: string; version: string; bytes: number; size: number; back: boolean } | undefined;
  private end: (() => void) | undefined;
  static styles = [base, css`.stack { gap: 0.7rem; } form { display: grid; gap: 0.6rem; grid-template-columns: minmax(0, 1fr) auto; align-items: end; }`];

  connectedCallback(): void {
    super.connectedCallback();
    this.end = feed.on(kinds, (e) => e.robot === this.robot && this.take(e));
  }
  disconnectedCallback(): void {
    super.disconnectedCallback();
    this.end?.();
  }

  private take(e: Event_): void {
    const d = e.data as { version?: string; bytes?: number; size?: number; rolled_back?: boolean };
    this.latest = { kind: e.kind, version: d.version ?? "", bytes: d.bytes ?? 0, size: d.size ?? 0, back: d.rolled_back ?? false };
  }

  private install(e: Event): void {
    e.preventDefault();
    const sha256 = this.renderRoot.querySelector("select")?.value ?? "";
    let queued = false;
    this.wish(async () => {
      queued = (await send<{ queued: boolean }>("POST", `api/v1/devices/${encodeURIComponent(this.robot)}/upgrade`, { sha256 })).queued;
    }, () => (queued ? say("queued") : say("started")));
  }

  // going renders the progress of an upgrade, from the feed or else from the server's response.
  private going() {
    const u = this.update_;
    const now = this.latest ?? (u.stage ? { kind: u.stage, version: u.latest_version, bytes: u.bytes ?? 0, size: u.size ?? 0, back: u.rolled_back ?? false } : undefined);
    if (!now) return nothing;
    const version = now.version;
    switch (now.kind) {
      case "downloading":
      case "firmware_progress": {
        if (now.size <= 0) return html`<p>${say("downloading", { version })}</p>`;
        const text = say("progress", { version, done: Math.round((now.bytes / megabyte) * 10) / 10, size: Math.round((now.size / megabyte) * 10) / 10 });
        return html`<div data-test="progress"><p-bar label=${text} .value=${now.bytes / now.size}></p-bar><p class="small muted">${now.bytes >= now.size ? say("downloaded", { version }) : text}</p></div>`;
      }
      case "downloaded":
        return html`<p>${say("downloaded", { version })}</p>`;
      case "offered":
      case "firmware_offered":
        return html`<p>${say("offered", { version })}</p>`;
      case "firmware_installed":
        return html`<p class="ok">${say("installedIt", { version })}</p>`;
      case "rolled_back":
      case "firmware_rolled_back":
        return html`<p class="bad">${say("rolled_back", { version })}</p>`;
      case "failed":
      case "firmware_failed":
        return html`<p class="bad">${say(now.back ? "failedBack" : "failedWithout", { version })}</p>`;
    }
    return nothing;
  }

  render() {
    const u = this.update_;
    const fitting = this.images.filter((i) => !i.boards?.length || !this.board || i.boards.includes(this.board));
    const list = fitting.length > 0 ? fitting : this.images;
    return html`<div class="stack"><p>${u.installed_version ? say("installed", { version: u.installed_version }) : say("unknown")}
        ${u.latest_version && u.latest_version !== u.installed_version ? say("newer", { version: u.latest_version }) : fitting.length > 0 && u.installed_version ? say("newest") : nothing}</p>
      <div role="status" aria-live="polite">${this.going()}</div>
      ${list.length === 0 ? html`<p class="muted">${say("none")}</p>` : html`<form @submit=${this.install}><p-field label=${say("image")}><select data-test="image">
        ${list.map((i) => html`<option value=${i.sha256} ?selected=${i.sha256 === u.sha256}>${i.version} · ${(i.boards ?? []).join(", ")} · ${i.sha256.slice(0, 8)}</option>`)}</select></p-field>
        <p-button type="submit" data-test="upgrade">${say("install")}</p-button></form>`}
      <p><a href="#/firmware">${say("all")}</a></p></div>`;
  }
}

customElements.define("p-robot-firmware", RobotFirmware);
