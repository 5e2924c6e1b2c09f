// The latest actions of a robot's character.

import { css, html } from "lit";
import { get } from "../lib/api.js";
import { feed } from "../lib/feed.js";
import { base } from "../lib/ui.js";
import { Spoken } from "../lib/view.js";
import { catalogue, clock } from "../lib/words.js";
import { about } from "./action.about.js";

const say = catalogue("character");

interface Action {
  type: string;
  payload: Record<string, unknown>;
  timestamp: number;
  agentId: string;
}

const shown = 12;
const settles = 500; // ms; events within this time cause a single load
const kinds = ["said", "gesture", "look_at", "remembered", "signed", "skill_started", "skill_done", "skill_failed", "emote", "validated", "load_ended", "presence"];

export class Actions extends Spoken {
  static properties = { character: {}, actions: { state: true } };
  declare character: string; // ID of the character, or "" for all characters
  declare actions: Action[];
  private stop: (() => void) | undefined;
  private timer = 0;
  static styles = [base, css`ul { list-style: none; margin: 0; padding: 0; display: grid; gap: 0.35rem; } li { display: flex; flex-wrap: wrap; gap: 0.2rem 0.6rem; overflow-wrap: anywhere; }`];

  constructor() {
    super();
    this.actions = [];
  }

  connectedCallback(): void {
    super.connectedCallback();
    void this.read();
    this.stop = feed.on(kinds, () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => void this.read(), settles);
    });
  }

  disconnectedCallback(): void {
    super.disconnectedCallback();
    this.stop?.();
    clearTimeout(this.timer);
  }

  private async read(): Promise<void> {
    const of = this.character ? `&agent=${encodeURIComponent(this.character)}` : "";
    try {
      const all = await get<Action[] | null>(`api/v1/actions?n=${shown}${of}`);
      this.actions = [...(all ?? [])].sort((a, b) => b.timestamp - a.timestamp);
    } catch {
      // The list stays unchanged; the shell shows that the connection is lost.
    }
  }

  render() {
    if (this.actions.length === 0) return html`<p class="muted small">${say("none")}</p>`;
    return html`<ul class="small">${this.actions.map((a) => html`<li data-test="action"><time class="muted">${clock(new Date(a.timestamp))}</time>
      <b>${a.type}</b><bdi>${about(a.payload)}</bdi></li>`)}</ul>`;
  }
}

customElements.define("p-actions", Actions);
