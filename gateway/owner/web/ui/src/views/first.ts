// The first minutes: one question after another, with the answer chosen where the browser or the network knows it. Each
// answer is saved at once, so that the appliance has it in every browser. The browser keeps the step that it has reached.

import { css, html, nothing } from "lit";
import { keyed } from "lit/directives/keyed.js";
import { Refusal, get, send, serverNow } from "../lib/api.js";
import { board, follow } from "../lib/board.js";
import { devices, nameOf, type Device } from "../lib/robots.js";
import { type Said } from "../lib/said.js";
import { keep, kept } from "../lib/store.js";
import { View, sentence, type Wish } from "../lib/view.js";
import { waits } from "../lib/wants.js";
import { catalogue, known, language, languageName, languages, locale, setLanguage, type Language } from "../lib/words.js";
import { list } from "./list.js";
import { leaves, moved, moves, nextMove, restarted, started, type Move } from "./restart.js";
import { below, faulty, isSet, type Fault, type Key, type Shown } from "./settings.types.js";
import { done, isReal, reached } from "./first.place.js";
import "./home.point.js";
import { refuse, refused } from "./home.waiting.js";
import "./robot.name.js";

const say = catalogue("first");

type Step = "language" | "timezone" | "name" | "hears" | "speaks" | "thinks" | "home" | "robot" | "talk";
const order: readonly Step[] = ["language", "timezone", "name", "hears", "speaks", "thinks", "home", "robot", "talk"];
const engines: Partial<Record<Step, string>> = { hears: "speech.recognizers", speaks: "speech.synthesizers", thinks: "brains" };

interface Server { name: string; url: string; hears?: boolean; speaks?: boolean }
interface Found { wyoming: Server[] | null; ollama: { url: string; models: string[] | null }[] | null; homeassistant: Server[] | null }
interface Choice { id: string; label: string; value: unknown } // a value of undefined changes nothing
interface Answer { heard: string; said: string }

export class First extends View {
  static properties = { at: { state: true }, found: { state: true }, busy: { state: true }, faults: { state: true }, chosen: { state: true }, phase: { state: true }, move: { state: true },
    inPage: { state: true }, answer: { state: true } };
  declare at: Step;
  declare found: Found | undefined; // undefined during the search
  declare busy: boolean;
  declare faults: Fault[];
  declare chosen: Record<string, string>; // typed or chosen values by key
  declare phase: "" | "restarting" | "back" | "late" | "moved";
  declare move: Move | undefined; // by the last restart
  declare inPage: boolean; // whether the robot of the page is used although there is a real one
  declare answer: Answer | undefined; // the first answer of a robot in the last step
  private config: Pick<Shown, "keys" | "restart"> = { keys: [] };
  private robots: Device[] = [];
  private talks = 0; // when the last step was opened, in ms
  static styles = [View.styles, list, css`
    :host { max-width: 44rem; margin-inline: auto; }
    .step { display: grid; gap: var(--s4); grid-template-columns: minmax(0, 1fr); }
    .step > h2 { font-size: var(--t-title); line-height: 1.2; } .step > h2:focus { outline: none; }
    .count { margin-bottom: var(--s4); display: grid; gap: var(--s2); }
    fieldset { border: 0; padding: 0; margin: 0; min-width: 0; } legend { font-weight: 600; padding: 0; margin-bottom: var(--s2); }
    .choice { display: flex; gap: var(--s3); align-items: center; min-height: var(--target); padding: var(--s2) var(--s3); border: 1px solid var(--line); border-radius: var(--round); margin-top: var(--s2); cursor: pointer; overflow-wrap: anywhere; }
    .choice:has(:checked) { border-color: var(--accent); background: var(--soft); }
    .also { display: grid; gap: 0 var(--s3); grid-template-columns: repeat(auto-fill, minmax(min(100%, 9rem), 1fr)); } .also label { display: flex; gap: var(--s3); align-items: center; min-height: var(--target); }
    .faults { background: var(--bad-soft); color: var(--bad); border-radius: var(--radius); padding: var(--s3) var(--s4); }
    .end { display: flex; flex-wrap: wrap; gap: var(--s2); align-items: center; margin-top: var(--s2); } .end .skip { margin-inline-start: auto; }
    .go { display: inline-flex; min-height: var(--target); align-items: center; padding: 0.35rem var(--s4); border-radius: var(--round); background: var(--accent); color: var(--on-accent); font-weight: 600; text-decoration: none; }
    .talked { background: var(--raised); border-radius: var(--radius); padding: var(--s4); display: grid; gap: var(--s2); } .answer { font-size: var(--t-head); font-weight: 600; }
  `];

