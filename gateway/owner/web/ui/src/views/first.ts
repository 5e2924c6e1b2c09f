// The view for the first setup: the settings that a new appliance needs.

import { css, html, nothing } from "lit";
import { Refusal, get, send } from "../lib/api.js";
import { type Said } from "../lib/said.js";
import { View, sentence } from "../lib/view.js";
import { catalogue, known, language, languageName, languages, locale, setLanguage, type Language } from "../lib/words.js";
import { list } from "./list.js";
import { leaves, moved, moves, nextMove, restarted, started, type Move } from "./restart.js";
import { below, faulty, isSet, type Done, type Fault, type Key } from "./settings.types.js";
import "./home.point.js";

const say = catalogue("first");

interface Config { keys: Key[] }
interface Server { name: string; url: string }
interface Found { wyoming: Server[] | null; ollama: { url: string; models: string[] | null }[] | null; homeassistant: Server[] | null }
interface Choice { id: string; label: string; value: unknown } // a value of undefined changes nothing

export class First extends View {
  static properties = { found: { state: true }, busy: { state: true }, faults: { state: true }, chosen: { state: true }, phase: { state: true }, move: { state: true } };
  declare found: Found | undefined;
  declare busy: "" | "search" | "save";
  declare faults: Fault[];
  declare chosen: Record<string, string>; // typed or chosen values by key
  declare phase: "" | "saved" | "restarting" | "back" | "late" | "moved";
  declare move: Move | undefined; // by the last restart
  private config: Config = { keys: [] };
  static styles = [View.styles, list, css`
    :host { max-width: 52rem; margin-inline: auto; }
    .stack { gap: 1rem; } .fields { display: grid; gap: 0.9rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 14rem), 1fr)); align-items: start; }
    fieldset { border: 0; padding: 0; margin: 0 0 1rem; min-width: 0; } legend { font-weight: 600; padding: 0; margin-bottom: 0.4rem; }
    .choice { display: flex; gap: 0.7rem; align-items: flex-start; padding: 0.45rem 0.6rem; border: 1px solid var(--line); border-radius: 10px; margin-top: 0.4rem; cursor: pointer; overflow-wrap: anywhere; }
    .also { margin: 1rem 0 0; } .also .fields { grid-template-columns: repeat(auto-fill, minmax(min(100%, 9rem), 1fr)); } .also label { display: flex; gap: 0.6rem; align-items: center; min-height: 2rem; }
    .choice:has(:checked) { border-color: var(--accent); background: var(--soft); }
    .faults { background: var(--bad-soft); color: var(--bad); border-radius: var(--radius); padding: 0.8rem 1rem; }
    .end { display: flex; flex-wrap: wrap; gap: 0.8rem; align-items: center; }
    .go { display: inline-flex; min-height: 2.6rem; align-items: center; padding: 0.4rem 0.9rem; border-radius: 10px; background: var(--accent); color: var(--on-accent); font-weight: 600; text-decoration: none; }
    .two { grid-template-columns: minmax(0, 1fr); }
  `];

  constructor() {
    super();
    this.busy = "";
    this.faults = [];
    this.chosen = {};
    this.phase = "";
    this.reloadOn([], ["settings"]); // shows changes by other owners; chosen stays
  }

  protected title_(): string {
    return say("title");
  }

  protected async load(): Promise<void> {
    this.config = await get<Config>("api/v1/config");
  }

  private value(key: string): string {
    const v = this.config.keys.find((k) => k.key === key)?.value;
    return typeof v === "string" ? v : "";
  }

  private kinds(key: string): string {
    const v = this.config.keys.find((k) => k.key === key)?.value;
    return Array.isArray(v) ? v.map((one) => String((one as { kind?: unknown } | null)?.kind ?? "?")).join(", ") : "";
  }

