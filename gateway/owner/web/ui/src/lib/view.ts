// The base class of views.
//
// A view overrides title_ (text of the h1), load (fetches data into reactive properties) and content (renders the data
// below the h1, after load). actions may add buttons beside the h1.

// All views use this file, so that the bundler puts what it imports into one file with it. What the first view needs besides
// is imported here for that: a browser loads a few files sooner than twenty.
import "lit/directives/repeat.js";
import "../face/face.js";
import "../views/first.place.js";
import "../views/home.words.js";
import "../views/link.js";
import "../views/mood.words.js";
import "./board.js";
import "./icons.js";
import "./theme.js";
import "./wants.js";

import { LitElement, css, html, nothing, type CSSResultArray, type PropertyValues } from "lit";
import { Refusal } from "./api.js";
import { feed } from "./feed.js";
import { refusal, type Said } from "./said.js";
import { base } from "./ui.js";
import { catalogue, languageChanged, languageTarget } from "./words.js";

const say = catalogue("view");

// sentence returns the text to show for an error.
export function sentence(e: unknown): Said {
  if (e instanceof Refusal) return refusal(e);
  if (e instanceof TypeError) return say("away");
  return e instanceof Error ? e.message : String(e);
}

const sayAgainEvery = 30_000; // ms; "two minutes ago" must become "three minutes ago"

// Wish is work that the view around an element does. done returns the text to show afterwards.
export type Wish = { work: () => Promise<unknown>; done: () => string };

// Spoken is an element that renders again when the language changes, and regularly because it may show relative times.
export class Spoken extends LitElement {
  private readonly renderAgain = () => this.requestUpdate();
  private sayAgain: ReturnType<typeof setInterval> | undefined;
  connectedCallback(): void {
    super.connectedCallback();
    languageTarget.addEventListener(languageChanged, this.renderAgain);
    this.sayAgain = setInterval(() => document.hidden || this.requestUpdate(), sayAgainEvery);
  }
  disconnectedCallback(): void {
    super.disconnectedCallback();
    languageTarget.removeEventListener(languageChanged, this.renderAgain);
    clearInterval(this.sayAgain);
  }
  // wish asks the view around this element to do work.
  protected wish(work: () => Promise<unknown>, done = () => ""): void {
    this.dispatchEvent(new CustomEvent<Wish>("wish", { detail: { work, done }, bubbles: true, composed: true }));
  }
}

// locked is the event of a view that is shown only after a login.
export const locked = "perch-locked";

const undoFor = 10_000; // ms
const together = 300; // ms; events within this time cause a single load
const failedLate = "perch-failed-late"; // event of the window: work has failed whose view was left; its detail is what to tell

export class View extends Spoken {
  #loaded = false;
  #failure: unknown;
  #loading = false;
  #wanted = false; // load again after the present load
  #timer: ReturnType<typeof setTimeout> | undefined;
  #note: { text: Said; bad: boolean } | undefined;
  #work: Promise<void> | undefined; // the latest work that could have been undone
  #undo: { text: string; work: () => Promise<unknown>; undo: () => void; timer: ReturnType<typeof setTimeout> } | undefined;
  #noteTimer: ReturnType<typeof setTimeout> | undefined;
  #wishes: { kinds: string[]; what: string[] }[] = [];
  #ends: (() => void)[] = [];

  // A view that needs more styles uses [View.styles, css`...`].
  static styles: CSSResultArray = [base, viewStyles()];

  // ---- for a view to override

  protected title_(): string {
    return "";
  }
  protected async load(): Promise<void> {}
  protected content(): unknown {
    return nothing;
  }
  protected actions(): unknown {
    return nothing;
  }

  // ---- for a view to use

  // reloadOn calls load again after events of these kinds, after the event "changed" for an element of what, and when
  // events may have been missed.
  protected reloadOn(kinds: string[], what: string[] = []): void {
    const wish = { kinds, what };
    this.#wishes.push(wish);
    if (this.isConnected) this.#subscribe(wish);
  }

