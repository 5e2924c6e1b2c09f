// Waiting for a restart of the appliance. When the feed has connected again, the start time shows whether the appliance
// was restarted.

import { get } from "../lib/api.js";
import { feed } from "../lib/feed.js";

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
