// A robot that waits for adoption. One click adopts it, unless several clients use its MAC address: then the owner enters
// the code on its screen, or chooses one of the clients.

import { css, html, nothing } from "lit";
import { send } from "../lib/api.js";
import { icon } from "../lib/icons.js";
import { nameOf, type Claimant, type Device } from "../lib/robots.js";
import { ask, base } from "../lib/ui.js";
import { Spoken } from "../lib/view.js";
import { catalogue, clock } from "../lib/words.js";

const say = catalogue("home");

// refuse refuses a robot that waits, or the other devices that claim to be an adopted robot.
export function refuse(d: Device): Promise<unknown> {
  if (!d.claimed) return send("DELETE", `api/v1/devices/${encodeURIComponent(d.id)}`);
  const own = d.claimants?.find((c) => c.bound);
  return send("POST", "api/v1/adopt", { robot: d.id, client: own?.client || own?.address });
}

// refused returns what the owner is told when a robot is refused.
export function refused(d: Device): string {
  return say(d.claimed ? "refusedOther" : "refusedOne", { name: nameOf(d) });
}

export class Waiting extends Spoken {
  static properties = { device: { attribute: false }, busy: { type: Boolean }, plain: { type: Boolean } };
  declare device: Device;
  declare busy: boolean; // a robot is being adopted
  declare plain: boolean; // the view itself asks for the name of a robot that was adopted
  static styles = [base, css`
    article { display: grid; gap: var(--s2); }
    h3 { display: flex; gap: var(--s2); align-items: center; } .icon { color: var(--accent); flex: none; }
    .code { font-size: var(--t-head); letter-spacing: 0.12em; font-weight: 650; }
    .client { align-items: center; } .client bdi { overflow-wrap: anywhere; }
    form { display: grid; gap: var(--s2); grid-template-columns: minmax(0, 1fr) auto; align-items: end; }
  `];

  private adopt(body: Record<string, unknown>): void {
    const work = async () => {
      const d = await send<Device>("POST", "api/v1/adopt", body);
      if (d.adopted && !this.plain) void import("./robot.name.js").then((m) => m.askName(d));
    };
    this.wish(work, () => say("adopted", { name: nameOf(this.device) }));
  }

  private byCode(e: Event): void {
    e.preventDefault();
    const code = this.renderRoot.querySelector("input")?.value.trim() ?? "";
    if (code !== "") this.adopt({ code });
  }

  private async replace(): Promise<void> {
    const yes = await ask({ text: say("letInAsk", { name: nameOf(this.device) }), yes: say("letInYes"), no: say("cancel"), danger: true });
    if (yes) this.adopt({ robot: this.device.id, replace: true });
  }

  private refuse() {
    const { claimed } = this.device;
    return html`<p-button kind="quiet" data-test="refuse" label=${claimed ? nothing : say("refuseOne", { name: nameOf(this.device) })} @click=${() => this.dispatchEvent(new Event("refuse"))}>
      ${say(claimed ? "refuseOther" : "refuse")}</p-button>`;
  }

  // choice renders one of several clients, which the owner may adopt.
  private choice(c: Claimant) {
    const text = [c.address, clock(c.at), c.client].filter(Boolean).join(" · ");
    return html`<div class="row client"><bdi class="small grow">${text}</bdi>
      <p-button data-test="adopt-client-${c.client || c.address}" label="${say("adopt")}: ${text}" ?busy=${this.busy}
        @click=${() => this.adopt({ robot: this.device.id, client: c.client || c.address })}>${say("adopt")}</p-button></div>`;
  }

  render() {
    const d = this.device;
    const several = d.claimants ?? [];
    const contested = d.contested === true;
    return html`<article data-test="waiting-${d.id}">
      <h3>${icon("robot")}<bdi>${nameOf(d)}</bdi></h3>
      <p class="small muted"><bdi>${[d.board, d.firmware, d.address].filter(Boolean).join(" · ")}</bdi></p>
      ${d.claimed || contested
        ? html`<p>${d.claimed ? say("claimed", { name: nameOf(d) }) : say("contested")}</p>
            <form @submit=${this.byCode}><p-field label=${say("code")}><input inputmode="numeric" autocomplete="one-time-code" required maxlength="12" data-test="code"></p-field>
              <p-button kind="main" type="submit" data-test="adopt-code" ?busy=${this.busy}>${say("adopt")}</p-button></form>
            ${several.filter((c) => !(d.claimed && c.bound)).map((c) => this.choice(c))}
            <div class="row">${this.refuse()}${d.claimed && several.length === 2 ? html`<p-button data-test="replace" @click=${this.replace}>${say("letIn")}</p-button>` : nothing}</div>`
        : html`<p>${say("waits")}</p><div class="row"><span class="code grow" aria-label=${d.code ? say("shows", { code: d.code }) : nothing} role="text">${d.code}</span>
            ${this.refuse()}<p-button kind="main" data-test="adopt" ?busy=${this.busy} @click=${() => this.adopt({ robot: d.id })}>${say("adopt")}</p-button></div>`}
    </article>`;
  }
}

customElements.define("p-waiting", Waiting);
