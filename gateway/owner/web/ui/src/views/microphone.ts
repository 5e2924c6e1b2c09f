// The view that leads to the page's https address, which a browser requires for the microphone.

import { css, html, nothing } from "lit";
import { send } from "../lib/api.js";
import { kept, pageRobot } from "../lib/store.js";
import { View } from "../lib/view.js";
import { catalogue } from "../lib/words.js";
import { reached } from "./first.place.js";

const t = catalogue("microphone");

// HTTPSAddress describes the https address (web.HTTPSAddress).
interface HTTPSAddress {
  urls: string[];
  authority: string;
  fingerprint: string;
}

// platform is the kind of this device, whose steps are shown open.
const platform = /iPhone|iPad/.test(navigator.userAgent) ? "iphone" : /Android/.test(navigator.userAgent) ? "android" : "computer";

export class MicrophoneView extends View {
  static properties = { busy: { state: true } };
  declare private busy: boolean;
  private address: HTTPSAddress | undefined;

  static styles = [View.styles, css`
    ol, ul { display: grid; gap: var(--s2); padding-inline-start: 1.2rem; margin-block: var(--s3); }
    ol { list-style: decimal; } ul { list-style: disc; }
    p-card .row { margin-block-start: var(--s3); } h3 { margin-block-start: var(--s4); } p-card > p { max-width: 46rem; }
    summary { font-weight: 650; }
    .wide { display: block; overflow-wrap: anywhere; background: var(--raised); border-radius: var(--round); padding: var(--s3); margin-block: var(--s2); max-width: max-content; }
  `];

  constructor() {
    super();
    this.busy = false;
  }

  protected title_(): string {
    return t("title");
  }

  protected async load(): Promise<void> {
    this.address = await send<HTTPSAddress>("POST", "api/v1/https");
  }

  // url returns the https address at the name by which the browser knows Perch, because it may not find another.
  private get url(): string {
    const urls = this.address!.urls;
    return urls.find((u) => new URL(u).hostname === location.hostname) ?? urls[0]!;
  }

  // go opens the robot's page over https, or the last of the first steps if it was left for the microphone, by a link that
  // logs in once. The link brings the identity of the page's robot, because a browser keeps another one for each address.
  private async go(): Promise<void> {
    this.busy = true;
    await this.act(async () => {
      const link = await send<{ urls: string[] }>("POST", "api/v1/link");
      const { mac, uuid } = JSON.parse(kept(pageRobot) ?? "{}") as { mac?: string; uuid?: string };
      const robot = mac ? `/${encodeURIComponent(JSON.stringify({ mac, uuid }))}` : "";
      const next = kept(reached) === "talk" ? "first" : "robot";
      location.assign(`${this.url}/?next=${next}${new URL(link.urls[0]!).hash}${robot}`);
    });
    this.busy = false;
  }

  protected content(): unknown {
    const { authority, fingerprint } = this.address!;
    const steps = (name: "iphone" | "android" | "computer", file: string, label: string, more: string[]) => html`<details ?open=${name === platform}>
      <summary>${t(name)}</summary><ol><li><a href=${file} download data-test=${`get-${name}`}>${label}</a></li>${more.map((s) => html`<li>${s}</li>`)}</ol></details>`;
    return html`<div class="stack">
      ${window.isSecureContext
        ? html`<p data-test="secure">${t("secure")} <a href="robot">${t("toRobot")}</a></p>`
        : html`<p>${t("about")}</p>
      <p-card heading=${t("now")}>
        <p>${t("nowHow")}</p>
        <ul><li>${t("chrome")}</li><li>${t("firefox")}</li><li>${t("safari")}</li></ul>
        <p class="muted small">${t("nowTried")}</p>
        <div class="row"><p-button kind="main" ?busy=${this.busy} @click=${this.go} data-test="go-https">${t("open")}</p-button><code data-test="https-url">${this.url}</code></div>
      </p-card>`}
      <p-card heading=${t("trust")}>
        <p>${t("trustHow")}</p>
        ${steps("iphone", "perch-authority.mobileconfig", t("profile"), [t("iphone2"), t("iphone3", { name: authority })])}
        ${steps("android", "perch-authority.crt", t("certificate"), [t("android2")])}
        ${steps("computer", "perch-authority.crt", t("certificate"), [t("computer2")])}
        <h3>${t("check")}</h3>
        <p>${t("checkHow")}</p>
        <code class="wide" data-test="fingerprint">${fingerprint}</code>
        <p>${t("command")} <code>sudo perch https</code></p>
        <p>${t("can")}</p>
        <p class="muted small">${t("trustTried")}</p>
      </p-card>
      ${window.isSecureContext ? nothing : html`<p-card heading=${t("hass")}><p>${t("hassHow")}</p></p-card>`}
    </div>`;
  }
}

customElements.define("p-microphone", MicrophoneView);
