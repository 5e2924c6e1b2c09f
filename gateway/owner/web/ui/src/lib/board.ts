// The board: the present state of each robot, from the feed. It lives as long as the page, so that a view that is opened
// during a conversation can show its beginning. The server sends the states; turns and perceptions are collected here
// from the events.

import type { ReactiveControllerHost } from "lit";
import { moodOf, type Mood } from "../face/mood.js";
import { feed, type Event_, type State } from "./feed.js";

export interface Status {
  volume: number | null;
  brightness: number | null;
  battery: number | null;
  charging: boolean | null;
  signal?: string;
}

export interface ToolUse {
  id: string;
  name: string;
  status: string; // running, done or failed
  detail: string;
}

// Turn is a question and its reply, or an announcement, which has no question.
export interface Turn {
  session: string;
  began: string;
  at: string; // time of the end, or of the latest event
  heard: string;
  said: string[];
  tools: ToolUse[];
  end: string; // how the turn ended; "" while it is in progress
  reason: string;
  stages: Record<string, number>;
}

export interface Sensed {
  at: string;
  name: string;
  data: Record<string, unknown>;
}

export interface Now {
  robot: string;
  session: string;
  online: boolean; // the robot can be reached
  talking: boolean; // the robot's channel is open
  state: string; // state of the face
  emotion: string;
  mood: Mood | null; // null before the first mood
  music: string; // name of the music that it plays; "" for none
  status: Status | undefined;
  turns: Turn[]; // oldest first
  sensed: Sensed[]; // newest first
}

const mostTurns = 50;
const mostSensed = 30;

function text(v: unknown): string {
  return typeof v === "string" ? v : "";
}

function fresh(robot: string): Now {
  return { robot, session: "", online: false, talking: false, state: "idle", emotion: "neutral", mood: null, music: "", status: undefined, turns: [], sensed: [] };
}

export class Board extends EventTarget {
  // known is true once the feed has sent the states of all robots.
  known = false;
  private robots = new Map<string, Now>();
  private told = new Set<string>();

  constructor() {
    super();
    feed.onStates((states, anew) => this.show(states, anew));
    feed.on("*", (e) => this.take(e));
  }

  now(robot: string): Now | undefined {
    return this.robots.get(robot);
  }

  // learn sets the state from a response of the API, unless the feed has sent it already.
  learn(robot: string, d: { state: string; emotion: string; connected: boolean; talking: boolean; status?: Status }): void {
    const f = this.of(robot);
    f.online = d.connected;
    f.talking = d.talking;
    f.status ??= d.status;
    if (this.known && f.session !== "") return;
    f.emotion = d.emotion || "neutral";
    f.state = d.state || "idle";
    this.tell(robot);
  }

  // report sets the status that a robot's tool has returned.
  report(robot: string, status: Status): void {
    this.of(robot).status = status;
    this.tell(robot);
  }

  private of(robot: string): Now {
    let f = this.robots.get(robot);
    if (!f) this.robots.set(robot, (f = fresh(robot)));
    return f;
  }

  private show(states: State[], anew: boolean): void {
    this.known = true;
    // Events may have been missed, so an open turn may have ended.
    if (anew) for (const f of this.robots.values()) f.turns = f.turns.filter((t) => t.end !== "");
    for (const s of states) {
      if (!s.robot) continue;
      const f = this.of(s.robot);
      f.session = s.session ?? "";
      f.online = s["online"] === true;
      f.talking = s["talking"] === true;
      f.state = s.state;
      f.emotion = text((s["emotion"] as { name?: unknown } | undefined)?.name) || "neutral";
      f.music = text(s["music"]);
      f.mood = moodOf((s["mood"] as Record<string, unknown> | undefined) ?? {});
      this.tell(s.robot);
    }
  }

  private tell(robot: string): void {
    if (this.told.size === 0) {
      queueMicrotask(() => {
        const all = [...this.told];
        this.told.clear();
        for (const id of all) this.dispatchEvent(new CustomEvent<string>("change", { detail: id }));
      });
    }
    this.told.add(robot);
  }

  private take(e: Event_): void {
    if (!e.robot) return;
    if (e.kind === "robot_forgotten") {
      this.robots.delete(e.robot);
      return;
    }
    this.keep(this.of(e.robot), e);
    this.tell(e.robot);
  }