  constructor() {
    super();
    this.at = order.find((s) => s === kept(reached)) ?? "language";
    this.busy = this.inPage = false;
    this.faults = [];
    this.chosen = {};
    this.phase = "";
    this.reloadOn(["robot_seen", "robot_adopted", "robot_renamed", "robot_forgotten", "robot_online"], ["settings", "robot"]); // chosen stays
    follow(this, () => this.real?.id, () => this.hear());
  }

  connectedCallback(): void {
    super.connectedCallback();
    this.talks = serverNow();
    void this.search();
    if (this.at === "talk") void import("../robot/page.js");
  }

  protected title_(): string {
    return say("title");
  }

  protected async load(): Promise<void> {
    [this.config, this.robots] = await Promise.all([get<Shown>("api/v1/config"), devices()]);
  }

  private async search(): Promise<void> {
    const nothingFound = { wyoming: [], ollama: [], homeassistant: [] };
    this.found = await get<Found>("api/v1/found").catch(() => nothingFound); // the steps go on without servers
  }

  // ---- the steps

  // steps returns the steps that are questions here: where there is a choice.
  private get steps(): Step[] {
    return order.filter((s) => s === this.at || this.isQuestion(s));
  }

  private isQuestion(step: Step): boolean {
    switch (step) {
      case "hears": case "speaks": case "thinks":
        return this.found === undefined || this.choices(engines[step]!).length > 1 || (step === "hears" && this.unheard.length > 0);
      case "home":
        return (this.found?.homeassistant?.length ?? 0) > 0 || this.value("mqtt.broker") !== "embedded";
    }
    return true;
  }

  private async go(by: 1 | -1): Promise<void> {
    const steps = this.steps;
    const to = steps[steps.indexOf(this.at) + by];
    if (!to) return;
    this.at = to;
    this.faults = [];
    if (this.phase === "back") this.phase = "";
    keep(reached, to);
    this.talks = serverNow();
    this.answer = undefined;
    if (to === "talk") void import("../robot/page.js");
    if (to === "robot" && this.config.restart?.length) void this.restart();
    await this.showQuestion();
  }

  private async showQuestion(): Promise<void> {
    await this.updateComplete;
    window.scrollTo(0, 0);
    this.renderRoot.querySelector<HTMLElement>(".step > h2")?.focus();
  }

  private async next(e: Event): Promise<void> {
    e.preventDefault();
    if (this.busy) return;
    const set = this.changes();
    if (Object.keys(set).length > 0) {
      this.busy = true;
      try {
        await send("PUT", "api/v1/config", { set });
        await this.load();
        this.chosen = {};
      } catch (failure) {
        this.refused(failure);
        return;
      } finally {
        this.busy = false;
      }
    }
    await this.go(1);
  }

  private refused(failure: unknown): void {
    const faults = failure instanceof Refusal ? (failure.body as { faults?: Fault[] } | undefined)?.faults : undefined;
    if (faults?.length) this.faults = faults;
    else this.tell(sentence(failure), true);
  }

  // restart makes the answers take effect that need it, before a robot is told the address.
  private async restart(): Promise<void> {
    try {
      const before = await started();
      this.move = await nextMove();
      this.phase = "restarting";
      await send("POST", "api/v1/restart");
      this.phase = leaves(this.move) ? "moved" : (await restarted(before)) ? "back" : "late";
      if (this.phase === "back") await this.load();
    } catch (failure) {
      this.phase = "";
      this.refused(failure);
    }
  }

  // ---- answers

  private key(key: string): Key | undefined {
    return this.config.keys?.find((k) => k.key === key);
  }

  private value(key: string): string {
    const v = this.key(key)?.value;
    return typeof v === "string" ? v : "";
  }

  // isOpen reports whether nobody has set a key yet.
  private isOpen(key: string): boolean {
    return this.key(key)?.from === "default";
  }

  private kinds(key: string): string {
    const v = this.key(key)?.value;
    return Array.isArray(v) ? v.map((one) => String((one as { kind?: unknown } | null)?.kind ?? "?")).join(", ") : "";
  }

