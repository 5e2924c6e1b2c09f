// A robot's tools, each with a form for the arguments in its schema.

import { css, html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { run, type Argument, type Result, type Tool } from "../lib/tools.js";
import { type Said } from "../lib/said.js";
import { base } from "../lib/ui.js";
import { Spoken, sentence } from "../lib/view.js";
import { catalogue } from "../lib/words.js";

const say = catalogue("robot");

const images = ["image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp"];

// pictures renders the pictures in a result. Media types that are not images are skipped.
export function pictures(r: Result | undefined, label: string) {
  return (r?.pictures ?? []).filter((p) => images.includes(p.type)).map((p) => html`<img src="data:${p.type};base64,${p.data}" alt=${label}>`);
}

class ToolForm extends Spoken {
  static properties = { robot: {}, tool: { attribute: false }, busy: { state: true }, answer: { state: true }, failure: { state: true } };
  declare robot: string;
  declare tool: Tool;
  declare busy: boolean;
  declare answer: Result | undefined;
  declare failure: Said;
  static styles = [base, css`
    details { border-top: 1px solid var(--line); }
    summary { padding: 0.55rem 0.2rem; cursor: pointer; overflow-wrap: anywhere; min-height: 1.8rem; }
    form { display: grid; gap: 0.8rem; padding: 0.2rem 0.2rem 1rem; }
    .about { white-space: pre-wrap; }
    .fields { display: grid; gap: 0.8rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 14rem), 1fr)); align-items: start; }
    pre { background: var(--raised); border: 1px solid var(--line); border-radius: 10px; padding: 0.6rem 0.8rem; white-space: pre-wrap; overflow-wrap: anywhere; max-height: 20rem; }
    img { max-width: 100%; border-radius: 12px; display: block; }
    code { font-weight: 600; }
  `];

  private async submit(e: Event): Promise<void> {
    e.preventDefault();
    if (this.busy) return;
    this.failure = "";
    this.answer = undefined;
    this.busy = true;
    try {
      this.answer = await run(this.robot, this.tool.name, this.values(e.target as HTMLFormElement));
    } catch (failure) {
      this.failure = sentence(failure);
    }
    this.busy = false;
  }

  // values returns the arguments in the form, without optional ones that are empty.
  private values(form: HTMLFormElement): Record<string, unknown> {
    const values: Record<string, unknown> = {};
    for (const [name, a] of Object.entries(this.tool.schema.properties ?? {})) {
      const control = form.elements.namedItem(`a-${name}`);
      if (control instanceof HTMLInputElement && control.type === "checkbox") {
        values[name] = control.checked;
        continue;
      }
      const text = (control as HTMLInputElement | null)?.value ?? "";
      if (text === "" && !this.needed(name)) continue;
      values[name] = this.value(name, a, text);
    }
    return values;
  }

  private value(name: string, a: Argument, text: string): unknown {
    if (a.enum) return a.enum.find((v) => String(v) === text) ?? text;
    if (a.type === "integer" || a.type === "number") return Number(text);
    if (a.type !== "array" && a.type !== "object") return text;
    try {
      const value: unknown = JSON.parse(text);
      if (a.type === "object" || Array.isArray(value)) return value;
    } catch {
      // reported below
    }
    throw new Error(say("badJSON", { name }));
  }

  private needed(name: string): boolean {
    return this.tool.schema.required?.includes(name) ?? false;
  }

  render() {
    const t = this.tool;
    const args = Object.entries(t.schema.properties ?? {});
    return html`<details data-test="tool-${t.name}"><summary><code>${t.name}</code> ${t.user_only ? html`<span class="tag">${say("userOnly")}</span>` : nothing}</summary>
      <form @submit=${this.submit}>
        ${t.description ? html`<p class="about small muted"><bdi>${t.description}</bdi></p>` : nothing}
        ${args.length === 0 ? html`<p class="small muted">${say("noArgs")}</p>` : html`<div class="fields">${args.map(([name, a]) => this.field(name, a))}</div>`}
        <div><p-button type="submit" kind="main" data-test="call" ?busy=${this.busy}>${say("call")}</p-button></div>
        <div role="status" aria-live="polite" class="stack" data-test="answer">
          ${this.failure ? html`<p class="bad">${this.failure}</p>` : nothing}
          ${this.answer ? html`<h4 class="hidden">${say("answer")}</h4>${this.answer.text ? html`<pre tabindex="0">${this.answer.text}</pre>`
            : this.answer.pictures?.length ? nothing : html`<p class="muted">${say("nothing")}</p>`}${pictures(this.answer, say("picture"))}` : nothing}</div>
      </form></details>`;
  }

  private field(name: string, a: Argument) {
    const needed = this.needed(name);
    const first = a.default === undefined ? "" : String(a.default);
    const id = `a-${name}`;
    if (a.type === "boolean") return html`<p-field inline label=${name}><input type="checkbox" name=${id} ?checked=${a.default === true}></p-field>`;
    const hint = [a.description, range(a), a.type === "array" ? say("json") : "", needed ? say("required") : say("optional")].filter(Boolean).join(" · ");
    if (a.enum) {
      return html`<p-field label=${name} hint=${hint}><select name=${id} ?required=${needed}>${needed ? nothing : html`<option value=""></option>`}
        ${a.enum.map((v) => html`<option value=${String(v)} ?selected=${v === a.default}>${String(v)}</option>`)}</select></p-field>`;
    }
    if (a.type === "integer" || a.type === "number") {
      return html`<p-field label=${name} hint=${hint}><input type="number" name=${id} min=${a.minimum ?? nothing} max=${a.maximum ?? nothing} step=${a.type === "integer" ? "1" : "any"}
        placeholder=${first} ?required=${needed}></p-field>`;
    }
    if (a.type === "array" || a.type === "object") return html`<p-field label=${name} hint=${hint}><textarea name=${id} spellcheck="false" ?required=${needed}></textarea></p-field>`;
    return html`<p-field label=${name} hint=${hint}><input type="text" name=${id} placeholder=${first} ?required=${needed}></p-field>`;
  }
}

function range(a: Argument): string {
  return a.minimum !== undefined && a.maximum !== undefined ? `${a.minimum} – ${a.maximum}` : "";
}

export class Tools extends Spoken {
  static properties = { robot: {}, tools: { attribute: false } };
  declare robot: string;
  declare tools: Tool[];
  static styles = base;
  render() {
    if (this.tools.length === 0) return html`<p class="muted">${say("noTools")}</p>`;
    return repeat(this.tools, (t) => t.name, (t) => html`<p-tool .robot=${this.robot} .tool=${t}></p-tool>`);
  }
}

customElements.define("p-tool", ToolForm);
customElements.define("p-tools", Tools);