  // keep adds an event to the turns, the perceptions or the status of a robot.
  private keep(f: Now, e: Event_): void {
    const d = e.data;
    const session = e.session ?? "";
    const open = f.turns.filter((t) => t.end === "" && t.session === session).at(-1);
    const turn = () => {
      if (open) return open;
      const t: Turn = { session, began: e.at, at: e.at, heard: "", said: [], tools: [], end: "", reason: "", stages: {} };
      f.turns = [...f.turns, t].slice(-mostTurns);
      return t;
    };
    switch (e.kind) {
      case "heard": {
        if (open && (open.heard !== "" || open.said.length > 0)) open.end = "cancelled";
        const t = open && open.end === "" ? open : { session, began: e.at, at: e.at, heard: "", said: [], tools: [], end: "", reason: "", stages: {} };
        if (t !== open) f.turns = [...f.turns, t].slice(-mostTurns);
        t.heard = text(d["text"]);
        t.at = e.at;
        return;
      }
      case "said": {
        const t = turn();
        t.said = [...t.said, text(d["text"])];
        t.at = e.at;
        return;
      }
      case "tool_status": {
        const t = turn();
        const use: ToolUse = { id: text(d["id"]), name: text(d["name"]), status: text(d["status"]), detail: text(d["detail"]) };
        const merged = (u: ToolUse): ToolUse => (u.id === use.id ? { ...use, name: use.name || u.name, detail: use.detail || u.detail } : u);
        t.tools = t.tools.some((u) => u.id === use.id) ? t.tools.map(merged) : [...t.tools, use];
        return;
      }
      case "turn_ended": {
        if (!open) return;
        open.end = text(d["end"]) || "done";
        open.reason = text(d["reason"]);
        open.stages = (d["stages"] as Record<string, number> | undefined) ?? {};
        open.at = e.at;
        open.tools = open.tools.map((u) => (u.status === "running" ? { ...u, status: "" } : u));
        return;
      }
      case "mood":
        f.mood = moodOf(d);
        return;
      case "robot_status":
        f.status = d as unknown as Status;
        return;
      case "robot_offline": {
        f.turns.forEach((t) => {
          if (t.end === "") t.end = "hang_up";
        });
        return;
      }
      case "perceived":
        f.sensed = [{ at: e.at, name: text(d["name"]), data: (d["data"] as Record<string, unknown> | undefined) ?? {} }, ...f.sensed].slice(0, mostSensed);
    }
  }
}

export const board = new Board();

// follow renders an element again and calls changed when the state of a robot changes, while the element is in the page.
export function follow(element: ReactiveControllerHost, robot: () => string | undefined, changed?: () => void): void {
  const listen = (e: Event) => {
    if ((e as CustomEvent<string>).detail !== robot()) return;
    element.requestUpdate();
    changed?.();
  };
  element.addController({
    hostConnected: () => board.addEventListener("change", listen),
    hostDisconnected: () => board.removeEventListener("change", listen),
  });
}

// gestures makes the face in an element perform the gestures of a robot.
export function gestures(element: ReactiveControllerHost & { renderRoot: ParentNode }, robot: () => string | undefined): void {
  let stop: (() => void) | undefined;
  const make = (e: Event_) => {
    if (e.robot !== undefined && e.robot === robot()) void element.renderRoot.querySelector("stack-chan-face")?.gesture(text(e.data["name"]));
  };
  element.addController({
    hostConnected: () => (stop = feed.on(["gesture"], make)),
    hostDisconnected: () => stop?.(),
  });
}

// inWords formats an object as "key: value, key: value"; nested values are JSON.
export function inWords(data: unknown): string {
  if (typeof data !== "object" || data === null) return data === undefined || data === null ? "" : String(data);
  return Object.entries(data)
    .map(([key, value]) => `${key}: ${typeof value === "object" ? JSON.stringify(value) : String(value)}`)
    .join(", ");
}

// Record_ is a turn in a response of the server.
export interface Record_ {
  robot: string;
  session: string;
  at: string;
  heard: string;
  said: string;
  end: string;
  stages: Record<string, number> | null;
  brain?: string;
  thoughts?: string;
  tools?: { name: string; status: string; detail?: string }[];
  calls?: { name: string; arguments: string; result?: string; error?: string }[]; // of the robot's own tools; arguments are JSON
  reason?: string; // cause of a failure
}

// join merges the turns of the server's list and of the feed, oldest first. A turn that is in both, with times less than
// a second apart, is returned once, with the tools of the feed, which change while they run.
export function join(records: Record_[], live: Turn[]): Turn[] {
  const used = new Set<Turn>();
  const kept = records.map((r): Turn => {
    const same = live.find(
      (t) => !used.has(t) && t.end !== "" && t.session === r.session && t.heard === r.heard && Math.abs(Date.parse(t.at) - Date.parse(r.at)) < 1000,
    );
    if (same) used.add(same);
    return {
      session: r.session, began: same?.began ?? r.at, at: r.at, heard: r.heard, said: r.said === "" ? [] : [r.said], tools: same?.tools ?? (r.tools ?? []).map((u, i) => ({ id: String(i), name: u.name, status: u.status, detail: u.detail ?? "" })),
      end: r.end || "done", reason: same?.reason ?? r.reason ?? "", stages: r.stages ?? {},
    };
  });
  const all = [...kept, ...live.filter((t) => !used.has(t) && (t.heard !== "" || t.said.length > 0 || t.tools.length > 0))];
  return all.sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}