  private choose(key: string, value: string): void {
    this.chosen = { ...this.chosen, [key]: value };
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

  private async search(): Promise<void> {
    this.busy = "search";
    await this.act(async () => {
      this.found = await get<Found>("api/v1/found");
    });
    this.busy = "";
  }

  // ---- choices

  // spoken returns the languages of the household, the first language first.
  private get spoken(): string[] {
    return (this.chosen["language"] ?? this.value("language")).split(",").map((l) => l.trim()).filter((l) => l !== "");
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
    const id = this.chosen["speech.recognizers"] ?? "";
    const embedded = id === "sphinx" || (id === "" && /^sphinx(, sphinx)*$/.test(this.kinds("speech.recognizers")));
    return embedded ? this.spoken.filter((l) => known(l) !== "en") : [];
  }

  private choices(key: string): Choice[] {
    const servers = this.found?.wyoming ?? [];
    const wyoming = (kind: string) => servers.map((s): Choice => ({ id: s.url, label: `${s.name} · ${s.url}`, value: this.withEmbedded({ kind: "wyoming", url: s.url }, kind) }));
    switch (key) {
      case "speech.recognizers":
        return [{ id: "sphinx", label: say("sphinx"), value: [{ kind: "sphinx" }] }, ...wyoming("sphinx")];
      case "speech.synthesizers":
        return [...(this.speaks("ja") ? [{ id: "openjtalk, espeak", label: say("openjtalk"), value: [{ kind: "openjtalk" }, { kind: "espeak" }] }] : []),
          { id: "espeak", label: say("espeak"), value: [{ kind: "espeak" }] }, ...wyoming("espeak")];
      case "brains":
        return [...(this.knows("reflex") ? [{ id: "reflex", label: say("reflex"), value: [{ kind: "reflex" }] }] : []), ...(this.found?.ollama ?? []).flatMap((o) => (o.models ?? []).map((model): Choice => ({
          id: `${o.url} ${model}`, label: `${model} · ${o.url}`, value: this.withEmbedded({ kind: "openai", url: `${o.url.replace(/\/+(v1\/*)?$/, "")}/v1`, model, dialect: "ollama" }, "reflex"),
        })))];
    }
    return [];
  }

  // changes returns the keys to set: values that differ from the present configuration.
  private changes(): Record<string, unknown> {
    const set: Record<string, unknown> = {};
    for (const key of ["name", "language", "timezone"]) {
      const v = this.chosen[key]?.trim();
      if (v === undefined || v === this.value(key)) continue;
      set[key] = v === "" ? null : key === "language" && this.spoken.length > 1 ? this.spoken : v;
    }
    for (const key of ["speech.recognizers", "speech.synthesizers", "brains"]) {
      const choice = this.choices(key).find((c) => c.id === this.chosen[key]);
      if (choice) set[key] = choice.value;
    }
    if (this.chosen["home"] === "embedded" && this.value("mqtt.broker") !== "embedded") set["mqtt.broker"] = "embedded";
    if (this.chosen["home"] === "broker") {
      for (const key of ["mqtt.broker", "mqtt.user", "mqtt.password"]) {
        const v = (key === "mqtt.broker" ? this.broker : (this.chosen[key] ?? "")).trim();
        if (v !== "" && v !== this.value(key)) set[key] = v;
      }
    }
    return set;
  }

  private async save(e: Event): Promise<void> {
    e.preventDefault();
    const set = this.changes();
    this.faults = [];
    this.phase = "";
    if (Object.keys(set).length === 0) {
      this.tell(say("nothingNew"));
      return;
    }
    this.busy = "save";
    try {
      const before = await started();
      let done: First["phase"] = "saved";
      if ((await send<Done>("PUT", "api/v1/config", { set })).restart) {
        this.move = await nextMove();
        this.phase = "restarting";
        await send("POST", "api/v1/restart");
        done = leaves(this.move) ? "moved" : (await restarted(before)) ? "back" : "late";
      }
      if (done === "saved" || done === "back") {
        await this.load();
        this.chosen = {};
      }
      this.phase = done;
    } catch (failure) {
      this.phase = "";
      await this.refused(failure);
    }
    this.busy = "";
  }

  private async refused(failure: unknown): Promise<void> {
    const faults = failure instanceof Refusal ? (failure.body as { faults?: Fault[] } | undefined)?.faults : undefined;
    if (faults?.length) this.faults = faults;
    else this.tell(sentence(failure), true);
  }

  // broker returns the typed address of the broker, or else the usual address on Home Assistant's machine.
  private get broker(): string {
    const first = this.found?.homeassistant?.[0]?.url;
    return this.chosen["mqtt.broker"] ?? (first && URL.canParse(first) ? `mqtt://${new URL(first).hostname}:1883` : "");
  }

  // ---- rendering

  protected content() {
    return html`<div class="stack"><p>${say("intro")}</p>
      <form class="stack" @submit=${this.save}>${this.place()}${this.mind()}${this.home()}
        ${this.faults.length > 0 ? html`<div class="faults" role="alert" data-test="faults"><p>${say("faults")}</p><ul>${this.faults.map((f) => html`<li>${faulty(f)}</li>`)}</ul></div>` : nothing}
        <div class="end"><p-button kind="main" type="submit" data-test="save" ?busy=${this.busy === "save"}>${say("save")}</p-button>
          <p role="status" aria-live="polite" data-test="phase" data-phase=${this.phase}>${this.phase === "saved" ? say("done") : this.phase === "restarting" ? say("saved") : this.phase === "back" ? say("back") : this.phase === "late" ? say("late") : nothing}</p></div>${moved(this.move)}</form>
      <h2>${say("stepRobot")}</h2><div class="grid two"><p-card heading=${say("point")}><p-point></p-point></p-card>
        <p-card heading=${say("page")}><div class="stack"><p>${say("pageText")}</p><div class="row"><a class="go" href="robot">${say("wake")}</a><a href="#/">${say("toHome")}</a></div></div></p-card></div></div>`;
  }

  private place() {
    const zone = this.chosen["timezone"] ?? this.value("timezone");
    const [usual = "en", ...also] = this.spoken;
    const all = [...(languages.includes(usual as Language) ? [] : [usual]), ...languages];
    const others = [...languages.filter((l) => l !== known(usual)), ...also].filter((l, i, list) => list.indexOf(l) === i && !also.some((o) => o !== l && known(o) === l));
    const unheard = new Intl.ListFormat(locale()).format(this.unheard.map(languageName));
    const old = this.value("name"), name = this.chosen["name"] ?? old;
    return html`<p-card heading=${say("stepName")}><div class="fields">
      <p-field label=${say("name")} hint=${name === old || this.value("public_url") ? say("nameHint", { name }) : moves(`${old}.local`, name)} .error=${this.fault("name")}><input data-test="name" autocomplete="off" .value=${name} @input=${this.typed("name")}></p-field>
      <p-field label=${say("language")} hint=${say("languageHint")} .error=${this.fault("language")}><select data-test="language" @change=${(e: Event) => this.speak((e.target as HTMLSelectElement).value)}>
        ${all.map((l) => html`<option value=${l} ?selected=${l === usual}>${languageName(l)}</option>`)}</select></p-field>
      <p-field label=${say("timezone")} .error=${this.fault("timezone")}><select data-test="timezone" @change=${this.typed("timezone")}><option value="">${say("machine")}</option>
        ${zones(zone).map((z) => html`<option value=${z} ?selected=${z === zone}>${z.replaceAll("_", " ")}</option>`)}</select></p-field></div>
      <fieldset class="also"><legend>${say("also")}</legend><div class="fields">${others.map((l) => html`<label><input type="checkbox" data-test="also" value=${l} .checked=${also.includes(l)}
        @change=${(e: Event) => this.alsoSpeak(l, (e.target as HTMLInputElement).checked)}> <span>${languageName(l)}</span></label>`)}</div></fieldset>
      <p role="status" aria-live="polite" data-test="unheard">${unheard ? say("unheard", { languages: unheard, who: say("recognizer") }) : nothing}</p></p-card>`;
  }

  private typed(key: string) {
    return (e: Event) => this.choose(key, (e.target as HTMLInputElement | HTMLSelectElement).value);
  }

  private mind() {
    const f = this.found;
    const models = (f?.ollama ?? []).reduce((n, o) => n + (o.models?.length ?? 0), 0);
    const servers = f?.wyoming?.length ?? 0;
    return html`<p-card heading=${say("stepMind")}><p-button slot="actions" data-test="search" ?busy=${this.busy === "search"} @click=${this.search}>${say("search")}</p-button>
      <p role="status" aria-live="polite" class="muted small" data-test="found">${this.busy === "search" ? say("searching") : !f ? nothing : servers + models === 0 ? say("nothing") : say("found", { w: servers, m: models })}</p>
      ${this.radios("speech.recognizers", say("recognizer"))}${this.radios("speech.synthesizers", say("synthesizer"))}${this.radios("brains", say("brain"))}</p-card>`;
  }

  private radios(key: string, legend: string) {
    const chosen = this.chosen[key] ?? "";
    const now = this.kinds(key);
    const list: Choice[] = [{ id: "", label: say("keep", { now }), value: undefined }, ...this.choices(key).filter((c) => c.id !== now)];
    return html`<fieldset><legend>${legend}</legend>${list.map((c) => this.radio(key, c.id, c.label, c.id === chosen))}
      ${this.fault(key) ? html`<p class="bad small">${this.fault(key)}</p>` : nothing}</fieldset>`;
  }

  private radio(key: string, id: string, label: string, checked: boolean) {
    return html`<label class="choice"><input type="radio" name=${key} value=${id} .checked=${checked} @change=${() => this.choose(key, id)}><bdi>${label}</bdi></label>`;
  }

  private home() {
    const chosen = this.chosen["home"] ?? "";
    const kept = isSet(this.config.keys.find((k) => k.key === "mqtt.password"));
    const now = this.value("mqtt.broker");
    return html`<p-card heading=${say("stepHome")}><fieldset><legend>${say("home")}</legend>
      ${this.radio("home", "", say("homeKeep", { now }), chosen === "")}${now === "embedded" ? nothing : this.radio("home", "embedded", say("homeEmbedded"), chosen === "embedded")}
      ${this.radio("home", "broker", say("homeBroker"), chosen === "broker")}</fieldset>
      ${chosen === "broker" ? html`<div class="fields">
        <p-field label=${say("broker")} .error=${this.fault("mqtt.broker")}><input data-test="broker" placeholder="mqtt://192.168.1.9:1883" .value=${this.broker} @input=${this.typed("mqtt.broker")}></p-field>
        <p-field label=${say("user")} .error=${this.fault("mqtt.user")}><input autocomplete="off" .value=${this.chosen["mqtt.user"] ?? this.value("mqtt.user")} @input=${this.typed("mqtt.user")}></p-field>
        <p-field label=${say("password")} hint=${kept ? say("passwordKept") : ""} .error=${this.fault("mqtt.password")}><input type="password" autocomplete="new-password" @input=${this.typed("mqtt.password")}></p-field></div>` : nothing}</p-card>`;
  }
}

// zones returns the browser's time zones. Older browsers list none; then only the present zone and own are returned.
function zones(own: string): string[] {
  const list = typeof Intl.supportedValuesOf === "function" ? Intl.supportedValuesOf("timeZone") : [];
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return [...new Set([here, ...(own ? [own] : []), ...list])];
}

customElements.define("p-first", First);
