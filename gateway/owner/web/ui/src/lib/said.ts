// What the server says. Its sentences are English; what it calls by a name has words in
// the page's language.

import { html, type TemplateResult } from "lit";
import type { Refusal } from "./api.js";
import { translated } from "./findings.js";
import { language, message } from "./words.js";

// Said is what is shown, a part of which may be marked as English.
export type Said = string | TemplateResult;

// english is a sentence of the server's.
export function english(text: string | undefined): Said {
  return language() === "en" || !text ? text ?? "" : html`<span lang="en">${text}</span>`;
}

// told is a note of the server in the page's language, or marked as English where it has no
// translation. within puts it into a sentence of the page.
export function told(note: string | undefined, within = (text: string) => text): Said {
  const own = note ? translated(note) : undefined;
  return own === undefined ? english(note && within(note)) : within(own);
}

// refusal is why the server has refused something. Where the page's own sentence ends
// with a colon, the server's says more.
export function refusal(r: Refusal): Said {
  const own = language() === "en" ? undefined : message("refusals", r.code);
  if (own === undefined) return told(r.message);
  return /[:：]$/.test(own) ? html`${own}<br /><small>${told(r.message)}</small>` : own;
}

// part is what a part of the server is called: "port :8003" has its number after it.
export function part(name: string): string {
  const [, first = "", rest = ""] = /^(\S+)(.*)$/.exec(name) ?? [];
  return (message("parts", first) ?? first) + rest;
}
