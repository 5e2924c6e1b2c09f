import { html } from "lit";
import { View } from "../lib/view.js";
import { catalogue } from "../lib/words.js";

const say = catalogue("shell");

// Lost is the view for an address without a view.
export class Lost extends View {
  protected title_(): string {
    return say("nowhere");
  }
  protected content() {
    return html`<p>${say("nowhereText")}</p><p><a href="#/">${say("toHome")}</a></p>`;
  }
}

customElements.define("p-lost", Lost);
