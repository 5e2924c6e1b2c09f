// The login view: the name of the appliance, and how to log in.

import { css, html, nothing } from "lit";
import { Refusal, send } from "../lib/api.js";
import { type Said } from "../lib/said.js";
import { keep, kept, pageRobot } from "../lib/store.js";
import { View, sentence } from "../lib/view.js";
import "../face/face.js";
import { catalogue } from "../lib/words.js";
import { reached } from "./first.place.js";

const say = catalogue("login");

export interface Session {
  in: boolean;
  how: "local" | "cookie" | "ingress" | "";
  name: string;
  language: string;
  version: string;
  says: boolean; // a robot can say a code
}

// sessionChanged is the event of the window after a login.
export const sessionChanged = "perch-session-changed";

const pages = ["robot", "face"]; // pages that redirect to the login

export class Login extends View {
  static properties = { session: { attribute: false }, code: {}, failed_: { state: true }, told: { state: true }, busy: { state: true } };
  declare session: Session | undefined;
  declare code: string;
  declare failed_: Said;
  declare told: string; // what to do after a robot has said a code
  declare busy: "" | "code" | "token" | "say";
  static styles = [View.styles, css`
    :host { width: min(30rem, 100%); }
    .box { background: var(--surface); border: 1px solid var(--line); border-radius: 20px; box-shadow: var(--shadow); padding: 1.5rem; }
    stack-chan-face { width: 9rem; margin: 0 auto 0.5rem; display: block; }
    form { display: grid; gap: 0.9rem; margin: 1.1rem 0 1.4rem; }
    .failed-in { color: var(--bad); }
    form + form { border-top: 1px solid var(--line); padding-top: var(--s4); } input.code { font-size: var(--t-title); letter-spacing: 0.25em; text-align: center; }
    pre { background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: 0.5rem 0.7rem; margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
    .top { margin-bottom: 0.3rem; } h1 { font-size: 1.35rem; }
  `];

  protected title_(): string {
    return say("title", { name: this.session?.name || "perch" });
  }

  // load logs in with the code of a one-time link, and keeps the page's robot that the link brings from another address
  // (microphone.ts). It removes the code from the address, so that it is not in the browser's history.
  protected async load(): Promise<void> {
    const code = this.code ?? "";
    if (code === "") return;
    this.code = "";
    const robot = decodeURIComponent(location.hash.split("/")[3] ?? "");
    history.replaceState(null, "", `${location.pathname}${location.search}#/`);
    if (this.session?.in && this.session.how !== "local") {
      this.goOn(); // the user is already logged in
      return;
    }
    try {
      await send("POST", "session", { code });
    } catch (e) {
      this.failed_ = e instanceof Refusal && e.code === "wrong_key" ? say("linkOld") : sentence(e);
      return;
    }
    if (robot !== "" && kept(pageRobot) === null) keep(pageRobot, robot); // only an owner makes a code
    this.goOn();
    await new Promise(() => undefined); // shows no form until this view is replaced
  }

  private async enter(by: { code: string } | { token: string }): Promise<void> {
    await send("POST", "session", by);
    this.goOn();
  }

  // goOn shows what the user wanted to see before the login.
  private goOn(): void {
    const next = new URLSearchParams(location.search).get("next") ?? "";
    if (pages.includes(next)) location.replace(new URL(next, document.baseURI));
    else {
      if (next === "first") {
        keep(reached, "talk"); // goes on where the link was opened (microphone.ts)
        history.replaceState(null, "", `${location.pathname}#/first`);
      } else if (location.hash.startsWith("#/in")) history.replaceState(null, "", "#/");
      window.dispatchEvent(new Event(sessionChanged));
    }
  }

  private async submit(e: Event, by: "code" | "token"): Promise<void> {
    e.preventDefault();
    const input = this.renderRoot.querySelector<HTMLInputElement>(`#${by}`);
    const typed = input?.value.trim() ?? "";
    if (typed === "") return;
    await this.work(by, () => this.enter(by === "code" ? { code: typed } : { token: typed }), by === "code" ? say("codeOld") : undefined);
    input?.select();
  }

  private async askRobot(): Promise<void> {
    await this.work("say", () => send("POST", "session/code"));
    if (this.failed_ !== "") return;
    this.told = say("listen");
    this.renderRoot.querySelector<HTMLInputElement>("#code")?.focus();
  }

  // work does one thing at a time, and shows its failure. wrong is what to say of a wrong key.
  private async work(what: Login["busy"], work: () => Promise<unknown>, wrong?: string): Promise<void> {
    if (this.busy) return;
    this.busy = what;
    this.failed_ = this.told = "";
    try {
      await work();
    } catch (failure) {
      this.failed_ = wrong && failure instanceof Refusal && failure.code === "wrong_key" ? wrong : sentence(failure);
    }
    this.busy = "";
  }

  render() {
    return html`<div class="box"><stack-chan-face look="screen" emotion=${this.failed_ ? "doubtful" : "neutral"} aria-hidden="true"></stack-chan-face>${super.render()}</div>`;
  }

  protected content() {
    return html`<p class="muted">${say("intro")}</p>
      <p class="failed-in" role="alert" data-test="refused">${this.failed_ ?? nothing}</p><p role="status" data-test="told">${this.told ?? nothing}</p>
      <form @submit=${(e: Event) => void this.submit(e, "code")}>
        <p-field label=${say("code")}><input id="code" class="code" inputmode="numeric" autocomplete="one-time-code" maxlength="7" required></p-field>
        <p-button kind="main" type="submit" data-test="enter-code" ?busy=${this.busy === "code"}>${say("enter")}</p-button>
        ${this.session?.says ? html`<p class="small muted">${say("sayHow")}</p><p-button data-test="say-code" ?busy=${this.busy === "say"} @click=${() => void this.askRobot()}>${say("say")}</p-button>` : nothing}
        <p class="small muted">${say("linkHow")}</p><pre tabindex="0">sudo perch open</pre>
      </form>
      <form @submit=${(e: Event) => void this.submit(e, "token")}>
        <p-field label=${say("token")}><input id="token" type="password" autocomplete="current-password" spellcheck="false" required></p-field>
        <p-button type="submit" data-test="enter" ?busy=${this.busy === "token"}>${say("enter")}</p-button>
        <p class="small muted">${say("tokenHow")}</p><pre tabindex="0">sudo cat /var/lib/perch/admin-token</pre>
      </form>`;
  }
}

customElements.define("p-login", Login);
