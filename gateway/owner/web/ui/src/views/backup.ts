// The view for downloading and restoring backups.

import { css, html, nothing } from "lit";
import { eachPart, fetchOwned, upload } from "../lib/api.js";
import { type Said } from "../lib/said.js";
import { ask } from "../lib/ui.js";
import { View, sentence } from "../lib/view.js";
import { catalogue, clock } from "../lib/words.js";
import { list } from "./list.js";
import { restarted, started } from "./restart.js";
import { size } from "./size.js";

const t = catalogue("backup");

interface Restored {
  created: string;
  files: number;
  bytes: number;
  restarting: boolean;
  next: string;
}

interface Work {
  what: "preparing" | "downloading" | "uploading" | "checking" | "restarting";
  name: string;
  done: number;
  all: number;
  cancel?: AbortController;
}

export class BackupView extends View {
  static properties = { work: { state: true }, made: { state: true }, back: { state: true }, refused: { state: true }, wrong: { state: true } };
  declare private work: Work | undefined;
  declare private made: string; // sentence about the downloaded backup
  declare private back: string; // sentence about the restored backup
  declare private wrong: Said; // error of the download
  declare private refused: Said; // error of the restore

  static styles = [View.styles, list, css`p-bar { margin: 0.4rem 0; }`];

  constructor() {
    super();
    this.made = this.back = this.wrong = this.refused = "";
  }

  protected title_(): string {
    return t("title");
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    this.work?.cancel?.abort();
  }

  protected content(): unknown {
    const down = this.work && (this.work.what === "preparing" || this.work.what === "downloading") ? this.work : undefined;
    const up = this.work && !down ? this.work : undefined;
    return html`<div class="stack">
      <p-card heading=${t("make")}><div class="form">
        <p>${t("makeText")}</p>
        ${this.wrong ? html`<p class="trouble" role="alert">${this.wrong}</p>` : nothing}
        ${this.made ? html`<p role="status" id="made" class="ok">${this.made}</p>` : nothing}
        ${down ? this.bar(down) : html`<div class="row"><p-button kind="main" ?disabled=${!!this.work} @click=${this.download} id="download">${t("download")}</p-button></div>`}
      </div></p-card>
      <p-card heading=${t("restore")}><form class="form" @submit=${this.restore} id="restore">
        <p>${t("restoreText")}</p>
        <p-field label=${t("file")}><input type="file" name="file" accept=".tar,application/x-tar" required ?disabled=${!!this.work} /></p-field>
        ${this.refused ? html`<p class="trouble" role="alert" id="refused">${this.refused}</p>` : nothing}
        ${this.back ? html`<p role="status" id="restored" class="ok">${this.back}</p>` : nothing}
        ${up ? this.bar(up) : html`<div class="row"><p-button kind="danger" type="submit" ?disabled=${!!this.work} data-test="restore">${t("restoreButton")}</p-button></div>`}
      </form></p-card>
    </div>`;
  }

  private bar(w: Work): unknown {
    const text = t(w.what, { name: w.name, done: size(w.done), size: size(w.all) });
    return html`<div><p class="small" role=${w.what === "downloading" ? "none" : "status"}>${text}</p>
      <p-bar label=${t(w.what, { name: w.name, done: "", size: size(w.all) })} .value=${w.all > 0 ? w.done / w.all : undefined}></p-bar>
      ${w.cancel ? html`<p-button @click=${() => w.cancel?.abort()} data-test="cancel">${t("cancel")}</p-button>` : nothing}</div>`;
  }

  // download reads the backup by script and not by a link of the browser, so that an incomplete backup is not saved.
  private async download(): Promise<void> {
    const cancel = new AbortController();
    this.made = this.wrong = "";
    this.work = { what: "preparing", name: "", done: 0, all: 0, cancel };
    try {
      const answer = await fetchOwned("api/v1/backup", { signal: cancel.signal });
      const name = /filename="?([\w.:-]+)"?/.exec(answer.headers.get("Content-Disposition") ?? "")?.[1] ?? "perch-backup.tar";
      const all = Number(answer.headers.get("Content-Length") ?? 0);
      const parts: BlobPart[] = [];
      let done = 0;
      await eachPart(answer, (part) => {
        parts.push(part);
        done += part.length;
        this.work = { what: "downloading", name, done, all, cancel };
      });
      if (all > 0 && done !== all) throw new Error(t("broken"));
      save(new Blob(parts, { type: "application/x-tar" }), name);
      this.made = t("downloaded", { name, size: size(done) });
    } catch (e) {
      if (!cancel.signal.aborted) this.wrong = e instanceof TypeError && this.work?.what === "downloading" ? t("broken") : sentence(e);
    }
    this.work = undefined;
  }

  private async restore(e: Event): Promise<void> {
    e.preventDefault();
    const file = new FormData(e.target as HTMLFormElement).get("file");
    if (this.work || !(file instanceof File) || file.size === 0) return;
    const what = { name: file.name, size: size(file.size) };
    if (!(await ask({ heading: t("really"), text: t("reallyText", what), yes: t("yes"), no: t("no"), danger: true }))) return;
    const cancel = new AbortController();
    this.back = this.refused = "";
    this.work = { what: "uploading", name: file.name, done: 0, all: file.size, cancel };
    try {
      const before = await started();
      const answer = await upload<Restored>("api/v1/restore?restart=true", file, (share) => {
        this.work = share < 1 ? { what: "uploading", name: file.name, done: share * file.size, all: file.size, cancel } : { what: "checking", name: file.name, done: 0, all: 0 };
      }, cancel.signal);
      if (!answer.restarting) {
        this.back = `${t("accepted")} ${answer.next}`;
      } else {
        this.work = { what: "restarting", name: file.name, done: 0, all: 0 };
        if (await restarted(before)) this.back = t("restored", { time: clock(answer.created), files: answer.files, size: size(answer.bytes) });
        else this.refused = t("notBack");
      }
    } catch (why) {
      this.refused = cancel.signal.aborted ? t("cancelled") : sentence(why);
    }
    this.work = undefined;
  }
}

function save(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

customElements.define("p-backup", BackupView);
