// The view of connected programs: skins, avatar programs, coding agents and Home Assistant.

import { html, nothing } from "lit";
import { get } from "../lib/api.js";
import { told } from "../lib/said.js";
import { View } from "../lib/view.js";
import { ago, catalogue } from "../lib/words.js";
import { list } from "./list.js";

const t = catalogue("connections");

interface Skin {
  kind: string;
  address?: string;
  since?: string;
}

interface Agent {
  name?: string;
  session: string;
  state?: string;
  since?: string;
}

interface Relay {
  name: string;
  title: string;
  ok: boolean;
  note?: string;
  since?: string;
}

interface Connections {
  skins: Skin[] | null;
  agents: Agent[] | null;
  homeassistant?: { ok: boolean; note?: string };
  relays?: Relay[];
}

export class ConnectionsView extends View {
  static properties = { all: { state: true }, busy: { state: true } };
  declare private all: Connections | undefined;
  declare private busy: boolean;

  static styles = [View.styles, list];

  constructor() {
    super();
    this.busy = false;
    this.reloadOn(["state_told", "asked", "answered", "fault"], ["connections"]);
  }

  protected title_(): string {
    return t("title");
  }

  protected actions(): unknown {
    return html`<p-button ?busy=${this.busy} @click=${this.again} id="again">${t("again")}</p-button>`;
  }

  protected async load(): Promise<void> {
    this.all = await get<Connections>("api/v1/connections");
  }

  private async again(): Promise<void> {
    this.busy = true;
    await this.act(() => this.load());
    this.busy = false;
  }

  protected content(): unknown {
    const skins = this.all?.skins ?? [];
    const agents = this.all?.agents ?? [];
    const relays = this.all?.relays ?? [];
    const ha = this.all?.homeassistant;
    return html`<div class="stack">
      <p class="lead">${t("about")}</p>
      <p-card heading=${t("homeassistant")}>
        <p class="row" id="homeassistant"><span class="tag ${ha?.ok ? "ok" : ""}">${t(ha?.ok ? "connected" : "notConnected")}</span>
          ${ha?.note ? html`<span class="grow">${told(ha.note)}</span>` : nothing}</p>
      </p-card>
      <p-card heading=${t("skins")}>${skins.length === 0
        ? html`<p-empty heading=${t("skinsNone")}>${t("skinsHint")}</p-empty>`
        : html`<table class="blocks" role="table" id="skins" aria-label=${t("skins")}>
          <thead role="rowgroup"><tr role="row">${(["kind", "address", "since"] as const).map((h) => html`<th role="columnheader" scope="col">${t(h)}</th>`)}</tr></thead>
          <tbody role="rowgroup">${skins.map((s) => html`<tr role="row" data-test="skin"><th role="rowheader" scope="row">${s.kind}</th>
            <td role="cell" data-head=${t("address")}>${s.address ?? ""}</td><td role="cell" data-head=${t("since")}>${s.since ? ago(s.since) : ""}</td></tr>`)}</tbody></table>`}
      </p-card>
      ${relays.length === 0 ? nothing : html`<p-card heading=${t("relays")}><table class="blocks" role="table" id="relays" aria-label=${t("relays")}>
          <thead role="rowgroup"><tr role="row">${(["name", "state", "note", "since"] as const).map((h) => html`<th role="columnheader" scope="col">${t(h)}</th>`)}</tr></thead>
          <tbody role="rowgroup">${relays.map((r) => html`<tr role="row" data-test="relay"><th role="rowheader" scope="row">${r.title}${r.name === r.title ? nothing : html` (${r.name})`}</th>
            <td role="cell" data-head=${t("state")}><span class="tag ${r.ok ? "ok" : ""}">${t(r.ok ? "connected" : "notConnected")}</span></td>
            <td role="cell" data-head=${t("note")}>${told(r.note)}</td>
            <td role="cell" data-head=${t("since")}>${r.since ? ago(r.since) : ""}</td></tr>`)}</tbody></table></p-card>`}
      <p-card heading=${t("agents")}>${agents.length === 0
        ? html`<p-empty heading=${t("agentsNone")}>${t("agentsHint")}</p-empty>`
        : html`<table class="blocks" role="table" id="agents" aria-label=${t("agents")}>
          <thead role="rowgroup"><tr role="row">${(["name", "session", "state", "since"] as const).map((h) => html`<th role="columnheader" scope="col">${t(h)}</th>`)}</tr></thead>
          <tbody role="rowgroup">${agents.map((a) => html`<tr role="row" data-test="agent"><th role="rowheader" scope="row">${a.name || a.session}</th>
            <td role="cell" data-head=${t("session")}>${a.session}</td><td role="cell" data-head=${t("state")}>${a.state ?? ""}</td>
            <td role="cell" data-head=${t("since")}>${a.since ? ago(a.since) : ""}</td></tr>`)}</tbody></table>`}
      </p-card>
    </div>`;
  }
}

customElements.define("p-connections", ConnectionsView);
