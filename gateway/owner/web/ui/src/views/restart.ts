// Restarts of the appliance, which may change its address. When the feed has connected again, the start time shows whether the appliance
// was restarted.

import { html, nothing } from "lit";
import { get } from "../lib/api.js";
import { feed } from "../lib/feed.js";
import { catalogue } from "../lib/words.js";
import type { Shown } from "./settings.types.js";

const say = catalogue("move");

interface Status {
  started: string;
}

const patience = 120_000; // ms to wait for a restart

// started returns the start time of the appliance.
export async function started(): Promise<string> {
  return (await get<Status>("api/v1/status")).started;
}

// restarted waits until the start time differs from before, and returns true, or false after within milliseconds.
export function restarted(before: string, within = patience): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (back: boolean) => {
      clearTimeout(timer);
      feed.removeEventListener("connected", look);
      resolve(back);
    };
    const look = () => {
      void started().then(
        (now) => {
          // The start time is rounded to a second, and changes when the appliance's clock is set.
          if (Math.abs(Date.parse(now) - Date.parse(before)) > 1500) end(true);
        },
        () => undefined, // the appliance is stopping, or the session has ended, which the shell shows
      );
    };
    const timer = setTimeout(() => end(false), within);
    feed.addEventListener("connected", look);
  });
}

// Move is a change of the appliance's name in the network, which takes effect by a restart.
export interface Move {
  old: string; // present host, such as "perch.local"
  name: string;
  urls: string[]; // addresses of the page after the restart
}

// nextMove returns the change of the name that the next restart makes, if the appliance's address depends on its name.
export async function nextMove(): Promise<Move | undefined> {
  const [config, { url }] = await Promise.all([get<Shown>("api/v1/config"), get<{ url: string[] }>("api/v1/address")]);
  const value = (key: string) => config.keys?.find((k) => k.key === key)?.value;
  const [next] = url.map((u) => new URL(u));
  if (!config.restart?.includes("name") || value("public_url") || !next?.hostname.endsWith(".local")) return undefined;
  const old = next.hostname, name = String(value("name"));
  next.hostname = `${name}.local`;
  return { old, name, urls: [next.href, ...url.slice(1)] };
}

// leaves reports whether the page's own address ends with a move. The page then stops looking for the appliance.
export function leaves(move: Move | undefined): boolean {
  if (move?.old !== location.hostname) return false;
  feed.stop();
  return true;
}

// moves returns what the owner must know before a move.
export function moves(old: string, name: string): string {
  return say("moves", { old, name });
}

// moved renders the new addresses.
export function moved(move: Move | undefined) {
  return move ? html`<div class="warning" role="status" data-test="moved"><p>${say("moved", { old: move.old })}</p>${move.urls.map((u) => html`<p><a href=${u}>${u}</a></p>`)}</div>` : nothing;
}
