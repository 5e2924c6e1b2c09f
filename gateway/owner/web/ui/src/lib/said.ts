// Sentences and names of the server, translated into the page's language.

import { html, type TemplateResult } from "lit";
import type { Refusal } from "./api.js";
import { translated } from "./findings.js";
import { language, message } from "./words.js";

// Said is a text to show, parts of which may be marked as English.
export type Said = string | TemplateResult;

// english returns an English sentence of the server, marked as English unless the page is in English.
export function english(text: string | undefined): Said {
  return language() === "en" || !text ? text ?? "" : html`<span lang="en">${text}</span>`;
}

// told returns a sentence of the server in the page's language, or marked as English if there is no translation. within
// embeds it in a sentence of the page.
export function told(note: string | undefined, within = (text: string) => text): Said {
  const own = note ? translated(note) : undefined;
  return own === undefined ? english(note && within(note)) : within(own);
}

// refusal returns the reason of a refusal. If the page has a sentence for the code that ends with a colon, the server's
// sentence follows.
export function refusal(r: Refusal): Said {
  const own = language() === "en" ? undefined : message("refusals", r.code);
  if (own === undefined) return told(r.message);
  return /[:：]$/.test(own) ? html`${own}<br /><small>${told(r.message)}</small>` : own;
}

// part returns the translated name of a part of the server. A number as in "port :8003" is appended.
export function part(name: string): string {
  const [, first = "", rest = ""] = /^(\S+)(.*)$/.exec(name) ?? [];
  return (message("parts", first) ?? first) + rest;
}
