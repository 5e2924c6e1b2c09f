// Waiting for the appliance's next start. The page's feed says when the appliance
// goes and when it answers again; only then is it asked whether it was started anew.

import { get } from "../lib/api.js";
import { feed } from "../lib/feed.js";

interface Status {
  started: string;
}

const patience = 120_000; // ms

// started is when the appliance was started, to tell the next start from this one.
export async function started(): Promise<string> {
  return (await get<Status>("api/v1/status")).started;
}

// restarted is true once another start than `before` answers, and false where none
// does for two minutes.
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
          // The clock of the start is rounded to a second, and moves with the clock.
          if (Math.abs(Date.parse(now) - Date.parse(before)) > 1500) end(true);
        },
        () => undefined, // it goes away just now, or the session has ended: the shell says that
      );
    };
    const timer = setTimeout(() => end(false), within);
    feed.addEventListener("connected", look);
  });
}
