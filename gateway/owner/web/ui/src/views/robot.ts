// The view of a robot: its conversation, body, perceptions, tools and settings.

import { css, html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { get, send } from "../lib/api.js";
import { board, follow, type Record_ } from "../lib/board.js";
import type { Event_ } from "../lib/feed.js";
import { icon } from "../lib/icons.js";
import { nameOf, type Device } from "../lib/robots.js";
import { controlsOf, type Tool } from "../lib/tools.js";
import { week, type Week } from "../lib/week.js";
import { ask } from "../lib/ui.js";
import { told } from "../lib/said.js";
import { View, type Wish } from "../lib/view.js";
import { ago, catalogue } from "../lib/words.js";
import { stateWord, toneOf } from "./home.words.js";
import { moodWord } from "./mood.words.js";
import type { Image, Update } from "./robot.firmware.js";
import type { Character } from "./robot.settings.js";
import "./robot.actions.js";
import "./robot.body.js";
import "./robot.firmware.js";
import "./robot.senses.js";
import "./robot.settings.js";
import "./robot.talk.js";
import "./robot.tools.js";
import "./robot.week.js";

const sayHome = catalogue("home");
const say = catalogue("robot");
const sayOf = catalogue("character");
const sayWeek = catalogue("week");

// Speech is what has become of the text that was last sent to be spoken.
interface Speech {
  text: string;
  state: "sent" | "waiting" | "speaking" | "spoken" | "failed";
  reason: string;
}

const speechWords = { sent: "speechSent", waiting: "speechWaiting", speaking: "speechSpeaking", spoken: "speechSpoken" } as const;

// isOnline reports whether a robot can be reached now.
function isOnline(d: Device): boolean {
  return board.now(d.id)?.online ?? d.connected;
}

export class RobotView extends View {
  static properties = { robot: {}, busy: { state: true }, speech: { state: true } };
  declare robot: string;
  declare busy: string;
  declare private speech: Speech | undefined;
  private device: Device | undefined;
  private tools: Tool[] = [];
  private records: Record_[] = [];
  private update_: Update = { installed_version: "", latest_version: "" };
  private images: Image[] = [];
  private characters: Character[] = [];
  private music: string[] = [];
  private week: Week = { today: "", days: [] };
  static styles = [View.styles, css`
    .page { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1.35fr) minmax(0, 1fr); align-items: start; }
    .column { display: grid; gap: 1rem; grid-template-columns: minmax(0, 1fr); }
    .say { display: grid; gap: 0.6rem; grid-template-columns: minmax(0, 1fr) auto; align-items: end; margin-top: 0.9rem; }
    .facts { display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; align-items: center; margin-bottom: 1rem; }
    .fact { display: inline-flex; gap: 0.3rem; align-items: center; }
    /* On narrow screens the body comes first, then the conversation, and rarely needed cards last. */
    @media (max-width: 1099px) {
      .page { grid-template-columns: minmax(0, 1fr); } .column { display: contents; }
      .body { order: 1; } .talk { order: 2; } .senses, .actions { order: 3; } .camera { order: 4; } .week { order: 5; } .own { order: 6; } .firmware { order: 7; } .details { order: 8; }
    }
  `];

  constructor() {
    super();
    this.busy = "";
    follow(this, () => this.device?.id);
    this.reloadOn(
      ["robot_seen", "robot_adopted", "robot_renamed", "robot_online", "robot_offline", "robot_connected", "robot_disconnected", "tools_listed",
        "firmware_installed", "firmware_rolled_back", "firmware_failed", "firmware_offered"],
      ["robot", "firmware", "characters", "settings"],
    );
    this.addEventListener("wish", (e) => void this.grant((e as CustomEvent<Wish>).detail));
  }

  connectedCallback(): void {
    super.connectedCallback();
    this.follow(["speech"], (e) => this.heardOfSpeech(e));
  }

  private get path(): string {
    return `api/v1/devices/${encodeURIComponent(this.robot)}`;
  }

  protected title_(): string {
    return this.device ? nameOf(this.device) : this.robot;
  }

  protected async load(): Promise<void> {
    const [device, tools, turns, update, images, characters, sums, music] = await Promise.all([
      get<Device>(this.path), get<Tool[]>(`${this.path}/tools`), get<Record_[]>("api/v1/turns?limit=300"), get<Update>(`${this.path}/firmware`), get<Image[]>("api/v1/firmware"),
      get<Character[]>("api/v1/characters"), week(this.robot), get<string[]>("api/v1/music"),
    ]);
    board.learn(device.id, device);
    this.device = device;
    this.tools = tools;
    this.records = turns.filter((t) => t.robot === device.id).reverse();
    this.update_ = update;
    this.images = images;
    this.characters = characters;
    this.week = sums;
    this.music = music;
  }

  private async play(e: Event): Promise<void> {
    const name = (e.target as HTMLSelectElement).value;
    await this.do("music", () => (name ? send("POST", `${this.path}/music`, { name }) : send("DELETE", `${this.path}/music`)), () => "");
    this.requestUpdate(); // shows what it plays again if it cannot play the choice
  }

  private musicChoice(d: Device) {
    const now = board.now(d.id)?.music ?? "";
    return html`<p-field label=${say("music")}><select data-test="music" ?disabled=${this.busy === "music"} .value=${live(now)} @change=${this.play}>
      <option value="" ?selected=${now === ""}>${say("off")}</option>${this.music.map((name) => html`<option value=${name} ?selected=${name === now}>${name}</option>`)}</select></p-field>`;
  }

  private async grant(w: Wish): Promise<void> {
    if (await this.act(w.work)) this.tell(w.done());
  }

  private async do(name: string, work: () => Promise<unknown>, done: () => string): Promise<boolean> {
    if (this.busy !== "") return false;
    this.busy = name;
    const ok = await this.act(work);
    this.busy = "";
    if (ok) this.tell(done());
    return ok;
  }

  private async saying(e: Event): Promise<void> {
    e.preventDefault();
    const input = this.renderRoot.querySelector<HTMLInputElement>("#say");
    const text = input?.value.trim() ?? "";
    if (!input || text === "") return;
    this.speech = { text, state: "sent", reason: "" };
    const ok = await this.do("say", async () => {
      const { queued } = await send<{ queued: boolean }>("POST", `${this.path}/say`, { text });
      if (queued && this.speech?.state === "sent") this.speech = { ...this.speech, state: "waiting" };
    }, () => "");
    if (ok) input.value = "";
    else this.speech = undefined;
  }

  private heardOfSpeech(e: Event_): void {
    if (e.robot !== this.device?.id || e.data["text"] !== this.speech?.text || !this.speech) return;
    this.speech = { text: this.speech.text, state: String(e.data["state"]) as Speech["state"], reason: String(e.data["reason"] ?? "") };
  }

  private speechText(): unknown {
    if (!this.speech) return nothing;
    const name = this.title_();
    return this.speech.state === "failed" ? told(this.speech.reason, (reason) => say("speechFailed", { reason })) : say(speechWords[this.speech.state], { name });
  }

  private identify(): void {
    let queued = false;
    void this.do("identify", async () => {
      queued = (await send<{ queued: boolean }>("POST", `${this.path}/identify`)).queued;
    }, () => (queued ? say("identifiedLater") : say("identified")));
  }

  private async reboot(): Promise<void> {
    if (!(await ask({ text: say("rebootAsk", { name: this.title_() }), yes: say("reboot"), no: say("cancel") }))) return;
    await this.do("reboot", () => send("POST", `${this.path}/reboot`), () => say("rebooted"));
  }

  private async forget(): Promise<void> {
    if (!(await ask({ text: say("forgetAsk", { name: this.title_() }), yes: say("forget"), no: say("cancel"), danger: true }))) return;
    if (await this.do("forget", () => send("DELETE", this.path), () => say("forgotten", { name: this.title_() }))) location.hash = "#/";
  }

  protected actions() {
    const online = this.device !== undefined && isOnline(this.device);
    return html`<p-button data-test="identify" ?busy=${this.busy === "identify"} @click=${this.identify}>${say("identify")}</p-button>
      <p-button data-test="abort" ?busy=${this.busy === "abort"} ?disabled=${!online} @click=${() => this.do("abort", () => send("POST", `${this.path}/abort`), () => say("quieted"))}>${say("quiet")}</p-button>
      <p-button data-test="reboot" ?busy=${this.busy === "reboot"} ?disabled=${!online} @click=${this.reboot}>${say("reboot")}</p-button>
      <p-button kind="danger" data-test="forget" ?busy=${this.busy === "forget"} @click=${this.forget}>${say("forget")}</p-button>`;
  }

  protected content() {
    const d = this.device;
    if (!d) return nothing;
    const c = controlsOf(this.tools);
    return html`${this.facts(d)}
      <div class="page"><div class="column first">
        <p-card class="talk" heading=${say("talk")}><p-talk .robot=${d.id} .records=${this.records}></p-talk>
          <form class="say" @submit=${this.saying}><p-field label=${say("sayTo", { name: nameOf(d) })}><input id="say" data-test="say" maxlength="2000" autocomplete="off"></p-field>
            <p-button kind="main" type="submit" data-test="say-go" ?busy=${this.busy === "say"}>${say("sayGo")}</p-button></form>
          <p class="small" role="status" data-test="speech">${this.speechText()}</p></p-card>
        <p-card class="week" heading=${sayWeek("title")}><p-robot-week .robot=${d.id} .week=${this.week}></p-robot-week>
          <p class="small"><a href="#/turns?robot=${encodeURIComponent(d.id)}">${say("allTurns")}</a></p></p-card>
        ${d.adopted ? html`<p-card class="own" heading=${say("settings")}><p-robot-settings .device=${d} .characters=${this.characters}></p-robot-settings></p-card>` : nothing}
      </div><div class="column second">
        <p-card class="body" heading=${say("body")}><p-body .device=${d} .tools=${this.tools}></p-body>
          ${d.adopted && this.music.length > 0 ? this.musicChoice(d) : nothing}</p-card>
        <p-card class="senses" heading=${say("senses")}><p-senses .device=${d}></p-senses></p-card>
        <p-card class="actions" heading=${sayOf("actions")}><p-actions .character=${d.character ?? ""}></p-actions></p-card>
        ${c.photo ? html`<p-card class="camera" heading=${say("camera")}><p-camera .device=${d} .tools=${this.tools}></p-camera></p-card>` : nothing}
        <p-card class="firmware" heading=${say("version")}><p-robot-firmware .robot=${d.id} .board=${d.board ?? ""} .update_=${this.update_} .images=${this.images}></p-robot-firmware></p-card>
        <p-card class="details"><details data-test="details"><summary>${say("facts")}</summary><div class="stack"><p class="small muted">${say("detailsHow")}</p>${this.details(d)}
          <h3>${say("tools")}</h3><p-tools .robot=${d.id} .tools=${this.tools}></p-tools></div></details></p-card>
      </div></div>`;
  }

  private facts(d: Device) {
    const now = board.now(d.id);
    const status = now?.status ?? d.status;
    const state = now?.state ?? d.state;
    const quiet = !isOnline(d) && state === "idle";
    return html`<div class="facts" role="status"><span class="tag ${toneOf(state)}" data-test="state">${quiet ? sayHome("away") : stateWord(state)}</span>
      ${now?.mood ? html`<span class="tag" data-test="mood">${moodWord(now.mood.dominant)}</span>` : nothing}
      ${typeof status?.battery === "number" ? html`<span class="fact small muted">${icon(status.charging ? "charging" : "battery")}${sayHome(status.charging ? "charging" : "battery", { n: status.battery })}</span>` : nothing}
      ${status?.signal ? html`<span class="fact small muted">${icon("signal")}<bdi>${status.signal}</bdi></span>` : nothing}</div>`;
  }

  private details(d: Device) {
    const rows: [string, string | undefined][] = [
      [say("mac"), d.mac], [say("board"), d.board], [say("version"), d.firmware], [say("address"), d.address],
      [say("reach"), d.transport_given === "mqtt" ? "MQTT + UDP" : d.transport_given === "websocket" ? "WebSocket" : undefined], [say("seen"), isOnline(d) ? say("here") : d.last_seen && ago(d.last_seen)],
    ];
    return html`<dl class="small">${rows.filter(([, value]) => value).map(([term, value]) => html`<dt>${term}</dt><dd><bdi>${value}</bdi></dd>`)}</dl>`;
  }
}

customElements.define("p-robot", RobotView);