  private choose(key: string, value: string): void {
    this.chosen = { ...this.chosen, [key]: value };
  }

  // picked returns the answer that is chosen: by the owner, or else what the browser or the network knows, or the present value.
  private picked(key: string): string {
    const own = this.chosen[key];
    if (own !== undefined) return own;
    if (!this.isOpen(key)) return key in choosers ? "" : this.value(key);
    return choosers[key]?.(this.found) ?? { language: language(), timezone: here }[key] ?? this.value(key);
  }

  // speak makes a language the household's first language, and the page's language if the page has it.
  private speak(tag: string): void {
    const [usual = tag, ...also] = this.spoken;
    this.choose("language", [tag, ...also.map((l) => (l === tag ? usual : l))].join(", "));
    const own = known(tag);
    if (own && own !== language()) setLanguage(own).catch(() => undefined); // the page stays as it is
  }

  // alsoSpeak adds an additional language, or removes it.
  private alsoSpeak(tag: string, is: boolean): void {
    this.choose("language", [...this.spoken.filter((l) => l !== tag), ...(is ? [tag] : [])].join(", "));
  }

  private fault(key: string): Said {
    return below(this.faults, key);
  }

  // spoken returns the languages of the household, the first language first.
  private get spoken(): string[] {
    return this.picked("language").split(",").map((l) => l.trim()).filter((l) => l !== "");
  }

  private speaks(base: string): boolean {
    return this.spoken.some((l) => l.split("-")[0]!.toLowerCase() === base);
  }

  // knows reports whether an embedded engine can be used with the household's languages.
  private knows(kind: string): boolean {
    switch (kind) {
      case "sphinx":
        return this.speaks("en");
      case "reflex":
        return this.spoken.every(known); // the server refuses it with other languages
    }
    return true;
  }

  // withEmbedded adds the embedded engine as fallback, if it can be used.
  private withEmbedded(first: Record<string, unknown>, kind: string): unknown {
    return this.knows(kind) ? [first, { kind }] : [first];
  }

  // unheard returns the languages without a recognizer. The embedded recognizer supports English only.
  private get unheard(): string[] {
    const id = this.picked("speech.recognizers");
    const embedded = id === "sphinx" || (id === "" && /^sphinx(, sphinx)*$/.test(this.kinds("speech.recognizers")));
    return embedded ? this.spoken.filter((l) => known(l) !== "en") : [];
  }

  private choices(key: string): Choice[] {
    const servers = this.found?.wyoming ?? [];
    const wyoming = (kind: string, can: "hears" | "speaks") => servers.filter((s) => s[can] || s.hears === s.speaks).map((s): Choice => ({ id: s.url, label: `${s.name} · ${s.url}`, value: this.withEmbedded({ kind: "wyoming", url: s.url }, kind) }));
    switch (key) {
      case "speech.recognizers":
        return [{ id: "sphinx", label: say("sphinx"), value: [{ kind: "sphinx" }] }, ...wyoming("sphinx", "hears")];
      case "speech.synthesizers":
        return [...(this.speaks("ja") ? [{ id: "openjtalk, espeak", label: say("openjtalk"), value: [{ kind: "openjtalk" }, { kind: "espeak" }] }] : []),
          { id: "espeak", label: say("espeak"), value: [{ kind: "espeak" }] }, ...wyoming("espeak", "speaks")];
      case "brains":
        return [...(this.knows("reflex") ? [{ id: "reflex", label: say("reflex"), value: [{ kind: "reflex" }] }] : []), ...(this.found?.ollama ?? []).flatMap((o) => (o.models ?? []).map((model): Choice => ({
          id: `${o.url} ${model}`, label: `${model} · ${o.url}`, value: this.withEmbedded({ kind: "openai", url: `${o.url.replace(/\/+(v1\/*)?$/, "")}/v1`, model, dialect: "ollama" }, "reflex"),
        })))];
    }
    return [];
  }

