// The feed: one stream of events for the whole page. Nothing polls.
//
// The stream is read with fetch and not with EventSource. EventSource hands out
// only those kinds of events that somebody has named beforehand, and it does not
// say why it was refused; this page must tell "logged out" from "not reachable".

import { fetchOwned, outOfSession } from "./api.js";

export interface Event_ {
  seq: number;
  at: string;
  robot?: string;
  session?: string;
  name?: string;
  kind: string;
  data: Record<string, unknown>;
}

// State is what is shown of one session: agent.State with the robot's name.
export interface State {
  robot?: string;
  session?: string;
  name?: string;
  state: string;
  [field: string]: unknown;
}

// silence is how long the stream may be without a byte: the server sends a
// comment each 15 seconds, so that a broken connection is noticed.
const silence = 45_000;
const shortestWait = 500;
// restsAfter is how long a page may be hidden before it gives its connection back:
// a browser has six for a server, over all its tabs.
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
  private cut: AbortController | undefined; // of the request that is open
  private resting = false;
  private restTimer: ReturnType<typeof setTimeout> | undefined;

  // on calls f for each event of these kinds until the function it returns is called.
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

  // onStates calls f with what robots show from now on. anew is true when the stream
  // begins anew: what was known before may be old.
  onStates(f: (states: State[], anew: boolean) => void): () => void {
    this.shown.add(f);
    return () => this.shown.delete(f);
  }

  // start reads the stream until stop. "connected" and "lost" are published as events.
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

  // rest closes the stream of a page that nobody sees. Once it is seen, the stream
  // goes on where it stopped.
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
        // Whatever ended it, the next try says whether it is mended.
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

  // pause waits until it is hurried, or until so many ms have passed.
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
      if (answer.status === 401) window.dispatchEvent(new CustomEvent(outOfSession));
      if (!answer.ok || !answer.body) throw new Error(`HTTP ${answer.status}`);
      open();
      this.connected = true;
      this.dispatchEvent(new Event("connected"));
      const lines = new Lines((message) => this.take(message));
      const reader = answer.body.getReader();
      const decoder = new TextDecoder();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(end, silence);
        lines.push(decoder.decode(value, { stream: true }));
      }
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

// call lets each listener have it; one that throws does not keep it from the next.
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

// Lines puts messages together from the text of a stream of server-sent events.
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
