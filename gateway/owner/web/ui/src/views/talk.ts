// The view for talking with a robot: what was said, and a field to ask something.

import { css, html, nothing } from "lit";
import { get, send } from "../lib/api.js";
import { board, follow, type Record_ } from "../lib/board.js";
import { icon } from "../lib/icons.js";
import { isHere, linkTo, nameOf, type Device } from "../lib/robots.js";
import { keep, kept } from "../lib/store.js";
import { View } from "../lib/view.js";
import { catalogue } from "../lib/words.js";
import "../face/face.js";
import { shownOf } from "./home.words.js";
import "./robot.talk.js";

const say = catalogue("talk");

const key = "perch.talk"; // the robot that was talked with last

export class TalkView extends View {
  static properties = { robot: { state: true }, busy: { state: true } };
  declare private robot: string; // its ID, or ""
  declare private busy: boolean;
  private robots: Device[] = [];
  private records: Record_[] = [];
  static styles = [View.styles, css`
    .robots { display: flex; gap: var(--s2); overflow-x: auto; padding: 3px; margin-bottom: var(--s4); }
    .robots p-button { flex: none; }
    .who { display: flex; gap: var(--s3); align-items: center; flex-wrap: wrap; } .who stack-chan-face { width: 6rem; }
    form { display: grid; gap: var(--s2); grid-template-columns: minmax(0, 1fr) auto; align-items: end; margin-top: var(--s4); }
    @media (max-width: 899px) { form { position: sticky; bottom: calc(var(--bar) + env(safe-area-inset-bottom)); background: var(--surface); padding-block: var(--s2); } }
    .link { display: inline-flex; min-height: var(--target); align-items: center; margin-top: var(--s3); }
    .go { display: inline-flex; min-height: var(--target); align-items: center; padding: 0.35rem var(--s4); border-radius: var(--round); background: var(--accent); color: var(--on-accent); font-weight: 600; text-decoration: none; }
  `];

  constructor() {
    super();
    this.robot = kept(key) ?? "";
    this.busy = false;
    follow(this, () => this.robot);
    this.reloadOn(["robot_adopted", "robot_renamed", "robot_forgotten", "robot_online", "robot_offline", "turn_ended"], ["robot"]);
  }

  protected title_(): string {
    return say("title");
  }

  protected async load(): Promise<void> {
    const [devices, turns] = await Promise.all([get<Device[]>("api/v1/devices"), get<Record_[]>("api/v1/turns?limit=500")]);
    this.robots = devices.filter((d) => d.adopted && isHere(d));
    this.robots.forEach((d) => board.learn(d.id, d));
    this.records = turns;
    if (!this.robots.some((d) => d.id === this.robot)) this.robot = this.robots.find((d) => d.connected)?.id ?? this.robots[0]?.id ?? "";
  }

  private choose(d: Device): void {
    this.robot = d.id;
    keep(key, d.id);
  }

  private async ask(e: SubmitEvent): Promise<void> {
    e.preventDefault();
    const form = e.target as HTMLFormElement;
    const text = String(new FormData(form).get("ask") ?? "").trim();
    const one = this.robots.find((d) => d.id === this.robot);
    if (text === "" || this.busy || !one) return;
    this.busy = true;
    let queued = false;
    const done = await this.act(async () => {
      queued = (await send<{ queued: boolean }>("POST", `api/v1/devices/${encodeURIComponent(one.id)}/ask`, { text })).queued;
    });
    this.busy = false;
    if (!done) return;
    form.reset();
    if (queued) this.tell(say("waits", { name: nameOf(one) }));
    this.reload();
  }

  protected content(): unknown {
    const one = this.robots.find((d) => d.id === this.robot);
    if (!one) {
      return html`<p-empty heading=${say("none")} look="asleep">${say("noneText")}<a slot="action" class="go" href="robot">${say("here")}</a></p-empty>`;
    }
    const now = board.now(one.id);
    const { state, tone, word } = shownOf(one, now);
    return html`${this.robots.length > 1 ? html`<div class="robots" role="group" aria-label=${say("robots")}>${this.robots.map((d) => html`
        <p-button pressed=${d.id === one.id ? "true" : "false"} data-test="with-${d.id}" @click=${() => this.choose(d)}><bdi>${nameOf(d)}</bdi></p-button>`)}</div>` : nothing}
      <p-card><div class="who"><stack-chan-face state=${state} emotion=${now?.emotion ?? (one.emotion || "neutral")} .feels=${now?.mood ?? null}></stack-chan-face>
          <div class="grow"><h2><a href=${linkTo(one.id)}><bdi>${nameOf(one)}</bdi></a></h2><span class="tag ${tone}" data-test="state">${word}</span></div></div>
        <p-talk .robot=${one.id} .records=${this.records.filter((t) => t.robot === one.id)}></p-talk>
        <form data-test="ask" @submit=${(e: SubmitEvent) => void this.ask(e)}><p-field label=${say("ask", { name: nameOf(one) })}><input name="ask" maxlength="1000" autocomplete="off"></p-field>
          <p-button kind="main" type="submit" label=${say("askGo")} ?busy=${this.busy}>${icon("send")}</p-button></form></p-card>
      <a class="link" href="robot">${say("here")}</a>`;
  }
}

customElements.define("p-talk-view", TalkView);