  // changes returns the keys that the answer of this step sets: those that differ from the present configuration.
  private changes(): Record<string, unknown> {
    const set: Record<string, unknown> = {};
    const differs = (key: string, v: string) => {
      if (v !== this.value(key)) set[key] = v === "" ? null : key === "language" && this.spoken.length > 1 ? this.spoken : v;
    };
    const key = engines[this.at];
    if (key) {
      const choice = this.choices(key).find((c) => c.id === this.picked(key));
      if (choice && choice.id !== this.kinds(key)) set[key] = choice.value;
    } else if (this.at === "language" || this.at === "timezone" || this.at === "name") {
      differs(this.at, this.picked(this.at).trim());
    } else if (this.at === "home" && this.chosen["home"] === "embedded") {
      differs("mqtt.broker", "embedded");
    } else if (this.at === "home" && this.chosen["home"] === "broker") {
      for (const k of ["mqtt.broker", "mqtt.user", "mqtt.password"]) {
        const v = (k === "mqtt.broker" ? this.broker : (this.chosen[k] ?? "")).trim();
        if (v !== "") differs(k, v);
      }
    }
    return set;
  }

  // broker returns the typed address of the broker, or else the usual address on Home Assistant's machine.
  private get broker(): string {
    const first = this.found?.homeassistant?.[0]?.url;
    return this.chosen["mqtt.broker"] ?? (first && URL.canParse(first) ? `mqtt://${new URL(first).hostname}:1883` : "");
  }

  // ---- rendering

  protected content() {
    const steps = this.steps, n = steps.indexOf(this.at);
    const sure = this.found ? steps : steps.filter((s) => s === this.at || (!(s in engines) && s !== "home")); // a search may leave the others out
    const at = sure.indexOf(this.at) + 1;
    const last = this.at === "talk";
    return html`<div class="count"><p class="small muted" data-test="step" data-step=${this.at}>${this.found ? say("step", { n: at, all: steps.length }) : say("stepAlone", { n: at })}</p><p-bar label=${say("progress")} .value=${at / steps.length}></p-bar></div>
      <p-card><form class="step" novalidate @submit=${(e: Event) => void this.next(e)}>${keyed(this.at, this.question())}
        ${this.faults.length > 0 ? html`<div class="faults" role="alert" data-test="faults"><p>${say("faults")}</p><ul>${this.faults.map((f) => html`<li>${faulty(f)}</li>`)}</ul></div>` : nothing}
        <p role="status" aria-live="polite" data-test="phase" data-phase=${this.phase} ?hidden=${this.phase === ""}>${this.phase === "restarting" ? say("saved") : this.phase === "back" ? say("back") : this.phase === "late" ? say("late") : nothing}</p>${moved(this.move)}
        <div class="end">${n > 0 ? html`<p-button kind="quiet" data-test="back" @click=${() => void this.go(-1)}>${say("goBack")}</p-button>` : nothing}
          ${last ? html`<a class="go skip" href="#/" data-test="home" @click=${() => keep(reached, done)}>${say("toHome")}</a>`
            : html`<p-button class="skip" kind="quiet" data-test="skip" ?disabled=${this.busy} @click=${() => void this.go(1)}>${say("skip")}</p-button>
              <p-button kind="main" type="submit" data-test="next" ?busy=${this.busy} ?disabled=${this.phase === "restarting"}>${this.at === "robot" && !this.real ? say("goPage") : say("next")}</p-button>`}</div></form></p-card>`;
  }

  private question() {
    switch (this.at) {
      case "language": return this.askLanguage();
      case "timezone": return this.askZone();
      case "name": return this.askName();
      case "hears": return this.askEngine("hears", html`<p role="status" aria-live="polite" data-test="unheard">${this.unheardNote()}</p>`);
      case "speaks": case "thinks": return this.askEngine(this.at);
      case "home": return this.askHome();
      case "robot": return this.askRobot();
      case "talk": return this.talk();
    }
  }

  private heading(text: string) {
    return html`<h2 tabindex="-1">${text}</h2>`;
  }

  private typed(key: string) {
    return (e: Event) => this.choose(key, (e.target as HTMLInputElement | HTMLSelectElement).value);
  }

  private unheardNote() {
    const unheard = new Intl.ListFormat(locale()).format(this.unheard.map(languageName));
    return unheard ? say("unheard", { languages: unheard }) : nothing;
  }

