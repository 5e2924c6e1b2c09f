// The shell: the navigation, the view that the address names, and a banner about the connection.

import { html, nothing } from "lit";
import { get, outOfSession, send } from "../lib/api.js";
import "../lib/board.js"; // must be loaded before the feed starts
import { brand } from "../lib/brand.js";
import { feed } from "../lib/feed.js";
import { alerts, canAlert, setAlerts, watchAlerts } from "../lib/alerts.js";
import { icon, type Sign } from "../lib/icons.js";
import { watch } from "../lib/offline.js";
import { ask, base, type Dialog } from "../lib/ui.js";
import { Spoken, locked, type View } from "../lib/view.js";
import { theme, setTheme, type Theme } from "../lib/theme.js";
import { wants } from "../lib/wants.js";
import { allWords, catalogue, language, languages, ownName, setLanguage, type Language } from "../lib/words.js";
import { sessionChanged, type Session } from "./login.js";
import { styles } from "./shell.styles.js";

const say = catalogue("shell");

export interface Route {
  element: string;
  load: () => Promise<unknown>;
}

type Key = Parameters<typeof say>[0];

const groups: { title: Key; views: (Sign & Key)[] }[] = [
  { title: "groupDaily", views: ["notifications", "timers", "memory"] },
  { title: "groupHappened", views: ["turns", "sensed"] },
  { title: "groupParts", views: ["firmware", "engines", "connections"] },
  { title: "groupCare", views: ["doctor", "logs", "backup", "settings"] },
];
const daily: (Sign & Key)[] = ["home", "talk"]; // above the groups
const bar: (Sign & Key)[] = ["home", "talk", "notifications"];

const tryAgainAfter = 2000; // ms until the next try if the server is not reachable