  // reload calls load soon.
  protected reload(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#run();
    }, together);
  }

  // act does work, and shows the text done or the error. It returns whether work has succeeded.
  protected async act(work: () => Promise<unknown>, done?: string): Promise<boolean> {
    try {
      await work();
      this.tell(done ?? "", false);
      return true;
    } catch (e) {
      if (!(e instanceof DOMException && e.name === "AbortError")) this.tell(sentence(e), true);
      return false;
    }
  }

  // tell shows a text in the live region.
  protected tell(text: Said, bad = false): void {
    if (text !== "") this.#finish();
    else if (this.#undo) return; // its text stays beside its button
    clearTimeout(this.#noteTimer);
    this.#note = text === "" ? undefined : { text, bad };
    if (this.#note && !bad) this.#noteTimer = setTimeout(() => this.tell(""), 6000);
    this.requestUpdate();
  }

  // undoable shows a text with a button "Undo" for ten seconds. Then, or when the view or the page is left, it does work. The
  // caller has changed already what the view shows; undo changes it back, and is called too if work fails. If the view was
  // left by then, the next view tells that.
  protected undoable(text: string, work: () => Promise<unknown>, undo: () => void): void {
    this.#finish();
    clearTimeout(this.#noteTimer);
    this.#note = { text, bad: false };
    this.#undo = { text, work, undo, timer: setTimeout(() => this.#finish(), undoFor) };
    this.requestUpdate();
  }

  // settle does the work of undoable now, if it waits, and returns when it is done.
  protected async settle(): Promise<void> {
    this.#finish();
    await this.#work;
  }

  // follow subscribes to events until the view is removed.
  protected follow(kinds: string[] | "*", f: Parameters<typeof feed.on>[1]): void {
    this.#ends.push(feed.on(kinds, f));
  }

  // focusHeading is called by the shell when a link has opened the view.
  async focusHeading(): Promise<void> {
    await this.updateComplete;
    this.renderRoot.querySelector<HTMLElement>("h1")?.focus();
  }

  // ---- implementation

  // finish does the work that could be undone until now.
  #finish = (): void => {
    const u = this.#undo;
    if (!u) return;
    clearTimeout(u.timer);
    this.#undo = undefined;
    this.tell("");
    this.#work = u.work().then(
      () => this.reload(),
      (e: unknown) => {
        u.undo();
        if (this.isConnected) this.tell(sentence(e), true);
        else window.dispatchEvent(new CustomEvent<Said>(failedLate, { detail: html`${say("late", { what: u.text })} ${sentence(e)}` }));
      },
    );
  };

  #takeBack(): void {
    const u = this.#undo;
    if (!u) return;
    clearTimeout(u.timer);
    this.#undo = undefined;
    u.undo();
    this.tell("");
  }

  connectedCallback(): void {
    super.connectedCallback();
    window.addEventListener("pagehide", this.#finish);
    window.addEventListener(failedLate, this.#late);
    document.addEventListener("visibilitychange", this.#hide);
    this.#wishes.forEach((w) => this.#subscribe(w));
    feed.addEventListener("connected", this.#revive);
    void this.#run();
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    window.removeEventListener("pagehide", this.#finish);
    window.removeEventListener(failedLate, this.#late);
    document.removeEventListener("visibilitychange", this.#hide);
    this.#finish();
    feed.removeEventListener("connected", this.#revive);
    this.#ends.forEach((end) => end());
    this.#ends = [];
    clearTimeout(this.#timer);
    this.#timer = undefined;
    clearTimeout(this.#noteTimer);
  }

  // #hide does what could be undone, because phones may end a hidden page without a word.
  #hide = (): void => {
    if (document.hidden) this.#finish();
  };

  // #late tells that the work of a view that was left has failed.
  #late = (e: Event): void => this.tell((e as CustomEvent<Said>).detail, true);

  // #revive loads a view again that could not be loaded while the server was away.
  #revive = (): void => {
    if (this.#failure !== undefined) this.reload();
  };

  #subscribe(w: { kinds: string[]; what: string[] }): void {
    this.#ends.push(feed.on([...w.kinds, "missed"], () => this.reload()));
    this.#ends.push(feed.onStates((_, anew) => anew && this.reload()));
    if (w.what.length > 0) {
      this.#ends.push(
        feed.on(["changed"], (e) => {
          if (w.what.includes(String(e.data["what"]))) this.reload();
        }),
      );
    }
  }

  async #run(): Promise<void> {
    if (this.#loading) {
      this.#wanted = true;
      return;
    }
    this.#loading = true;
    try {
      await this.load();
      this.#loaded = true;
      this.#failure = undefined;
    } catch (e) {
      this.#failure = e;
      if (e instanceof Refusal && e.status === 401) this.dispatchEvent(new Event(locked, { bubbles: true, composed: true }));
    }
    this.#loading = false;
    this.requestUpdate();
    if (this.#wanted) {
      this.#wanted = false;
      if (this.isConnected) this.reload();
    }
  }

  protected updated(changed: PropertyValues): void {
    super.updated(changed);
    this.dispatchEvent(new CustomEvent("perch-title", { detail: this.title_(), bubbles: true, composed: true }));
  }

  render(): unknown {
    return html`
      <header class="top"><h1 tabindex="-1">${this.title_()}</h1><div class="row">${this.#loaded ? this.actions() : nothing}</div></header>
      ${this.#failure !== undefined ? this.#failed() : nothing}
      ${this.#loaded ? this.content() : this.#failure === undefined ? html`<p class="loading" role="status">${say("loading")}</p>` : nothing}
      <div class="note ${this.#note?.bad ? "is-bad" : ""}" role="status" aria-live="polite" data-test="note" ?data-empty=${!this.#note}>
        <span>${this.#note?.text ?? ""}</span>
        ${this.#undo ? html`<button type="button" class="undo" data-test="undo" @click=${() => this.#takeBack()}>${say("undo")}</button>` : nothing}
        ${this.#note ? html`<button type="button" data-test="close" aria-label=${say("close")} @click=${() => (this.#undo ? this.#finish() : this.tell(""))}>×</button>` : nothing}
      </div>`;
  }

  #failed() {
    return html`<div class="failed" role="alert" data-test="failed"><p>${sentence(this.#failure)}</p>
      <p-button @click=${() => void this.#run()}>${say("again")}</p-button></div>`;
  }
}

function viewStyles() {
  return css`
    .top { display: flex; flex-wrap: wrap; gap: var(--s2) var(--s4); justify-content: space-between; align-items: center; margin-bottom: var(--s5); min-height: var(--target); }
    .loading { color: var(--muted); animation: appear var(--calm) 0.25s both; }
    @keyframes appear { from { opacity: 0; } }
    .failed { display: flex; flex-wrap: wrap; gap: var(--s3); align-items: center; justify-content: space-between; background: var(--bad-soft); color: var(--bad); padding: var(--s3) var(--s4); border-radius: var(--radius); margin-bottom: var(--s4); }
    .note { position: fixed; z-index: 20; inset-inline: var(--s4); bottom: calc(var(--s4) + var(--bar, 0px)); margin-inline: auto; width: fit-content; max-width: min(40rem, calc(100vw - 2rem));
      background: var(--text); color: var(--bg); border-radius: var(--radius); padding: var(--s2) var(--s2) var(--s2) var(--s4); display: flex; gap: var(--s2); align-items: center; box-shadow: var(--float); animation: rise var(--calm) var(--ease); }
    @keyframes rise { from { opacity: 0; translate: 0 var(--s4); } }
    .note[data-empty] { padding: 0; box-shadow: none; background: none; animation: none; }
    .note.is-bad { background: var(--bad); color: var(--surface); }
    .note button { font: inherit; line-height: 1; background: none; border: 0; color: inherit; min-width: var(--target); min-height: var(--target); cursor: pointer; border-radius: var(--round); }
    .note .undo { font-weight: 700; text-decoration: underline; text-underline-offset: 0.2em; padding: 0 var(--s2); position: relative; }
    .note button:focus-visible { outline-color: currentcolor; outline-offset: -3px; }
  `;
}
