// What wants a person: open notifications, questions that wait for yes or no, and robots that wait for adoption. The home
// view shows it, and the menu, the tab's title and the icon of the installed page count it.

import { get } from "./api.js";
import { feed } from "./feed.js";
import { isHere, type Device } from "./robots.js";

export interface Notice {
  id: string;
  text: string;
  urgency: string;
  action_url?: string;
  robot?: string;
  state: string;
  received: string;
}

export interface Question {
  id: string;
  text: string;
  robot: string;
  asked: string;
  until: string;
}

const kinds = ["notification", "notification_changed", "asked", "answered", "robot_seen", "robot_adopted", "robot_renamed", "robot_forgotten", "missed", "changed"];
const together = 300; // ms; events within this time cause a single load

// waits reports whether a robot waits for its owner's decision.
export function waits(d: Device): boolean {
  return (!d.adopted || d.claimed === true) && isHere(d);
}

// Wants fires "change" when what wants a person has changed.
class Wants extends EventTarget {
  devices: Device[] = [];
  private allNotices: Notice[] = [];
  private allQuestions: Question[] = [];
  private hidden = new Set<string>(); // IDs of what was dealt with, and can still be undone
  private ends: (() => void)[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private now: Promise<void> = Promise.resolve();
  private next: Promise<void> | undefined;

  get notices(): Notice[] {
    return this.allNotices.filter((n) => !this.hidden.has(n.id));
  }

  get questions(): Question[] {
    return this.allQuestions;
  }

  // waiting are the robots that wait for adoption, and those whose place another device claims.
  get waiting(): Device[] {
    return this.devices.filter((d) => waits(d) && !this.hidden.has(d.id));
  }

  get count(): number {
    return this.notices.length + this.questions.length + this.waiting.length;
  }

  // hide leaves something out, or shows it again.
  hide(ids: string[], hidden = true): void {
    for (const id of ids) if (hidden) this.hidden.add(id); else this.hidden.delete(id);
    this.dispatchEvent(new Event("change"));
  }

  // load reads what wants a person. Calls before it begins to read share one reading.
  load(): Promise<void> {
    return (this.next ??= this.now.catch(() => undefined).then(() => {
      this.now = this.read();
      this.next = undefined;
      return this.now;
    }));
  }

  private async read(): Promise<void> {
    const [devices, notices, questions] = await Promise.all([
      get<Device[]>("api/v1/devices"), get<Notice[] | null>("api/v1/notifications"), get<Question[] | null>("api/v1/permissions"),
    ]);
    this.devices = devices;
    this.allNotices = notices ?? [];
    this.allQuestions = questions ?? [];
    this.dispatchEvent(new Event("change"));
  }

  // start follows the feed until stop is called.
  start(): void {
    if (this.ends.length > 0) return;
    const soon = () => {
      this.timer ??= setTimeout(() => {
        this.timer = undefined;
        void this.load().catch(() => undefined); // the connection is lost, which the shell tells
      }, together);
    };
    this.ends = [feed.on(kinds, soon), feed.onStates((_, anew) => anew && soon())];
  }

  stop(): void {
    this.ends.forEach((end) => end());
    this.ends = [];
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}

export const wants = new Wants();