function place(): string[] {
  return location.hash.replace(/^#\/?|\?.*$/g, "").split("/").map(plain);
}

function plain(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function linkTo(name: string): string {
  return name === "home" ? "#/" : `#/${name}`;
}

export class Shell extends Spoken {
  static properties = { session: { state: true }, link: { state: true }, updated_: { state: true }, at: { state: true }, starting: { state: true }, menu: { state: true } };
  declare routes: Record<string, Route>;
  declare session: Session | undefined;
  declare link: "fine" | "lost" | "mended";
  declare updated_: boolean; // the server was updated since the page was loaded
  declare at: string; // name of the view
  declare starting: boolean;
  declare menu: boolean; // the menu was opened once
  private opened = 0;
  private title_ = "";
  private readonly count = () => {
    this.entitle(this.title_);
    this.requestUpdate();
    void (wants.count > 0 ? navigator.setAppBadge?.(wants.count) : navigator.clearAppBadge?.())?.catch(() => undefined); // on the icon of the installed page
  };
  private broken = false; // the program of the view could not be loaded
  private ends = new AbortController();
  static styles = [base, styles];

  constructor() {
    super();
    this.link = "fine";
    this.at = "";
  }

  connectedCallback(): void {
    super.connectedCallback();
    const signal = (this.ends = new AbortController()).signal;
    window.addEventListener("hashchange", () => void this.go(), { signal });
    window.addEventListener(outOfSession, () => this.session?.in && this.session.how !== "local" && void this.start(), { signal });
    this.addEventListener(locked, () => this.session?.how === "local" && void this.login(++this.opened), { signal });
    window.addEventListener(sessionChanged, () => void this.start(), { signal });
    this.addEventListener("perch-title", (e) => this.entitle((e as CustomEvent<string>).detail), { signal });
    feed.addEventListener("lost", () => (this.link = "lost"), { signal });
    feed.addEventListener("connected", () => this.mended(), { signal });
    wants.addEventListener("change", this.count, { signal });
    watchAlerts(() => this.session?.name || "Perch");
    void this.start();
    void watch();
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    this.ends.abort();
    feed.stop();
    wants.stop();
  }

  // start asks whether the owner is logged in, and shows the view or the login.
  private async start(): Promise<void> {
    const [name = ""] = place();
    void this.routes[name]?.load().catch(() => undefined); // loads the view during the request
    try {
      this.session = await get<Session>("session");
      this.starting = false;
    } catch {
      this.starting = true;
      setTimeout(() => void this.start(), tryAgainAfter);
      return;
    }
    if (this.session.in) {
      feed.start();
      wants.start();
    } else {
      feed.stop();
      wants.stop();
    }
    this.link = "fine";
    await this.go();
  }

  private mended(): void {
    if (this.link !== "lost") return;
    if (this.broken) location.reload(); // browsers do not load a program again that has failed
    this.link = "mended";
    setTimeout(() => this.link === "mended" && (this.link = "fine"), 4000);
    const before = this.session?.version;
    get<Session>("session").then(
      (s) => {
        if (s.version !== before) this.updated_ = true;
        if (!s.in) void this.start();
        else this.session = s; // the appliance's name may have changed
      },
      () => undefined,
    );
  }

  private entitle(title: string): void {
    this.title_ = title;
    const name = this.session?.name || "Perch";
    const count = this.session?.in && wants.count > 0 ? `(${wants.count}) ` : "";
    document.title = count + (title === "" ? name : `${title} · ${name}`);
  }

  // go shows the view for the address.
  private async go(): Promise<void> {
    if (!this.session) return;
    const turn = ++this.opened;
    const [name = "", id = ""] = place();
    if (!this.session.in || name === "in") {
      await this.login(turn, name === "in" ? id : "");
      return;
    }
    const route = Object.hasOwn(this.routes, name) ? this.routes[name] : undefined;
    if (!route || (name === "robots" && id === "")) {
      await this.put(turn, "p-lost", () => import("./lost.js"), {});
      return;
    }
    await this.put(turn, route.element, route.load, name === "robots" ? { robot: id } : {});
    this.at = name === "" ? "home" : name;
  }

  private async login(turn: number, code = ""): Promise<void> {
    await this.put(turn, "p-login", () => Promise.all([import("./login.js"), allWords()]), { session: this.session, code });
  }

  private async put(turn: number, element: string, load: () => Promise<unknown>, values: Record<string, unknown>): Promise<void> {
    let view: HTMLElement;
    try {
      await load();
      view = Object.assign(document.createElement(element), values);
      this.broken = false;
    } catch {
      view = this.unloaded();
      this.broken = true;
    }
    await this.updateComplete;
    if (turn !== this.opened) return; // another view was opened while this one was loading
    this.renderRoot.querySelector<Dialog>("p-dialog")?.removeAttribute("open");
    const main = this.renderRoot.querySelector("main");
    const first = !main?.firstElementChild;
    main?.replaceChildren(view);
    setTimeout(() => void allWords().catch(() => undefined), 1000); // they say also why something was refused
    if (first) return;
    window.scrollTo(0, 0);
    await (view as Partial<View>).focusHeading?.();
  }

  private unloaded(): HTMLElement {
    const p = document.createElement("p");
    p.textContent = say("unloaded") + " ";
    const b = document.createElement("p-button");
    b.textContent = say("reload");
    b.addEventListener("click", () => location.reload());
    p.append(b);
    return p;
  }

  private skip(e: Event): void {
    e.preventDefault(); // following the link would change the view
    const view = this.renderRoot.querySelector("main")?.firstElementChild as Partial<View> | null | undefined;
    void view?.focusHeading?.();
  }

  private item(name: Sign & Key) {
    const n = name === "home" ? wants.waiting.length : name === "notifications" ? wants.notices.length + wants.questions.length : 0;
    return html`<a href=${linkTo(name)} aria-current=${this.at === name ? "page" : nothing} data-test="nav-${name}">${icon(name)}<span>${say(name)}</span>
      ${n > 0 ? html`<b class="badge" data-test="badge-${name}">${n > 99 ? "99+" : n}</b>` : nothing}</a>`;
  }

  private list() {
    return html`<ul>${daily.map((v) => html`<li>${this.item(v)}</li>`)}</ul>
      ${groups.map((g) => html`<div><h2>${say(g.title)}</h2><ul>${g.views.map((v) => html`<li>${this.item(v)}</li>`)}</ul></div>`)}
      <ul class="apart"><li><a href="robot" data-test="nav-page">${icon("robot")}<span>${say("page")}</span></a></li><li>${this.item("first")}</li></ul>`;
  }

  // speak changes the language. If it cannot be loaded, the previous language stays selected.
  private speak(e: Event): void {
    const select = e.target as HTMLSelectElement;
    setLanguage(select.value as Language).catch(() => (select.value = language()));
  }

  private choices() {
    return html`<div class="choices">
      <label>${say("language")}<select data-test="language" @change=${this.speak}>
        ${languages.map((l) => html`<option value=${l} lang=${l} ?selected=${l === language()}>${ownName(l)}</option>`)}</select></label>
      <label>${say("theme")}<select data-test="theme" @change=${(e: Event) => setTheme((e.target as HTMLSelectElement).value as Theme)}>
        ${(["auto", "light", "dark"] as const).map((t) => html`<option value=${t} ?selected=${t === theme()}>${say(t)}</option>`)}</select></label>
      ${this.session?.in && canAlert() ? html`<p-field inline label=${say("alerts")}><input type="checkbox" class="switch" data-test="alerts" .checked=${alerts()}
        @change=${async (e: Event) => {
          const box = e.target as HTMLInputElement;
          box.checked = await setAlerts(box.checked);
        }}></p-field>` : nothing}
      ${this.session?.in && this.session.how === "cookie"
        ? html`<p-button data-test="logout" @click=${() => void this.leave("session")}>${icon("out")}${say("out")}</p-button>
          <p-button data-test="logout-all" @click=${() => void this.leaveAll()}>${say("outAll")}</p-button>`
        : nothing}
      ${this.session?.how === "local" ? html`<a href="#/in" data-test="come-in">${say("enter")}</a>` : nothing}</div>`;
  }

  private async leaveAll(): Promise<void> {
    if (await ask({ text: say("outAllAsk"), yes: say("outAll"), no: say("cancel") })) await this.leave("sessions");
  }

  // leave ends this browser's session, or the sessions of all browsers.
  private async leave(what: "session" | "sessions"): Promise<void> {
    await send("DELETE", what).catch(() => undefined);
    feed.stop();
    location.hash = "#/";
    await this.start();
  }

  render() {
    if (!this.session) return html`<main class="alone">${this.starting ? html`<p role="status">${say("starting")}</p>` : nothing}</main>`;
    const inside = this.session.in;
    return html`
      <nav aria-label=${say("skip")}><a class="skip" href="#/" @click=${this.skip}>${say("skip")}</a></nav>
      <div class=${inside ? "frame" : "frame outside"}>
        ${inside ? html`<header class="side"><a class="brand" href="#/">${brand(32)}<span>${this.session.name}</span></a>
          <nav aria-label=${say("views")}>${this.list()}</nav>${this.choices()}</header>` : nothing}
        <div class="middle">
          ${this.banner()}
          <main></main>
          ${inside ? nothing : html`<footer>${this.choices()}</footer>`}
        </div>
      </div>
      ${inside ? this.narrow() : nothing}`;
  }

  private banner() {
    return html`<div class="banner" role="status" aria-live="polite" data-test="link" data-link=${this.link}>
      ${this.link === "lost" ? html`<p class="lost"><i aria-hidden="true"></i>${say("lost")}</p>` : nothing}
      ${this.link === "mended" ? html`<p class="mended">${say("mended")}</p>` : nothing}
      ${this.updated_ ? html`<p>${say("updated")} <p-button @click=${() => location.reload()}>${say("reload")}</p-button></p>` : nothing}</div>`;
  }

  // narrow renders the bar for phones, and the menu of its last button once it was opened: it is as large as the page around it.
  private narrow() {
    const dialog = () => this.renderRoot.querySelector<Dialog>("p-dialog");
    const open = async () => {
      this.menu = true;
      await this.updateComplete;
      dialog()?.setAttribute("open", "");
    };
    return html`<nav class="bar" aria-label=${say("menu")}>${bar.map((v) => this.item(v))}
        <button type="button" data-test="menu" aria-haspopup="dialog" @click=${open}>${icon("menu")}<span>${say("more")}</span></button></nav>
      <p-dialog heading=${say("menu")}>${this.menu
        ? html`<nav class="all" aria-label=${say("views")} @click=${() => dialog()?.removeAttribute("open")}>${this.list()}</nav>${this.choices()}` : nothing}
        <p-button slot="actions" @click=${() => dialog()?.removeAttribute("open")}>${say("close")}</p-button></p-dialog>`;
  }
}

customElements.define("p-shell", Shell);