  private askLanguage() {
    const [usual = "en", ...also] = this.spoken;
    const all = [...(languages.includes(usual as Language) ? [] : [usual]), ...languages];
    const others = [...languages.filter((l) => l !== known(usual)), ...also].filter((l, i, list) => list.indexOf(l) === i && !also.some((o) => o !== l && known(o) === l));
    return html`${this.heading(say("askLanguage"))}
      <p-field label=${say("language")} .error=${this.fault("language")}><select data-test="language" @change=${(e: Event) => this.speak((e.target as HTMLSelectElement).value)}>
        ${all.map((l) => html`<option value=${l} ?selected=${l === usual}>${languageName(l)}</option>`)}</select></p-field>
      <fieldset><legend>${say("also")}</legend><div class="also">${others.map((l) => html`<label><input type="checkbox" data-test="also" value=${l} .checked=${also.includes(l)}
        @change=${(e: Event) => this.alsoSpeak(l, (e.target as HTMLInputElement).checked)}> <span>${languageName(l)}</span></label>`)}</div></fieldset>
      <p role="status" aria-live="polite" class="small" data-test="unheard">${this.unheardNote()}</p>`;
  }

  private askZone() {
    const zone = this.picked("timezone");
    return html`${this.heading(say("askZone"))}
      <p-field label=${say("timezone")} .error=${this.fault("timezone")}><select data-test="timezone" @change=${this.typed("timezone")}><option value="">${say("machine")}</option>
        ${zones(zone).map((z) => html`<option value=${z} ?selected=${z === zone}>${z.replaceAll("_", " ")}</option>`)}</select></p-field>`;
  }

  private askName() {
    const old = this.value("name"), name = this.picked("name");
    return html`${this.heading(say("askName"))}
      <p-field label=${say("name")} hint=${name === old || this.value("public_url") ? say("nameHint", { name }) : moves(`${old}.local`, name)} .error=${this.fault("name")}><input data-test="name" autocomplete="off" .value=${name} @input=${this.typed("name")}></p-field>`;
  }

  private askEngine(step: "hears" | "speaks" | "thinks", note: unknown = nothing) {
    const key = engines[step]!;
    const picked = this.picked(key), now = this.kinds(key);
    const all: Choice[] = [{ id: "", label: say("keep", { now }), value: undefined }, ...this.choices(key).filter((c) => c.id !== now)];
    const question = say(step);
    return html`${this.heading(question)}<p class="muted" role="status" aria-live="polite" data-test="found">${this.found ? say("foundHint") : say("searching")}</p>
      <fieldset><legend class="hidden">${question}</legend>${all.map((c) => this.radio(key, c.id, c.label, c.id === picked))}
      ${this.fault(key) ? html`<p class="bad small">${this.fault(key)}</p>` : nothing}</fieldset>${note}`;
  }

  private radio(key: string, id: string, label: string, checked: boolean) {
    return html`<label class="choice"><input type="radio" name=${key} value=${id} .checked=${checked} @change=${() => this.choose(key, id)}><bdi>${label}</bdi></label>`;
  }

  private askHome() {
    const chosen = this.chosen["home"] ?? "";
    const secret = isSet(this.key("mqtt.password"));
    const now = this.value("mqtt.broker");
    return html`${this.heading(say("home"))}<fieldset><legend class="hidden">${say("home")}</legend>
      ${this.radio("home", "", say("homeKeep", { now }), chosen === "")}${now === "embedded" ? nothing : this.radio("home", "embedded", say("homeEmbedded"), chosen === "embedded")}
      ${this.radio("home", "broker", say("homeBroker"), chosen === "broker")}</fieldset>
      ${chosen === "broker" ? html`<div class="fields">
        <p-field label=${say("broker")} .error=${this.fault("mqtt.broker")}><input data-test="broker" placeholder="mqtt://192.168.1.9:1883" .value=${this.broker} @input=${this.typed("mqtt.broker")}></p-field>
        <p-field label=${say("user")} .error=${this.fault("mqtt.user")}><input autocomplete="off" .value=${this.chosen["mqtt.user"] ?? this.value("mqtt.user")} @input=${this.typed("mqtt.user")}></p-field>
        <p-field label=${say("password")} hint=${secret ? say("passwordKept") : ""} .error=${this.fault("mqtt.password")}><input type="password" autocomplete="new-password" @input=${this.typed("mqtt.password")}></p-field></div>` : nothing}`;
  }

  // ---- a robot

  // real returns the adopted robot that was seen last, other than robots of pages.
  private get real(): Device | undefined {
    return this.robots.filter(isReal).sort((a, b) => Date.parse(b.last_seen ?? "") - Date.parse(a.last_seen ?? ""))[0];
  }

