// The stream of log lines. The server first sends its stored lines. After an interruption the stream resumes with the
// next line, unless the server was restarted.

import { eachPart, fetchOwned } from "../lib/api.js";
import { Lines } from "../lib/feed.js";

export interface Line {
  at: string;
  level: string;
  msg: string;
  attrs?: Record<string, unknown> | null;
}

const shortestWait = 500; // ms
const longestWait = 10_000;

// follow calls line for each line until the signal is aborted. It calls opened each time the stream begins, and lost each
// time it ends. It fails only if the first attempt fails.
export async function follow(level: string, signal: AbortSignal, line: (l: Line) => void, opened: () => void, lost: () => void): Promise<void> {
  let wait = shortestWait;
  const place = { last: "" };
  for (let first = true; !signal.aborted; first = false) {
    try {
      await read(level, place, signal, line, () => {
        wait = shortestWait;
        first = false;
        opened();
      });
    } catch (e) {
      if (signal.aborted) return;
      if (first) throw e;
    }
    if (signal.aborted) return;
    lost();
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(wait * 2, longestWait);
  }
}

async function read(level: string, place: { last: string }, signal: AbortSignal, line: (l: Line) => void, opened: () => void): Promise<void> {
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (place.last !== "") headers["Last-Event-ID"] = place.last; // resumes after this line
  const answer = await fetchOwned(`api/v1/logs?level=${encodeURIComponent(level)}`, { headers, signal });
  opened();
  const lines = new Lines((m) => {
    if (m.id !== undefined) place.last = m.id;
    if (m.event === "line") line(JSON.parse(m.data) as Line);
  });
  const decoder = new TextDecoder();
  await eachPart(answer, (part) => lines.push(decoder.decode(part, { stream: true })));
}
