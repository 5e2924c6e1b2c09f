// The feed: one stream of server-sent events for the whole page.
//
// The stream is read with fetch and not with EventSource, because EventSource requires a listener for each kind of event
// and does not report the status of a refusal, which distinguishes "logged out" from "not reachable".

import { eachPart, fetchOwned } from "./api.js";

export interface Event_ {
  seq: number;
  at: string;
  robot?: string;
  session?: string;
  name?: string;
  kind: string;
  data: Record<string, unknown>;
}

// State is the state of one session: agent.State with the robot's name.
export interface State {
  robot?: string;
  session?: string;
  name?: string;
  state: string;
  [field: string]: unknown;
}

// silence is the time in ms without a byte after which the connection counts as broken. The server sends a comment every
// 15 seconds.
const silence = 45_000;
const shortestWait = 500;
// restsAfter is the time in ms for which a page may be hidden before it closes the stream: a browser allows six
// connections to a server, over all its tabs.
const restsAfter = 30_000;
const longestWait = 10_000;

export class Feed extends EventTarget {
  connected = false;
  private last = "";
  private heard = new Map<string, Set<(e: Event_) => void>>();
  private everything = new Set<(e: Event_) => void>();
  private shown = new Set<(states: State[], anew: boolean) => void>();
  private running: AbortController | undefined;
  private wake: (() => void) | undefined;
  private cut: AbortController | undefined; // aborts the open request
  private resting = false;
  private restTimer: ReturnType<typeof setTimeout> | undefined;

  // on calls f for each event of these kinds until the returned function is called.
  on(kinds: string[] | "*", f: (e: Event_) => void): () => void {
    if (kinds === "*") {
      this.everything.add(f);
      return () => this.everything.delete(f);
    }
    for (const kind of kinds) {
      const set = this.heard.get(kind) ?? new Set();
      set.add(f);
      this.heard.set(kind, set);
    }
    return () => kinds.forEach((kind) => this.heard.get(kind)?.delete(f));
  }

  // onStates calls f with changed states until the returned function is called. anew is true for the snapshot of all
  // states at the beginning of a stream; events before it may have been missed.
  onStates(f: (states: State[], anew: boolean) => void): () => void {
    this.shown.add(f);
    return () => this.shown.delete(f);
  }

  // start reads the stream until stop is called. It dispatches the events "connected" and "lost".
  start(): void {
    if (this.running) return;
    const running = new AbortController();
    this.running = running;
    const { signal } = running;
    const rise = () => this.rise();
    window.addEventListener("online", rise, { signal });
    window.addEventListener("pageshow", rise, { signal });
    window.addEventListener("pagehide", () => this.rest(), { signal });
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") rise();
      else this.restTimer ??= setTimeout(() => this.rest(), restsAfter);
    }, { signal });
    void this.run(signal);
  }

  // rest closes the stream of a hidden page. When the page becomes visible, the stream resumes after the last event.
  private rest(): void {
    this.resting = true;
    this.cut?.abort();
  }

  private rise(): void {
    clearTimeout(this.restTimer);
    this.restTimer = undefined;
    this.resting = false;
    this.wake?.();
  }

  stop(): void {
    clearTimeout(this.restTimer);
    this.restTimer = undefined;
    this.resting = false;
    this.running?.abort();
    this.running = undefined;
    this.last = "";
    this.connected = false;
  }

  private async run(signal: AbortSignal): Promise<void> {
    let wait = shortestWait;
    while (!signal.aborted) {
      try {
        await this.read(signal, () => (wait = shortestWait));
      } catch {
        // The reason does not matter: the next attempt succeeds or fails.
      }
      if (signal.aborted) return;
      if (this.resting) {
        await this.pause(undefined, signal);
        wait = shortestWait;
        continue;
      }
      if (this.connected) {
        this.connected = false;
        this.dispatchEvent(new Event("lost"));
      }
      await this.pause(wait * (0.75 + Math.random() / 2), signal);
      wait = Math.min(wait * 2, longestWait);
    }
  }

  // pause waits until ms milliseconds have passed, wake is called or the signal is aborted.
  private pause(ms: number | undefined, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        this.wake = undefined;
        resolve();
      };
      const timer = ms === undefined ? undefined : setTimeout(done, ms);
      signal.addEventListener("abort", done);
      this.wake = done;
    });
  }

  private async read(signal: AbortSignal, open: () => void): Promise<void> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (this.last !== "") headers["Last-Event-ID"] = this.last;
    const cut = (this.cut = new AbortController());
    const end = () => cut.abort();
    signal.addEventListener("abort", end);
    let timer = setTimeout(end, silence);
    try {
      const answer = await fetchOwned("api/v1/events?states=true", { headers, signal: cut.signal });
      open();
      this.connected = true;
      this.dispatchEvent(new Event("connected"));
      const lines = new Lines((message) => this.take(message));
      const decoder = new TextDecoder();
      await eachPart(answer, (part) => {
        clearTimeout(timer);
        timer = setTimeout(end, silence);
        lines.push(decoder.decode(part, { stream: true }));
      });
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      cut.abort();
    }
  }

  private take(m: Message): void {
    if (m.id !== undefined) this.last = m.id;
    let data: unknown;
    try {
      data = JSON.parse(m.data);
    } catch {
      return;
    }
    if (m.event === "snapshot" || m.event === "states") {
      call(this.shown, (data as { states: State[] }).states, m.event === "snapshot");
      return;
    }
    const e = data as Event_;
    e.kind ??= m.event;
    e.data ??= {};
    call(this.heard.get(m.event), e);
    call(this.everything, e);
  }
}

// call calls all listeners, even if one of them throws.
function call<T extends unknown[]>(listeners: Set<(...t: T) => void> | undefined, ...value: T): void {
  for (const f of [...(listeners ?? [])]) {
    try {
      f(...value);
    } catch (e) {
      reportError(e);
    }
  }
}

interface Message {
  id?: string;
  event: string;
  data: string;
}

// Lines parses server-sent events from the text of a stream.
export class Lines {
  private rest = "";
  private id: string | undefined;
  private event = "";
  private data: string[] = [];

  constructor(private out: (m: Message) => void) {}

  push(text: string): void {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) this.line(line.endsWith("\r") ? line.slice(0, -1) : line);
  }

  private line(line: string): void {
    if (line === "") {
      if (this.data.length > 0) this.out({ id: this.id, event: this.event || "message", data: this.data.join("\n") });
      this.id = undefined;
      this.event = "";
      this.data = [];
      return;
    }
    const at = line.indexOf(":");
    const field = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (field === "id") this.id = value;
    else if (field === "event") this.event = value;
    else if (field === "data") this.data.push(value);
  }
}

export const feed = new Feed();
