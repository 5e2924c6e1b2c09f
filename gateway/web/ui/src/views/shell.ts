// The shell: it shows the view that the address names.

import { html } from "lit";
import { feed } from "../lib/feed.js";
import { base } from "../lib/ui.js";
import { Spoken, type View } from "../lib/view.js";

export interface Route {
  element: string;
  load: () => Promise<unknown>;
}

export class Shell extends Spoken {
  declare routes: Record<string, Route>;
  static styles = base;

  connectedCallback(): void {
    super.connectedCallback();
    window.addEventListener("hashchange", () => void this.go());
    feed.start();
    void this.go();
  }

  private async go(): Promise<void> {
    const [name = "", id = ""] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
    const route = this.routes[name];
    if (!route) return;
    await route.load();
    const view = document.createElement(route.element) as View;
    if (name === "robots") view.setAttribute("robot", id);
    await this.updateComplete;
    this.renderRoot.querySelector("main")?.replaceChildren(view);
  }

  render() {
    return html`<main></main>`;
  }
}

customElements.define("p-shell", Shell);
