// The boot: the robot checks in until a server has accepted it.

import { Unreachable, type Bootstrap, type CheckIn } from "./checkin.js";

export interface Unanswered {
  what: "unreachable";
  why: Unreachable["why"];
  url: string;
  status: number;
  retryAt: number; // time of the next try, ms since 1970; 0 after the last try
}

export type Step =
  | { state: "waits"; code: string; message: string } // for adoption by its owner
  | { state: "trouble"; trouble: Unanswered | { what: "mqtt" } }
  | { state: "taken" };

const mostTries = 10;

export class Boot {
  private hurry: (() => void) | undefined;

  constructor(private readonly checkIn: CheckIn, private readonly tell: (s: Step) => void) {}

  // run checks in until a server has accepted the robot, the tries are used up or life is aborted.
  async run(life: AbortSignal): Promise<void> {
    for (let tries = 1; ; ) {
      let b: Bootstrap;
      try {
        b = await this.checkIn.checkIn(life);
      } catch (e) {
        if (life.aborted) return;
        if (!(e instanceof Unreachable)) throw e;
        // The firmware waits 10 s, then twice as long each time, ten times.
        const ms = 10_000 * 2 ** (tries - 1);
        const over = tries++ >= mostTries;
        this.tell({ state: "trouble", trouble: { what: "unreachable", why: e.why, url: e.url, status: e.status, retryAt: over ? 0 : Date.now() + ms } });
        if (over) return;
        await this.wait(ms, life);
        if (life.aborted) return;
        continue;
      }
      tries = 1;
      if (b.code || b.challenge) {
        await this.activate(b, life);
        if (life.aborted) return;
        continue;
      }
      this.tell(b.socket ? { state: "taken" } : { state: "trouble", trouble: { what: "mqtt" } });
      return;
    }
  }

  // activate asks up to ten times whether the robot was adopted.
  private async activate(b: Bootstrap, life: AbortSignal): Promise<void> {
    this.tell({ state: "waits", code: b.code, message: b.message });
    for (let i = 0; i < mostTries && !life.aborted; i++) {
      const answer = b.challenge ? await this.checkIn.activated(life).catch(() => "no" as const) : "no";
      if (answer === "yes") return;
      await this.wait(answer === "wait" ? 3000 : 10_000, life);
    }
  }

  private wait(ms: number, life: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        life.removeEventListener("abort", end);
        this.hurry = undefined;
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.hurry = end;
      life.addEventListener("abort", end);
    });
  }

  // cut ends a wait between tries, and reports whether there was one.
  cut(): boolean {
    const hurry = this.hurry;
    hurry?.();
    return hurry !== undefined;
  }
}
