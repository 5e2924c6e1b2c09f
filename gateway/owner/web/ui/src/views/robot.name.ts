// A robot that has no name is asked for it: <p-robot-name>, with a proposal. It sends the event "named" once the name is
// saved, or the question is put off.

import { css, html, nothing } from "lit";
import { send } from "../lib/api.js";
import { devices, type Device } from "../lib/robots.js";
import { type Said } from "../lib/said.js";
import { base, type Dialog } from "../lib/ui.js";
import { Spoken, sentence } from "../lib/view.js";
import { allWords, catalogue } from "../lib/words.js";

const say = catalogue("naming");

export class RobotName extends Spoken {
  static properties = { device: { attribute: false }, proposal: { state: true }, refused: { state: true }, busy: { state: true }, later: { state: true } };
  declare device: Device;
  declare proposal: string;
  declare refused: Said;
  declare busy: boolean;
  declare later: boolean;
  static styles = [base, css`.line { display: grid; gap: var(--s2); grid-template-columns: minmax(0, 1fr); } .row { justify-content: flex-end; }`];

  constructor() {
    super();
    this.proposal = "";
    this.busy = this.later = false;
  }

  connectedCallback(): void {
    super.connectedCallback();
    void this.propose();
  }

  // propose proposes the first name that no robot has.
  private async propose(): Promise<void> {
    const names = say("names").split(", ");
    const taken = await devices().catch(() => []);
    this.proposal = names.find((n) => !taken.some((d) => d.name?.toLowerCase() === n.toLowerCase())) ?? "";
  }

  private async save(e: Event): Promise<void> {
    e.preventDefault();
    const name = this.renderRoot.querySelector("input")!.value.trim();
    if (name === "" || this.busy) return;
    this.busy = true;
    try {
      await send("PUT", `api/v1/devices/${encodeURIComponent(this.device.id)}`, { name });
      this.end();
    } catch (failure) {
      this.refused = sentence(failure);
    }
    this.busy = false;
  }

  private end(): void {
    this.later = true;
    this.dispatchEvent(new Event("named"));
  }

  render() {
    if (this.later) return nothing;
    return html`<form class="line" data-test="name-${this.device.id}" @submit=${(e: Event) => void this.save(e)}>
      <p-field label=${say("ask")} hint=${say("hint")} .error=${this.refused}><input data-test="robot-name" maxlength="32" autocomplete="off" .value=${this.proposal}></p-field>
      <div class="row"><p-button kind="quiet" data-test="unnamed" @click=${this.end}>${say("later")}</p-button><p-button kind="main" type="submit" data-test="named" ?busy=${this.busy}>${say("save")}</p-button></div></form>`;
  }
}

customElements.define("p-robot-name", RobotName);

// askName asks for the name of a robot in a dialog, unless it has one.
export async function askName(device: Device): Promise<void> {
  if (device.name) return;
  await allWords();
  const dialog = document.createElement("p-dialog") as Dialog;
  dialog.heading = say("heading");
  const question = Object.assign(document.createElement("p-robot-name") as RobotName, { device });
  question.addEventListener("named", () => (dialog.open = false));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.append(question);
  document.body.append(dialog);
  dialog.open = true;
}