  private waiting() {
    const wish = (e: CustomEvent<Wish>) => void this.act(e.detail.work, e.detail.done());
    return html`<div class="stack" @wish=${wish}>${this.robots.filter(waits).map((d) => html`<p-waiting plain .device=${d} @refuse=${() => void this.act(() => refuse(d), refused(d))}></p-waiting>`)}</div>`;
  }

  private askRobot() {
    const here = this.robots.filter(isReal);
    return html`${this.heading(say("askRobot"))}${this.waiting()}
      ${here.map((d) => html`<div class="talked" data-test="here"><p><bdi>${say("robotHere", { name: nameOf(d) })}</bdi></p>${d.name ? nothing : html`<p-robot-name .device=${d}></p-robot-name>`}</div>`)}
      ${here.length > 0 ? nothing : html`<p>${say("robotText")}</p><p-point></p-point>`}`;
  }

  // hear looks for an answer of a real robot since the last step was opened.
  private hear(): void {
    const id = this.real?.id;
    const turn = id === undefined || this.inPage ? undefined : board.now(id)?.turns.filter((t) => Date.parse(t.at) > this.talks && t.heard !== "" && t.said.length > 0).at(-1);
    if (this.at === "talk" && turn) this.answered({ heard: turn.heard, said: turn.said.join(" ") });
  }

  // line takes what the robot of the page has heard or said, until its first answer.
  private line(l: { who: string; text?: string }): void {
    if (this.answer?.said) return;
    const text = l.text ?? "";
    if (l.who === "you") this.answer = /[\p{L}\p{N}]/u.test(text) ? { heard: text, said: "" } : undefined; // speech that nothing has understood is shown as dots
    if (l.who === "robot" && this.answer?.heard) this.answered({ ...this.answer, said: text });
  }

  private answered(answer: Answer): void {
    this.answer = answer;
    keep(reached, done);
    void this.showQuestion();
  }

  private talk() {
    const real = this.inPage ? undefined : this.real;
    const a = this.answer?.said ? this.answer : undefined;
    const robot = real ?? this.robots.find((d) => d.adopted && !isReal(d) && !d.left);
    const hears = real !== undefined || window.isSecureContext; // browsers give no microphone over plain http
    return html`${this.heading(a ? say("works") : say(hears ? "askTalk" : "askWrite", { sentence: say("sentence") }))}
      ${a ? html`<div class="talked" data-test="answered"><p class="muted"><bdi>${a.heard}</bdi></p><p class="answer"><bdi>${a.said}</bdi></p></div><p>${say("again")}</p>
        ${!robot ? nothing : robot.name ? html`<p data-test="called"><bdi>${say("robotHere", { name: robot.name })}</bdi></p>` : html`<p-robot-name .device=${robot}></p-robot-name>`}` : nothing}
      ${real
        ? a ? nothing : html`<p>${say("wakeFirst", { name: nameOf(real) })}</p><div><p-button kind="quiet" data-test="in-page" @click=${() => (this.inPage = true)}>${say("usePage")}</p-button></div>`
        : html`${a ? nothing : hears ? html`<p>${say("pressTalk")}</p>` : html`<p>${say("writeTalk")} <a href="#/microphone" data-test="speak">${say("speak")}</a></p>`}<p-web-robot small @line=${(e: CustomEvent<{ who: string; text?: string }>) => this.line(e.detail)}></p-web-robot>${this.waiting()}`}`;
  }
}

const here = Intl.DateTimeFormat().resolvedOptions().timeZone;

// choosers return the choice for an engine that nobody has chosen yet, from what was found on the network. Servers that do
// not say what they are for are offered and not chosen.
const choosers: Record<string, (f: Found | undefined) => string | undefined> = {
  "speech.recognizers": (f) => f?.wyoming?.find((s) => s.hears)?.url ?? "",
  "speech.synthesizers": (f) => f?.wyoming?.find((s) => s.speaks)?.url ?? "",
  brains: (f) => f?.ollama?.flatMap((o) => (o.models ?? []).map((m) => `${o.url} ${m}`))[0] ?? "",
};

// zones returns the browser's time zones. Older browsers list none; then only the present zone and own are returned.
function zones(own: string): string[] {
  const list = typeof Intl.supportedValuesOf === "function" ? Intl.supportedValuesOf("timeZone") : [];
  return [...new Set([here, ...(own ? [own] : []), ...list])];
}

customElements.define("p-first", First);
